// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "util/wire.h"

#include <bit>

namespace ckpt {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

std::string_view WireReader::View(uint64_t n) {
  if (!ok_ || n > in_.size()) {
    Refuse();
    return {};
  }
  std::string_view v = in_.substr(0, n);
  in_.remove_prefix(n);
  return v;
}

uint64_t WireReader::Count(uint64_t min_item_bytes) {
  uint64_t n = U64();
  if (min_item_bytes == 0) min_item_bytes = 1;
  if (n > in_.size() / min_item_bytes) {
    Refuse();
    return 0;
  }
  return n;
}

std::vector<int64_t> WireReader::I64s() {
  uint64_t n = Count(sizeof(int64_t));
  std::string_view v = View(n * sizeof(int64_t));
  std::vector<int64_t> out(v.size() / sizeof(int64_t));
  if (!out.empty()) std::memcpy(out.data(), v.data(), v.size());
  return out;
}

namespace {
bool IsCode(Code code) { return CodeName(code) != "UNKNOWN"; }
}  // namespace

void PutStatus(WireWriter& w, const Status& s) {
  w.I32(static_cast<int32_t>(s.code()));
  if (s.ok()) return;
  w.Str(s.message());
  const Cause& c = s.cause();
  w.I32(c.rank);
  w.I32(c.sys_errno);
  w.Str(c.path);
  w.Str(c.name);
  w.Str(c.field);
  w.U64(s.ranks().size());
  for (const RankReport& r : s.ranks()) {
    w.I32(r.rank);
    w.U32(static_cast<uint32_t>(r.condition));
    w.U64(r.heartbeat_age_ns);
    w.I64(r.phase_step);
    w.Str(r.host);
    w.Str(r.phase);
    w.Str(r.doing);
    w.Str(r.last_call);
  }
}

Status GetStatus(WireReader& r) {
  const auto code = static_cast<Code>(r.I32());
  if (code == Code::kOk) return Status();
  if (!IsCode(code)) r.Refuse();
  std::string message = r.Str();
  Cause cause;
  cause.rank = r.I32();
  cause.sys_errno = r.I32();
  cause.path = r.Str();
  cause.name = r.Str();
  cause.field = r.Str();
  std::vector<RankReport> ranks(r.Count(56));
  for (RankReport& rank : ranks) {
    rank.rank = r.I32();
    rank.condition = static_cast<Condition>(r.U32());
    if (rank.condition < Condition::kAliveElsewhere || rank.condition > Condition::kLeft) {
      r.Refuse();
    }
    rank.heartbeat_age_ns = r.U64();
    rank.phase_step = r.I64();
    rank.host = r.Str();
    rank.phase = r.Str();
    rank.doing = r.Str();
    rank.last_call = r.Str();
  }
  return Status(code, std::move(message), std::move(cause)).WithRanks(std::move(ranks));
}

}  // namespace ckpt
