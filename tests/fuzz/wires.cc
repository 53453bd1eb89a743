// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What ranks bring to a save and are told in it or in a load: every decoder of bytes of another
// rank above src/comm.
#include <functional>

#include "core/load.h"
#include "core/save.h"
#include "fuzz/target.h"

namespace ckpt::fuzz {
namespace {

// What decodes can be sent on, and arrives as the same thing: one more trip changes nothing.
template <typename T>
void Trip(std::string_view bytes, Result<T> (*decode)(std::string_view), Bytes (*encode)(const T&),
          void (*check)(const T&) = nullptr) {
  const Result<T> first = decode(bytes);
  if (!first.ok()) return Require(first.status().code() != Code::kOk, "an error has a code");
  if (check != nullptr) check(*first);
  const Bytes sent = encode(*first);
  const Result<T> second = decode(sent);
  Require(second.ok(), "what was decoded can be sent on");
  Require(encode(*second) == sent, "what is sent on arrives as it was");
}

void CheckState(const RankState& s) {
  for (const RankState::Shard& shard : s.shards) {
    Require(shard.tensor < s.tensors.size(), "a shard's tensor exists");
    Require(CheckGeometry(s.tensors[shard.tensor], shard.geometry).ok(), "a shard lies in it");
  }
}

void CheckPlan(const RankPlan& p) {
  for (const PlanExtent& e : p.extents) {
    Require(e.header_bytes <= e.range.size(), "a header fits its extent");
    for (const PlanPart& part : e.parts) {
      const PlacedTensor& t = p.tensors.at(part.tensor);
      Require(part.range.begin >= e.range.begin && part.range.end <= e.range.end,
              "a part lies in its extent");
      Require(part.range.begin >= t.offset && part.range.end <= t.offset + t.desc.bytes,
              "a part lies in its tensor");
      Require(CheckGeometry(t.desc, part.geometry).ok(), "a part's shard lies in its tensor");
    }
  }
}

Result<ProbeOrder> DecodeProbe(std::string_view bytes) {
  auto order = DecodeProbeOrder(bytes);
  if (!order) return Status(Code::kComm, "no probe order");
  return std::move(*order);
}

enum Kind : uint8_t {
  kState,
  kPlan,
  kRequest,
  kProbe,
  kNames,
  kOrder,
  kVote,
  kPull,
  kChoice,
  kCatalog,
  kKinds
};

Bytes Of(Kind kind, const Bytes& message) { return Bytes(1, static_cast<char>(kind)) + message; }

RankState SomeState() {
  RankState s;
  s.tensors = {*MakeTensor("model", "w", kF32, {4, 6}), *MakeTensor("optim", "m", kBF16, {}),
               *MakeTensor("model", "none", kI64, {0, 3})};
  s.shards = {{0, *MakeBox(s.tensors[0], {0, 2}, {4, 3})}, {1, MakeWhole(s.tensors[1])}, {2, {}}};
  s.blobs = {{"rng", BlobScope::kPerRank, 16, 0x1234, 2},
             {"config.json", BlobScope::kFile, 9, 1, 0}};
  s.aliases = {{"model", "tied", "w"}};
  s.required = {0};
  return s;
}

RankPlan SomePlan() {
  RankPlan p;
  p.tensors = {{*MakeTensor("model", "w", kF32, {4, 6}), 64}};
  PlanExtent e;
  e.range = {0, 160};
  e.header_bytes = 64;
  PlanPart part;
  part.range = {64, 160};
  part.geometry = MakeWhole(p.tensors[0].desc);
  part.source_rank = 1;
  e.parts = {part};
  p.extents = {e};
  return p;
}

SaveOrder SomeOrder() {
  SaveOrder order;
  order.staging = ".staging-1";
  order.files = {{"model.safetensors", 160}};
  order.hash_shards = {0, 7};
  order.plan = SomePlan();
  return order;
}

}  // namespace

void RunWires(std::string_view input) {
  if (input.empty()) return;
  const auto kind = static_cast<Kind>(static_cast<uint8_t>(input[0]) % kKinds);
  const std::string_view bytes = input.substr(1);
  switch (kind) {
    case kState:
      return Trip<RankState>(bytes, DecodeRankState, EncodeRankState, CheckState);
    case kPlan:
      return Trip<RankPlan>(bytes, DecodeRankPlan, EncodeRankPlan, CheckPlan);
    case kRequest:
      return Trip<SaveRequest>(bytes, DecodeRequest, EncodeRequest);
    case kProbe:
      return Trip<ProbeOrder>(bytes, DecodeProbe, EncodeProbeOrder);
    case kNames:
      return Trip<std::vector<std::string>>(bytes, DecodeNames, EncodeNames);
    case kOrder:
      return Trip<SaveOrder>(bytes, DecodeOrder, EncodeOrder);
    case kVote:
      return Trip<SaveVote>(bytes, DecodeVote, EncodeVote);
    case kPull:
      return Trip<PullRequest>(bytes, DecodePull, EncodePull);
    case kChoice:
      return Trip<LoadChoice>(bytes, DecodeChoice, EncodeChoice);
    case kCatalog:
      return Trip<Catalog>(bytes, DecodeCatalog, EncodeCatalog);
    case kKinds:
      return;
  }
}

Seeds WireSeeds() {
  const auto huge = [](std::initializer_list<uint8_t> head) {
    WireWriter w;
    for (const uint8_t b : head) w.U8(b);
    w.U64(~uint64_t{0} / 64);
    return w.Take();
  };
  return {
      {"state", Of(kState, EncodeRankState(SomeState()))},
      {"state-huge-count", Of(kState, huge({1}))},
      {"plan", Of(kPlan, EncodeRankPlan(SomePlan()))},
      {"plan-huge-count", Of(kPlan, huge({}))},
      {"request",
       Of(kRequest, EncodeRequest({{"node", "id"}, "/root", true, EncodeRankState(SomeState())}))},
      {"probe", Of(kProbe, EncodeProbeOrder({"nonce", true}))},
      {"names", Of(kNames, EncodeNames({"a", "b"}))},
      {"names-huge-count", Of(kNames, huge({}))},
      {"order", Of(kOrder, EncodeOrder(SomeOrder()))},
      {"vote", Of(kVote, EncodeVote({{{1, 2, 3}, {}}, {{0xdeadbeef}}}))},
      {"vote-huge-count", Of(kVote, huge({}))},
      {"pull", Of(kPull, EncodePull({3, {10, 20}}))},
      {"probe-cut", Of(kProbe, EncodeProbeOrder({"nonce", true}).substr(0, 6))},
  };
}

}  // namespace ckpt::fuzz
