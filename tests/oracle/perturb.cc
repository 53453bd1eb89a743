// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "oracle/perturb.h"

#include <algorithm>
#include <functional>

namespace oracle {
namespace {

struct Place {
  size_t rank, shard;
};

// One perturbation of a case: each function returns kind "" when there is no place for it.
class Fault {
 public:
  Fault(Rng* rng, const JobOptions& options, SaveCase* c) : rng_(rng), o_(options), c_(c) {}

  Perturbation Gap() {
    const auto tensor = AnyTensor([&](size_t k) { return Count(Of(k).shape) > 0; });
    if (tensor < 0) return {};
    std::vector<Place> held;
    for (const Place& at : ShardsOf(tensor))
      if (!Units(At(at)).empty()) held.push_back(at);
    const std::vector<int64_t> units = Units(At(rng_->Of(held)));
    for (const Place& at : held)
      if (Units(At(at)) == units) Empty(&At(at));
    // One of which nothing is left would lack what is required of it.
    for (const Place& at : ShardsOf(tensor)) At(at).flags &= ~CKPT_TENSOR_REQUIRED;
    return {"gap", CKPT_ERR_COVERAGE, Of(tensor).name};
  }

  // One unit twice, by a shard that is no copy of the one that has it already.
  Perturbation Overlap() {
    std::vector<Place> large;
    ForAll([&](Place at) {
      if (Units(At(at)).size() > 1) large.push_back(at);
    });
    if (large.empty()) return {};
    Shard s = At(rng_->Of(large));
    const std::vector<int64_t> units = Units(s);
    Describe(rng_, {true, {}, {}, rng_->Of(units), 1}, &s);
    return Extra("overlap", CKPT_ERR_COVERAGE, s);
  }

  Perturbation Copy() {
    std::vector<Place> copies;
    ForAll([&](Place at) {
      const Shard& s = At(at);
      if (Of(s.tensor).cast || Units(s).empty()) return;
      ForAll([&](Place other) {
        if (other.rank != at.rank && At(other).tensor == s.tensor && Units(At(other)) == Units(s))
          copies.push_back(at);
      });
    });
    if (copies.empty() || !o_.checks_replicas) return {};
    const Place at = rng_->Of(copies);
    const Shard& s = At(at);
    const int64_t bytes = FindDType(s.dtype).bytes;
    Perturbation p{"replica", CKPT_ERR_REPLICA, Of(s.tensor).name};
    p.rank = static_cast<int>(at.rank);
    p.shard = static_cast<int>(at.shard);
    p.byte = s.skew + rng_->Of(Places(s)) * bytes + rng_->In(0, bytes - 1);
    return p;
  }

  // A description that is not like the others', of no units.
  Perturbation OtherDType() {
    Shard s;
    if (!AnyShard(&s)) return {};
    std::vector<uint32_t> others;
    const DType& d = FindDType(Of(s.tensor).dtype);
    for (const DType& other : DTypes())
      if (other.code != d.code && other.per_unit == d.per_unit) others.push_back(other.code);
    if (others.empty()) return {};
    Empty(&s);
    s.dtype = rng_->Of(others);
    s.store_dtype = 0;
    return Extra("dtype", CKPT_ERR_MISMATCH, s);
  }

  Perturbation OtherShape() {
    Shard s;
    if (!AnyShard(&s)) return {};
    s.shape.push_back(FindDType(s.dtype).per_unit == 1 ? rng_->In(0, 3) : 2);
    Empty(&s);
    return Extra("shape", CKPT_ERR_MISMATCH, s);
  }

  Perturbation Required() {
    Shard s;
    s.group = "model";
    s.name = "required";
    s.shape = {3};
    s.dtype = CKPT_DTYPE(2, 32);
    Empty(&s);
    s.flags = CKPT_TENSOR_REQUIRED;
    return Extra("required", CKPT_ERR_NOT_FOUND, s);
  }

  Perturbation Aliases() {
    if (c_->model.tensors.empty()) return {};
    const Tensor& t = rng_->Of(c_->model.tensors);
    std::string other;
    for (const Tensor& u : c_->model.tensors)
      if (u.group == t.group && u.name != t.name) other = u.name;
    const int64_t kind = rng_->In(0, 3);
    if (kind == 0) return Tie(t.group, {{"x", "no such tensor"}}, CKPT_ERR_INVALID_ARGUMENT, "x");
    if (kind == 1) return Tie(t.group, {{"x", "y"}, {"y", "x"}}, CKPT_ERR_INVALID_ARGUMENT, "x");
    if (other.empty()) return {};
    if (kind == 2) return Tie(t.group, {{t.name, other}}, CKPT_ERR_MISMATCH, t.name);
    if (c_->parts.size() < 2) return {};
    for (const size_t rank : {0, 1}) {
      const Alias a{t.group, Spell(rank, t.group, "x"),
                    Spell(rank, t.group, rank ? other : t.name)};
      if (a.name.empty() || a.of.empty()) return {};
      c_->parts[rank].aliases.push_back(a);
    }
    return {"aliases", CKPT_ERR_MISMATCH, "x"};
  }

  Perturbation Blobs() {
    using BlobFault = Perturbation::BlobFault;
    if (c_->model.blobs.empty()) return {};
    const auto at = rng_->In(0, static_cast<int64_t>(c_->model.blobs.size()) - 1);
    const Blob& blob = c_->model.blobs[static_cast<size_t>(at)];
    Perturbation p{.kind = "blob", .status = CKPT_ERR_MISMATCH, .name = blob.name};
    p.rank = rng_->Of(blob.ranks);
    p.blob = static_cast<int>(at);
    if (blob.required && rng_->OneIn(2)) {
      p.status = CKPT_ERR_INVALID_ARGUMENT;
      p.fault = BlobFault::kMissing;
      // Where one rank is all there are, nobody asks for it.
      return blob.ranks.size() > 1 ? p : Perturbation{};
    }
    if (blob.scope == CKPT_BLOB_PER_RANK || blob.ranks.size() < 2) return {};
    p.fault = blob.bytes[0] > 0 && rng_->OneIn(2) ? BlobFault::kOther : BlobFault::kLonger;
    return p;
  }

  // Two local names that become one.
  Perturbation Collision() {
    Shard s;
    if (!AnyShard(&s)) return {};
    const size_t rank = AnyRank();
    const std::string name = Of(s.tensor).name;
    Part& part = c_->parts[rank];
    if (!part.renames.empty()) return {};
    part.renames.emplace_back("other.", "");
    for (const std::string& local : {name, "other." + name}) {
      s.name = local;
      Empty(&s);
      part.shards.push_back(s);
    }
    if (Renamed(part.renames, name) != name) return {};
    return {"collision", CKPT_ERR_INVALID_ARGUMENT, name};
  }

 private:
  const Tensor& Of(int64_t k) const { return c_->model.tensors[static_cast<size_t>(k)]; }
  Shard& At(Place p) { return c_->parts[p.rank].shards[p.shard]; }
  size_t AnyRank() {
    return static_cast<size_t>(rng_->In(0, static_cast<int64_t>(c_->parts.size()) - 1));
  }

  void ForAll(const std::function<void(Place)>& fn) {
    for (size_t r = 0; r < c_->parts.size(); ++r)
      for (size_t i = 0; i < c_->parts[r].shards.size(); ++i) fn({r, i});
  }
  std::vector<Place> ShardsOf(int64_t tensor) {
    std::vector<Place> out;
    ForAll([&](Place at) {
      if (At(at).tensor == tensor) out.push_back(at);
    });
    return out;
  }
  int64_t AnyTensor(const std::function<bool(size_t)>& good) {
    std::vector<int64_t> out;
    for (size_t k = 0; k < c_->model.tensors.size(); ++k)
      if (good(k)) out.push_back(static_cast<int64_t>(k));
    return out.empty() ? -1 : rng_->Of(out);
  }
  bool AnyShard(Shard* s) {
    std::vector<Place> all;
    ForAll([&](Place at) { all.push_back(at); });
    if (all.empty()) return false;
    *s = At(rng_->Of(all));
    return true;
  }

  static void Empty(Shard* s) {
    s->kind = CKPT_SHARD_FLAT;
    s->begin = s->count = 0;
    s->offset.clear();
    s->extent.clear();
    s->strides.clear();
    s->first = s->span = 0;
  }

  // As the rank spells it already, or else the stored name itself if it stays what it is.
  std::string Spell(size_t rank, const std::string& group, const std::string& stored) {
    const Part& part = c_->parts[rank];
    for (const Shard& s : part.shards)
      if (s.group == group && Renamed(part.renames, s.name) == stored) return s.name;
    return Renamed(part.renames, stored) == stored ? stored : "";
  }

  // Given by one more rank, which spells names in its own way.
  Perturbation Extra(const std::string& kind, ckpt_status status, Shard s) {
    const std::string name = s.tensor < 0 ? s.name : Of(s.tensor).name;
    const size_t rank = AnyRank();
    s.name = Spell(rank, s.group, name);
    if (s.name.empty()) return {};
    s.strides.clear();
    s.first = 0;
    s.span = s.count;
    c_->parts[rank].shards.push_back(s);
    return {kind, status, name};
  }

  Perturbation Tie(const std::string& group, const Pairs& aliases, ckpt_status status,
                   const std::string& name) {
    const size_t rank = AnyRank();
    for (const auto& [alias, of] : aliases) {
      const Alias a{group, Spell(rank, group, alias), Spell(rank, group, of)};
      if (a.name.empty() || a.of.empty()) return {};
      c_->parts[rank].aliases.push_back(a);
    }
    return {"aliases", status, name};
  }

  Rng* const rng_;
  const JobOptions& o_;
  SaveCase* const c_;
};

Perturbation Try(Rng* rng, const JobOptions& options, SaveCase* c) {
  Fault fault(rng, options, c);
  switch (rng->In(0, 8)) {
    case 0:
      return fault.Gap();
    case 1:
      return fault.Overlap();
    case 2:
      return fault.Copy();
    case 3:
      return fault.OtherDType();
    case 4:
      return fault.OtherShape();
    case 5:
      return fault.Required();
    case 6:
      return fault.Aliases();
    case 7:
      return fault.Blobs();
    default:
      return fault.Collision();
  }
}

}  // namespace

Perturbation Perturb(uint64_t seed, const JobOptions& options, SaveCase* c) {
  Rng rng(Mix(seed, 3));
  for (int tries = 0; tries < 5; ++tries) {
    SaveCase wrong = *c;
    const Perturbation p = Try(&rng, options, &wrong);
    if (p.kind.empty()) continue;
    *c = std::move(wrong);
    return p;
  }
  return {};
}

}  // namespace oracle
