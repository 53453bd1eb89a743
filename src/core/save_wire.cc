// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Encoding of what ranks and coordinator send each other in a save.  Test:
// tests/unit/core/save_wire_test.cc
#include "core/save.h"

namespace ckpt {
namespace {

constexpr uint8_t kOrder = 0, kKept = 1, kProbe = 2;  // the first byte of what a rank is told

Status Malformed(std::string_view what) {
  return Status(Code::kComm, std::string("malformed ") + std::string(what));
}

void PutU32s(WireWriter& w, const std::vector<uint32_t>& v) {
  w.U64(v.size());
  for (uint32_t x : v) w.U32(x);
}

std::vector<uint32_t> GetU32s(WireReader& r) {
  std::vector<uint32_t> out(r.Count(sizeof(uint32_t)));
  for (uint32_t& x : out) x = r.U32();
  return out;
}

void PutLists(WireWriter& w, const std::vector<std::vector<uint32_t>>& lists) {
  w.U64(lists.size());
  for (const auto& list : lists) PutU32s(w, list);
}

std::vector<std::vector<uint32_t>> GetLists(WireReader& r) {
  std::vector<std::vector<uint32_t>> out(r.Count(sizeof(uint64_t)));
  for (auto& list : out) list = GetU32s(r);
  return out;
}

}  // namespace

Bytes EncodeRequest(const SaveRequest& request) {
  WireWriter w;
  w.Str(request.place.host);
  w.Str(request.place.machine);
  w.Str(request.root);
  w.U8(request.may_write ? 1 : 0);
  w.Str(request.state);
  return w.Take();
}

Result<SaveRequest> DecodeRequest(std::string_view bytes) {
  WireReader r(bytes);
  SaveRequest request;
  request.place.host = r.Str();
  request.place.machine = r.Str();
  request.root = r.Str();
  request.may_write = r.U8() != 0;
  request.state = r.Str();
  if (!r.AtEnd()) return Malformed("save request");
  return request;
}

Bytes EncodeProbeOrder(const ProbeOrder& order) {
  WireWriter w;
  w.U8(kProbe);
  w.Str(order.nonce);
  w.U8(order.writes ? 1 : 0);
  return w.Take();
}

std::optional<ProbeOrder> DecodeProbeOrder(std::string_view bytes) {
  WireReader r(bytes);
  if (r.U8() != kProbe) return std::nullopt;
  ProbeOrder order;
  order.nonce = r.Str();
  order.writes = r.U8() != 0;
  if (!r.AtEnd()) return std::nullopt;
  return order;
}

Bytes EncodeNames(const std::vector<std::string>& names) {
  WireWriter w;
  w.U64(names.size());
  for (const std::string& name : names) w.Str(name);
  return w.Take();
}

Result<std::vector<std::string>> DecodeNames(std::string_view bytes) {
  WireReader r(bytes);
  std::vector<std::string> names(r.Count(sizeof(uint64_t)));
  for (std::string& name : names) name = r.Str();
  if (!r.AtEnd()) return Malformed("list of names");
  return names;
}

Bytes EncodeOrder(const SaveOrder& order) {
  WireWriter w;
  w.U8(order.kept ? kKept : kOrder);
  w.Str(order.staging);
  w.U64(order.files.size());
  for (const auto& [name, bytes] : order.files) {
    w.Str(name);
    w.U64(bytes);
  }
  PutU32s(w, order.hash_shards);
  w.U64(order.hash_seed);
  w.Str(EncodeRankPlan(order.plan));
  return w.Take();
}

Result<SaveOrder> DecodeOrder(std::string_view bytes) {
  WireReader r(bytes);
  SaveOrder order;
  const uint8_t kind = r.U8();
  if (kind != kOrder && kind != kKept) return Malformed("save order");
  order.kept = kind == kKept;
  order.staging = r.Str();
  order.files.resize(r.Count(2 * sizeof(uint64_t)));
  for (auto& [name, size] : order.files) {
    name = r.Str();
    size = r.U64();
  }
  order.hash_shards = GetU32s(r);
  order.hash_seed = r.U64();
  const std::string plan = r.Str();
  if (!r.AtEnd()) return Malformed("save order");
  CKPT_ASSIGN_OR_RETURN(order.plan, DecodeRankPlan(plan));
  return order;
}

Bytes EncodeVote(const SaveVote& vote) {
  WireWriter w;
  PutLists(w, vote.contributions);
  PutLists(w, vote.shard_hashes);
  return w.Take();
}

Result<SaveVote> DecodeVote(std::string_view bytes) {
  WireReader r(bytes);
  SaveVote vote;
  vote.contributions = GetLists(r);
  vote.shard_hashes = GetLists(r);
  if (!r.AtEnd()) return Malformed("save vote");
  return vote;
}

}  // namespace ckpt
