// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Random splits of tensors over ranks, and how shards lie in memory.
#include <algorithm>
#include <set>

#include "oracle/draw.h"

namespace oracle {

namespace {

struct Piece {
  Region region;
  std::vector<int> holders;
};

int AnyRank(Rng* rng, int ranks) { return static_cast<int>(rng->In(0, ranks - 1)); }

std::vector<int> Holders(Rng* rng, int ranks) {
  std::vector<int> out = {AnyRank(rng, ranks)};
  if (ranks > 1 && rng->OneIn(4)) {
    const int other = AnyRank(rng, ranks);
    if (other != out[0]) out.push_back(other);
  }
  return out;
}

// Cuts a box in two until it is small or chance says so.
void CutBox(Rng* rng, const Region& box, int depth, std::vector<Region>* out) {
  std::vector<size_t> cuttable;
  for (size_t k = 0; k < box.extent.size(); ++k)
    if (box.extent[k] > 1) cuttable.push_back(k);
  if (cuttable.empty() || depth == 0 || rng->OneIn(5)) {
    out->push_back(box);
    return;
  }
  const size_t k = rng->Of(cuttable);
  Region low = box, high = box;
  low.extent[k] = rng->In(1, box.extent[k] - 1);
  high.offset[k] += low.extent[k];
  high.extent[k] -= low.extent[k];
  CutBox(rng, low, depth - 1, out);
  CutBox(rng, high, depth - 1, out);
}

// Along one dimension, into `ranks` parts of which some may be empty.
std::vector<Piece> Slabs(Rng* rng, const Dims& shape, size_t k, int ranks) {
  std::vector<int64_t> cuts = {0, shape[k]};
  for (int i = 1; i < ranks; ++i) cuts.push_back(rng->In(0, shape[k]));
  std::sort(cuts.begin(), cuts.end());
  std::vector<Piece> pieces;
  for (int r = 0; r < ranks; ++r) {
    Region region = WholeOf(shape);
    region.offset[k] = cuts[static_cast<size_t>(r)];
    region.extent[k] = cuts[static_cast<size_t>(r) + 1] - region.offset[k];
    pieces.push_back({region, {r}});
  }
  return pieces;
}

std::vector<Piece> FlatRanges(Rng* rng, int64_t count, int ranks) {
  std::set<int64_t> cuts = {0, count};
  for (int64_t n = rng->In(0, 2 * ranks); n > 0; --n) cuts.insert(rng->In(0, count));
  std::vector<Piece> pieces;
  for (auto at = cuts.begin(); std::next(at) != cuts.end(); ++at)
    pieces.push_back({{true, {}, {}, *at, *std::next(at) - *at}, Holders(rng, ranks)});
  return pieces;
}

std::vector<Piece> Split(Rng* rng, const Dims& shape, int ranks) {
  const int64_t way = rng->In(0, 5);
  if (way == 1 && !shape.empty()) return Slabs(rng, shape, 0, ranks);
  if (way == 2 && !shape.empty()) return Slabs(rng, shape, shape.size() - 1, ranks);
  if (way == 3 && Count(shape) > 0) return FlatRanges(rng, Count(shape), ranks);
  if (way >= 4 && Count(shape) > 0) {
    std::vector<Region> boxes;
    CutBox(rng, WholeOf(shape), static_cast<int>(rng->In(1, 4)), &boxes);
    std::vector<Piece> pieces;
    for (const Region& box : boxes) pieces.push_back({box, Holders(rng, ranks)});
    return pieces;
  }
  Piece whole{WholeOf(shape), {AnyRank(rng, ranks)}};  // on one rank, or on some
  for (int r = 0; rng->OneIn(2) && r < ranks; ++r)
    if (r != whole.holders[0] && rng->OneIn(2)) whole.holders.push_back(r);
  return {whole};
}

// Innermost first in some order of the dimensions, each stride at least what lies inside.
void Nest(Rng* rng, const Dims& extent, bool packed, int zero, Shard* s) {
  std::vector<size_t> order(extent.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  if (packed) order.pop_back();
  rng->Shuffle(&order);
  int64_t span = packed ? extent.back() : 1;
  s->strides.assign(extent.size(), 1);
  for (const size_t k : order) {
    if (static_cast<int>(k) == zero) {
      s->strides[k] = 0;
    } else if (extent[k] == 1) {
      s->strides[k] = rng->In(-5, 5);
    } else {
      s->strides[k] = span + (rng->OneIn(3) ? rng->In(1, 3) : 0);
      span += (extent[k] - 1) * s->strides[k];
      if (rng->OneIn(4)) s->strides[k] = -s->strides[k];
    }
  }
}

bool Distinct(const Shard& s) {
  std::vector<int64_t> places = Places(s);
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) == places.end();
}

void Strides(Rng* rng, Use use, int same_along, Shard* s) {
  const Dims& extent = s->kind == CKPT_SHARD_BOX ? s->extent : s->shape;
  if (extent.empty()) return;
  const bool packed = FindDType(s->dtype).per_unit > 1;
  if (!packed && Count(extent) <= 200 && rng->OneIn(4)) {  // any that let no two share a place
    s->strides.assign(extent.size(), 0);
    for (int64_t& stride : s->strides) stride = rng->In(-9, 9);
    if (Distinct(*s)) return;
  }
  const bool broadcast = use == Use::kSave && same_along >= 0 && !rng->OneIn(4);
  Nest(rng, extent, packed, broadcast ? same_along : -1, s);
}

Shard ShardOf(const Tensor& t, int index, const std::string& local) {
  Shard s;
  s.tensor = index;
  s.group = t.group;
  s.name = local;
  s.shape = t.shape;
  s.dtype = t.dtype;
  return s;
}

void AddShard(Rng* rng, const Tensor& t, Shard s, const Region& region, Part* part) {
  Describe(rng, region, &s);
  if (s.dtype != t.dtype || rng->OneIn(3)) s.store_dtype = t.dtype;
  s.flags = static_cast<uint32_t>(rng->In(0, 7));  // OPTIONAL, READY, REQUIRED: all are held
  DrawMemory(rng, Use::kSave, t.same_along, &s);
  part->shards.push_back(s);
}

void SplitTensor(Rng* rng, const Model& model, int k, const std::vector<Speller>& names,
                 std::vector<Part>* parts) {
  const Tensor& t = model.tensors[static_cast<size_t>(k)];
  const int ranks = static_cast<int>(parts->size());
  std::vector<Piece> pieces = Split(rng, t.shape, ranks);
  if (rng->OneIn(3))
    pieces.push_back({{true, {}, {}, rng->In(0, Count(t.shape)), 0}, {AnyRank(rng, ranks)}});
  for (const Piece& piece : pieces) {
    // Copies in different dtypes are equal only where all of them have the values.
    uint32_t dtype = t.cast ? rng->Of(FloatDTypes()) : t.dtype;
    for (const int r : piece.holders) {
      if (t.exact) dtype = rng->Of(FloatDTypes());
      Shard s = ShardOf(t, k, names[static_cast<size_t>(r)].Local(t.name));
      s.dtype = dtype;
      AddShard(rng, t, s, piece.region, &(*parts)[static_cast<size_t>(r)]);
    }
  }
}

void DeclareAliases(Rng* rng, const Model& model, const std::vector<Speller>& names,
                    std::vector<Part>* parts) {
  for (const Alias& alias : model.aliases) {
    const int certain = AnyRank(rng, static_cast<int>(parts->size()));
    for (size_t r = 0; r < parts->size(); ++r) {
      if (static_cast<int>(r) != certain && rng->OneIn(2)) continue;
      (*parts)[r].aliases.push_back(
          {alias.group, names[r].Local(alias.name), names[r].Local(alias.of)});
    }
  }
  for (Part& part : *parts) rng->Shuffle(&part.aliases);
}

}  // namespace

Region WholeOf(const Dims& shape) { return {false, Dims(shape.size(), 0), shape, 0, 0}; }

Region AnyRegion(Rng* rng, const Dims& shape) {
  Region region = WholeOf(shape);
  const int64_t count = Count(shape);
  if (rng->OneIn(3)) return region;
  if (rng->OneIn(3)) {
    const int64_t begin = rng->In(0, count);
    return {true, {}, {}, begin, rng->In(0, count - begin)};
  }
  for (size_t k = 0; k < shape.size(); ++k) {
    if (rng->OneIn(2)) continue;
    region.offset[k] = rng->In(0, shape[k]);
    region.extent[k] = rng->In(0, shape[k] - region.offset[k]);
  }
  return region;
}

void Describe(Rng* rng, const Region& region, Shard* s) {
  s->kind = region.flat ? CKPT_SHARD_FLAT : CKPT_SHARD_BOX;
  s->offset = region.offset;
  s->extent = region.extent;
  s->begin = region.begin;
  s->count = region.count;
  if (region.flat || rng->OneIn(2)) return;
  const std::vector<int64_t> units = Units(*s);
  const auto count = static_cast<int64_t>(units.size());
  if (region.extent == s->shape && rng->OneIn(2)) {
    s->kind = CKPT_SHARD_WHOLE;
  } else if (count > 0 && units.back() - units.front() == count - 1) {  // one run of the tensor
    s->kind = CKPT_SHARD_FLAT;
    s->begin = units.front();
    s->count = count;
  }
}

void DrawMemory(Rng* rng, Use use, int same_along, Shard* s) {
  if (s->kind != CKPT_SHARD_FLAT && rng->OneIn(2)) Strides(rng, use, same_along, s);
  s->skew = rng->OneIn(3) ? rng->In(0, 17) : 0;
  const std::vector<int64_t> places = Places(*s);
  if (places.empty()) return;
  const auto [low, high] = std::minmax_element(places.begin(), places.end());
  const int64_t before = rng->In(0, 2), lowest = *low, highest = *high;
  s->first = before - lowest;
  s->span = before + highest - lowest + 1;
}

Speller::Speller(Rng* rng, const std::vector<std::string>& stored) {
  static const std::vector<Pairs> schemes = {{},
                                             {{"_orig_mod.", ""}},
                                             {{"", "layer."}},
                                             {{"wrap.", "module."}, {"_orig_mod.", ""}},
                                             {{"x.layer", "layer"}, {"x.", ""}, {"y", "x."}},
                                             {{"", ""}},
                                             {{"a", "b"}, {"b", "a"}}};
  renames_ = rng->OneIn(2) ? Pairs() : rng->Of(schemes);
  if (Try(rng, stored)) return;
  renames_.clear();
  Try(rng, stored);
}

bool Speller::Try(Rng* rng, const std::vector<std::string>& stored) {
  local_.clear();
  for (const std::string& name : stored) {
    std::vector<std::string> candidates = {name};
    for (const auto& [from, to] : renames_)
      if (name.substr(0, to.size()) == to) candidates.push_back(from + name.substr(to.size()));
    std::vector<std::string> good;
    for (const std::string& c : candidates)
      if (!c.empty() && c != "__metadata__" && Renamed(renames_, c) == name) good.push_back(c);
    if (good.empty()) return false;
    local_[name] = rng->Of(good);
  }
  return true;
}

SaveCase DrawSave(uint64_t seed, int ranks, const JobOptions& options) {
  Rng rng(Mix(seed, 1));
  SaveCase c;
  c.seed = seed;
  c.model = DrawModel(&rng, ranks, options.large_tensors);
  c.tag = rng.OneIn(2) ? "" : "tag \"" + std::to_string(seed) + "\"\n";
  std::vector<std::string> stored;
  for (const Tensor& t : c.model.tensors) stored.push_back(t.name);
  for (const Alias& a : c.model.aliases) stored.push_back(a.name);
  std::vector<Speller> names;
  for (int r = 0; r < ranks; ++r) names.emplace_back(&rng, stored);
  c.parts.resize(static_cast<size_t>(ranks));
  for (int k = 0; k < static_cast<int>(c.model.tensors.size()); ++k)
    SplitTensor(&rng, c.model, k, names, &c.parts);
  DeclareAliases(&rng, c.model, names, &c.parts);
  for (size_t r = 0; r < c.parts.size(); ++r) {
    c.parts[r].renames = names[r].renames();
    rng.Shuffle(&c.parts[r].shards);
  }
  return c;
}

}  // namespace oracle
