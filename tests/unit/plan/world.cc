// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// See world.h.
#include "unit/plan/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace ckpt::testing {
namespace {

int64_t Below(std::mt19937_64& rng, int64_t n) {  // 0 .. n-1; 0 for n <= 1
  return n <= 1 ? 0 : static_cast<int64_t>(rng() % static_cast<uint64_t>(n));
}

std::vector<Geometry> FlatPieces(const TensorDesc& t, int64_t begin, int64_t end,
                                 std::mt19937_64& rng) {
  std::vector<Geometry> out;
  while (begin < end) {
    const int64_t n = 1 + Below(rng, end - begin);
    out.push_back(*MakeFlat(t, begin, n));
    begin += n;
  }
  return out;
}

void BoxPieces(const TensorDesc& t, Dims offset, Dims extent, int cuts, std::mt19937_64& rng,
               std::vector<Geometry>* out) {
  const auto dim = static_cast<size_t>(Below(rng, static_cast<int64_t>(extent.size())));
  if (cuts == 0 || extent[dim] < 2) {
    out->push_back(*MakeBox(t, offset, extent));
    return;
  }
  const int64_t n = 1 + Below(rng, extent[dim] - 1);
  Dims rest_offset = offset, rest_extent = extent;
  rest_offset[dim] += n;
  rest_extent[dim] -= n;
  extent[dim] = n;
  BoxPieces(t, offset, extent, cuts - 1, rng, out);
  BoxPieces(t, rest_offset, rest_extent, cuts - 1, rng, out);
}

std::vector<int> RandomRanks(size_t world, std::mt19937_64& rng) {
  std::vector<int> out;
  for (size_t r = 0; r < world; ++r) out.push_back(static_cast<int>(r));
  std::shuffle(out.begin(), out.end(), rng);
  const uint64_t kind = rng() % 4;
  if (kind < 2) out.resize(1);
  if (kind == 2) out.resize(1 + rng() % out.size());
  return out;
}

void GiveRandomly(World* w, size_t tensor, std::mt19937_64& rng) {
  const TensorDesc& t = w->tensors[tensor];
  const bool everywhere = rng() % 4 == 0;
  for (const Geometry& g : RandomPieces(t, rng)) {
    for (int r : RandomRanks(w->ranks.size(), rng)) {
      if (!everywhere) w->Give(r, tensor, g);
    }
    for (size_t r = 0; everywhere && r < w->ranks.size(); ++r) {
      w->Give(static_cast<int>(r), tensor, g);
    }
  }
  w->Know(static_cast<int>(rng() % w->ranks.size()), tensor);
  for (size_t r = 0; r < w->ranks.size(); ++r) {
    if (rng() % 4 == 0) w->Know(static_cast<int>(r), tensor);
    if (rng() % 4 == 0) w->Give(static_cast<int>(r), tensor, Geometry{});
  }
}

}  // namespace

size_t World::Add(const std::string& name, DType dtype, Dims shape, const std::string& group) {
  TensorDesc t{group, name, dtype, std::move(shape), 0, 0};
  EXPECT_TRUE(SizeTensor(&t).ok());
  tensors.push_back(t);
  return tensors.size() - 1;
}

uint32_t World::LocalIndex(int rank, size_t tensor) {
  auto& known = ranks[static_cast<size_t>(rank)].tensors;
  const auto it = std::find(known.begin(), known.end(), tensors[tensor]);
  if (it != known.end()) return static_cast<uint32_t>(it - known.begin());
  known.push_back(tensors[tensor]);
  return static_cast<uint32_t>(known.size() - 1);
}

void World::Give(int rank, size_t tensor, const Geometry& g) {
  const uint32_t local = LocalIndex(rank, tensor);
  ranks[static_cast<size_t>(rank)].shards.push_back({local, g});
}
void World::Know(int rank, size_t tensor) { LocalIndex(rank, tensor); }
void World::Box(int rank, size_t tensor, const Dims& offset, const Dims& extent) {
  Give(rank, tensor, *MakeBox(tensors[tensor], offset, extent));
}
void World::Flat(int rank, size_t tensor, int64_t begin, int64_t count) {
  Give(rank, tensor, *MakeFlat(tensors[tensor], begin, count));
}
void World::Whole(int rank, size_t tensor) { Give(rank, tensor, MakeWhole(tensors[tensor])); }
void World::WholeOnAll(size_t tensor) {
  for (size_t r = 0; r < ranks.size(); ++r) Whole(static_cast<int>(r), tensor);
}
void World::Slices(size_t tensor, size_t dim, const std::vector<int64_t>& sizes) {
  Dims offset(tensors[tensor].shape.size(), 0), extent = tensors[tensor].shape;
  for (size_t r = 0; r < sizes.size(); ++r) {
    extent[dim] = sizes[r];
    Box(static_cast<int>(r), tensor, offset, extent);
    offset[dim] += sizes[r];
  }
}

void World::File(const std::string& name, uint64_t header_bytes, const std::vector<size_t>& of) {
  FileLayout file;
  file.name = name;
  for (uint64_t i = 0; i < header_bytes; ++i) file.header.push_back(static_cast<char>(i * 7 + 1));
  file.bytes = header_bytes;
  for (size_t t : of) {
    file.group = tensors[t].group;
    file.tensors.push_back({tensors[t], file.bytes});
    file.bytes += tensors[t].bytes;
  }
  files.push_back(std::move(file));
}

std::vector<int64_t> ElementsOf(const TensorDesc& t, const Geometry& g) {
  std::vector<int64_t> out;
  int64_t count = 1;
  for (int64_t n : t.shape) count *= n;
  for (int64_t e = 0; e < count; ++e) {
    bool inside = !g.is_box && e >= g.begin && e < g.begin + g.count;
    if (g.is_box) {
      inside = true;
      int64_t rest = e;
      for (size_t k = t.shape.size(); k-- > 0; rest /= t.shape[k]) {
        const int64_t i = rest % t.shape[k];
        inside = inside && i >= g.offset[k] && i < g.offset[k] + g.extent[k];
      }
    }
    if (inside) out.push_back(e);
  }
  return out;
}

uint8_t TensorByte(const TensorDesc& t, uint64_t at) {
  const uint64_t seed = std::hash<std::string>()(t.group + "/" + t.name);
  return static_cast<uint8_t>((at + seed) * 0x9E3779B97F4A7C15u >> 37);
}

Memory ShardMemory(const TensorDesc& t, const Geometry& g) {
  Memory out;
  for (int64_t e : ElementsOf(t, g)) {
    for (uint64_t b = 0; b < t.elem_bytes; ++b) {
      out.push_back(TensorByte(t, static_cast<uint64_t>(e) * t.elem_bytes + b));
    }
  }
  return out;
}

Memory FileBytes(const FileLayout& file) {
  Memory out(file.header.begin(), file.header.end());
  for (const PlacedTensor& t : file.tensors) {
    for (uint64_t i = 0; i < t.desc.bytes; ++i) out.push_back(TensorByte(t.desc, i));
  }
  return out;
}

std::vector<Geometry> RandomPieces(const TensorDesc& t, std::mt19937_64& rng) {
  const int64_t count = MakeWhole(t).count;
  std::vector<Geometry> out;
  if (count == 0) return out;
  const uint64_t kind = t.shape.empty() ? 0 : rng() % 5;
  const Dims zero(t.shape.size(), 0);
  if (kind == 0) return {MakeWhole(t)};
  if (kind == 1) return FlatPieces(t, 0, count, rng);
  if (kind == 2) {  // slabs of one dimension
    const auto dim = static_cast<size_t>(Below(rng, static_cast<int64_t>(t.shape.size())));
    Dims offset = zero, extent = t.shape;
    while (offset[dim] < t.shape[dim]) {
      extent[dim] = 1 + Below(rng, t.shape[dim] - offset[dim]);
      out.push_back(*MakeBox(t, offset, extent));
      offset[dim] += extent[dim];
    }
    return out;
  }
  if (kind == 3) {
    BoxPieces(t, zero, t.shape, 4, rng, &out);
    return out;
  }
  const int64_t rows = Below(rng, t.shape[0]);  // flat above, boxes below
  out = FlatPieces(t, 0, count / t.shape[0] * rows, rng);
  Dims offset = zero, extent = t.shape;
  offset[0] = rows;
  extent[0] -= rows;
  BoxPieces(t, offset, extent, 3, rng, &out);
  return out;
}

World RandomWorld(std::mt19937_64& rng) {
  World w(static_cast<int>(1 + rng() % 9));
  const DType dtypes[] = {kI64, kF32, kBF16, kU8};
  const size_t file_count = 1 + rng() % 3;
  for (size_t f = 0; f < file_count; ++f) {
    std::vector<size_t> of;
    for (uint64_t i = rng() % 7; i > 0; --i) {
      Dims shape(rng() % 4);
      for (int64_t& n : shape) n = Below(rng, 9) + (rng() % 16 > 0);
      if (rng() % 8 == 0) shape = {Below(rng, 2000)};
      of.push_back(w.Add("t" + std::to_string(w.tensors.size()), dtypes[rng() % 4], shape));
    }
    w.File("f" + std::to_string(f), 8 + rng() % 100, of);
  }
  w.File("config.json", 0, {w.Add("config.json", kU8, {Below(rng, 300)}, "")});
  for (size_t t = 0; t < w.tensors.size(); ++t) GiveRandomly(&w, t, rng);
  if (rng() % 3 == 0) {
    for (RankState& r : w.ranks) r.may_write = rng() % 2 == 0;
    w.ranks[rng() % w.ranks.size()].may_write = true;
  }
  return w;
}

}  // namespace ckpt::testing
