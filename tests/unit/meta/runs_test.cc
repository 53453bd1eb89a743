// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs against a slow walk over every element of small tensors.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "meta/memory.h"
#include "meta/meta.h"

namespace ckpt {
namespace {

struct Shard {
  TensorDesc t;
  Geometry g;
};

// Tensor byte -> byte of the shard's compact memory, element by element.
std::map<uint64_t, uint64_t> ByteMap(const TensorDesc& t, const Geometry& g) {
  std::map<uint64_t, uint64_t> out;
  uint64_t local = 0;
  for (int64_t e = 0; e < MakeWhole(t).count; ++e) {
    bool inside = e >= g.begin && e < g.begin + g.count;
    if (g.is_box) {
      inside = true;
      int64_t rest = e;
      for (size_t k = t.shape.size(); k-- > 0; rest /= t.shape[k]) {
        const int64_t i = rest % t.shape[k];
        inside = inside && i >= g.offset[k] && i < g.offset[k] + g.extent[k];
      }
    }
    for (uint64_t b = 0; inside && b < t.elem_bytes; ++b) {
      out[static_cast<uint64_t>(e) * t.elem_bytes + b] = local++;
    }
  }
  return out;
}

Shard RandomShard(std::mt19937_64& rng) {
  const DType dtypes[] = {kU8, kBF16, kF32, kI64};
  Dims shape(rng() % 5), offset, extent;
  for (int64_t& dim : shape) dim = static_cast<int64_t>(rng() % 5 + (rng() % 8 > 0));
  Shard s{*MakeTensor("g", "w", dtypes[rng() % 4], shape), {}};
  if (rng() % 4 == 0) {
    const int64_t count = MakeWhole(s.t).count;
    const int64_t begin = static_cast<int64_t>(rng() % static_cast<uint64_t>(count + 1));
    s.g = *MakeFlat(s.t, begin,
                    static_cast<int64_t>(rng() % static_cast<uint64_t>(count - begin + 1)));
    return s;
  }
  for (int64_t dim : shape) {
    offset.push_back(static_cast<int64_t>(rng() % static_cast<uint64_t>(dim + 1)));
    extent.push_back(static_cast<int64_t>(rng() % static_cast<uint64_t>(dim - offset.back() + 1)));
    if (rng() % 3 == 0) offset.back() = 0, extent.back() = dim;
  }
  s.g = *MakeBox(s.t, offset, extent);
  return s;
}

ByteRange RandomRange(std::mt19937_64& rng, uint64_t bytes) {
  ByteRange r{rng() % (bytes + 1), rng() % (bytes + 1)};
  if (rng() % 4 == 0) r = {0, bytes};
  if (r.begin > r.end) std::swap(r.begin, r.end);
  return r;
}

TEST(Runs, RandomShardsAndByteRangesMatchAWalkOverEveryElement) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 rng(seed);
    const auto [t, g] = RandomShard(rng);
    const ByteRange range = RandomRange(rng, t.bytes);
    const auto want = ByteMap(t, g);
    std::map<uint64_t, uint64_t> got;
    uint64_t previous_end = 0;
    ForEachRun(t, g, range, [&](const ckpt::Run& run) {
      EXPECT_GT(run.bytes, 0u);
      EXPECT_TRUE(got.empty() || run.tensor_offset > previous_end) << "runs could be longer";
      previous_end = run.tensor_offset + run.bytes;
      for (uint64_t i = 0; i < run.bytes; ++i) got[run.tensor_offset + i] = run.local_offset + i;
    });
    std::map<uint64_t, uint64_t> cut(want.lower_bound(range.begin), want.lower_bound(range.end));
    ASSERT_EQ(got, cut);
    ASSERT_EQ(BytesWithin(t, g, range), cut.size());
    const auto next = want.lower_bound(range.begin);
    ASSERT_EQ(NextByte(t, g, range.begin), next == want.end() ? t.bytes : next->first);
    const ByteRange hull =
        want.empty() ? ByteRange{} : ByteRange{want.begin()->first, want.rbegin()->first + 1};
    ASSERT_EQ(Hull(t, g), hull);
    ASSERT_EQ(static_cast<uint64_t>(Elements(g)) * t.elem_bytes, want.size());
    ASSERT_TRUE(CheckGeometry(t, g).ok());
  }
}

TEST(Runs, GatherAndScatterAreInverseAndTouchNothingElse) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 rng(seed);
    const auto [t, g] = RandomShard(rng);
    const ByteRange range = RandomRange(rng, t.bytes);
    const auto map = ByteMap(t, g);
    std::vector<uint8_t> shard(map.size()), buffer(range.size(), 0xEE), back(map.size(), 0xDD);
    for (uint8_t& b : shard) b = static_cast<uint8_t>(rng());
    auto* const bytes = reinterpret_cast<char*>(buffer.data());
    GatherShard(t, g, range, *MakeMemory(shard.data(), *FindDType(t.dtype), {}, {}), bytes);
    ScatterShard(t, g, range, bytes, *MakeMemory(back.data(), *FindDType(t.dtype), {}, {}));
    for (uint64_t at = range.begin; at < range.end; ++at) {
      const auto it = map.find(at);
      ASSERT_EQ(buffer[at - range.begin], it == map.end() ? 0xEE : shard[it->second]);
    }
    for (const auto& [at, local] : map) {
      const bool inside = at >= range.begin && at < range.end;
      ASSERT_EQ(back[local], inside ? shard[local] : 0xDD);
    }
  }
}

TEST(Runs, AStartFarInsideCostsNoVisitsOfEarlierRuns) {
  const auto t = MakeTensor("g", "w", kU8, {int64_t{1} << 40, 16});
  ASSERT_TRUE(t.ok());
  const Geometry g = *MakeBox(*t, {0, 3}, {int64_t{1} << 40, 2});
  int visits = 0;
  const uint64_t row = (uint64_t{1} << 39) + 12345;
  ForEachRun(*t, g, {row * 16, row * 16 + 40}, [&](const ckpt::Run& run) {
    EXPECT_EQ(run.local_offset, (row + static_cast<uint64_t>(visits)) * 2);
    ++visits;
  });
  EXPECT_EQ(visits, 3);
  EXPECT_EQ(BytesWithin(*t, g, {0, t->bytes}), uint64_t{1} << 41);
}

}  // namespace
}  // namespace ckpt
