// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The load plan against a byte-by-byte judge: what is read, and what arrives.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "meta/memory.h"
#include "unit/plan/oracle.h"

namespace ckpt {
namespace {

using testing::Memory;
using testing::World;

std::vector<WantedShard> WantedOf(const World& w, const RankState& rank) {
  std::vector<WantedShard> out;
  for (const RankState::Shard& s : rank.shards) {
    for (uint32_t f = 0; f < w.files.size(); ++f) {
      for (const PlacedTensor& t : w.files[f].tensors) {
        if (t.desc == rank.tensors[s.tensor]) out.push_back({f, t, s.geometry});
      }
    }
  }
  return out;
}

std::vector<uint64_t> SizesOf(const World& w) {
  std::vector<uint64_t> out;
  for (const FileLayout& f : w.files) out.push_back(f.bytes);
  return out;
}

// Blocks (file, number) that hold wanted bytes, by looking at every byte.
std::set<std::pair<uint32_t, uint64_t>> WantedBlocks(const std::vector<WantedShard>& wanted,
                                                     uint64_t block) {
  std::set<std::pair<uint32_t, uint64_t>> out;
  for (const WantedShard& s : wanted) {
    const TensorDesc& t = s.tensor.desc;
    for (int64_t e : testing::ElementsOf(t, s.geometry)) {
      const uint64_t at = s.tensor.offset + static_cast<uint64_t>(e) * t.elem_bytes;
      for (uint64_t b = at / block; b <= (at + t.elem_bytes - 1) / block; ++b) {
        out.insert({s.file, b});
      }
    }
  }
  return out;
}

void JudgeExtents(const std::vector<ReadExtent>& extents, const std::vector<WantedShard>& wanted,
                  const World& w, uint64_t block, uint64_t max_bytes) {
  std::set<std::pair<uint32_t, uint64_t>> read;
  for (size_t i = 0; i < extents.size(); ++i) {
    const ReadExtent& e = extents[i];
    ASSERT_TRUE(e.range.begin < e.range.end && e.range.size() <= max_bytes);
    ASSERT_EQ(e.range.begin % block, 0u);
    ASSERT_TRUE(e.range.end % block == 0 || e.range.end == w.files[e.file].bytes);
    ASSERT_FALSE(e.parts.empty());
    if (i > 0) {
      const ReadExtent& p = extents[i - 1];
      ASSERT_TRUE(p.file < e.file || (p.file == e.file && p.range.end <= e.range.begin));
    }
    for (uint64_t at = e.range.begin; at < e.range.end; at += block) {
      ASSERT_TRUE(read.insert({e.file, at / block}).second) << "read twice";
    }
  }
  ASSERT_EQ(read, WantedBlocks(wanted, block));
}

void CarryOut(const std::vector<ReadExtent>& extents, const std::vector<WantedShard>& wanted,
              const World& w) {
  std::vector<Memory> files, got;
  for (const FileLayout& f : w.files) files.push_back(testing::FileBytes(f));
  for (const WantedShard& s : wanted) {
    got.emplace_back(testing::ShardMemory(s.tensor.desc, s.geometry).size(), 0xAA);
  }
  for (const ReadExtent& e : extents) {
    const Memory& file = files[e.file];
    const Memory buffer(file.begin() + static_cast<std::ptrdiff_t>(e.range.begin),
                        file.begin() + static_cast<std::ptrdiff_t>(e.range.end));
    for (const ReadPart& p : e.parts) {
      const WantedShard& s = wanted.at(p.wanted);
      ASSERT_EQ(s.file, e.file);
      ASSERT_TRUE(e.range.begin <= p.range.begin && p.range.end <= e.range.end);
      ASSERT_TRUE(s.tensor.offset <= p.range.begin && p.range.begin < p.range.end);
      const ByteRange local{p.range.begin - s.tensor.offset, p.range.end - s.tensor.offset};
      ASSERT_GT(BytesWithin(s.tensor.desc, s.geometry, local), 0u);
      const TensorDesc& desc = s.tensor.desc;
      const uint8_t* const from = buffer.data() + (p.range.begin - e.range.begin);
      ScatterShard(desc, s.geometry, local, reinterpret_cast<const char*>(from),
                   *MakeMemory(got[p.wanted].data(), *FindDType(desc.dtype), {}, {}));
    }
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i], testing::ShardMemory(wanted[i].tensor.desc, wanted[i].geometry)) << i;
  }
}

void LoadAndJudge(const World& w, uint64_t block, uint64_t max_bytes) {
  for (const RankState& rank : w.ranks) {
    const auto wanted = WantedOf(w, rank);
    const auto extents = PlanLoad(wanted, SizesOf(w), block, max_bytes);
    JudgeExtents(extents, wanted, w, block, max_bytes);
    CarryOut(extents, wanted, w);
  }
}

TEST(LoadPlan, RandomDestinationsGetTheRightBytesAndEachBlockIsReadOnce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 rng(seed);
    const World w = testing::RandomWorld(rng);
    const uint64_t blocks[] = {3, 7, 16, 64, 1024};
    const uint64_t block = blocks[rng() % 5];
    LoadAndJudge(w, block, block * (1 + rng() % 8));
    if (HasFailure()) return;
  }
}

TEST(LoadPlan, J01_AnyNumberOfRanksInAnySplitGetsTheSameValues) {
  for (const int n : {1, 2, 3, 5, 8}) {
    for (const size_t dim : {size_t{0}, size_t{1}}) {
      World w(n);
      const size_t weight = w.Add("w", kF32, {10, 6}), flat = w.Add("opt", kF32, {60}),
                   scalar = w.Add("scalar", kF32, {}), bias = w.Add("bias", kF32, {7});
      std::vector<int64_t> slices, ranges;
      for (int r = 0; r < n; ++r) {
        const int64_t size = w.tensors[weight].shape[dim];
        slices.push_back(size * (r + 1) / n - size * r / n);
        ranges.push_back(60 * (r + 1) / n - 60 * r / n);
      }
      w.Slices(weight, dim, slices);
      w.Slices(flat, 0, ranges);
      w.WholeOnAll(scalar);
      w.WholeOnAll(bias);
      w.File("model", 128, {weight, flat, scalar, bias});
      LoadAndJudge(w, 64, 128);
    }
  }
}

TEST(LoadPlan, BlocksBetweenFarRunsAreNotRead) {
  World w(1);
  const size_t t = w.Add("w", kU8, {100, 1000});
  w.Box(0, t, {0, 10}, {100, 5});
  w.File("model", 64, {t});
  const auto extents = PlanLoad(WantedOf(w, w.ranks[0]), SizesOf(w), 64, 1024);
  uint64_t bytes = 0;
  for (const ReadExtent& e : extents) bytes += e.range.size();
  EXPECT_LE(bytes, 100u * 128);
}

TEST(LoadPlan, NothingWantedOrNothingInItReadsNothing) {
  World w(1);
  const size_t t = w.Add("w", kU8, {0, 3}), u = w.Add("u", kU8, {4});
  w.Give(0, t, {});
  w.Give(0, u, {});
  w.File("model", 64, {t, u});
  EXPECT_TRUE(PlanLoad({}, SizesOf(w), 64, 64).empty());
  EXPECT_TRUE(PlanLoad(WantedOf(w, w.ranks[0]), SizesOf(w), 64, 64).empty());
}

}  // namespace
}  // namespace ckpt
