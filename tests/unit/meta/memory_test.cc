// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Strided memory against the definition: unit [i, j, ...] lies at the sum of index times stride.
#include "meta/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "meta/convert.h"

namespace ckpt {
namespace {

struct Array {
  Dims extent, strides;
  int64_t first = 0;  // unit of the buffer that index 0, 0, ... is
  int64_t units = 0;  // of the buffer
};

// Offset in units of the i-th element in row-major order.
int64_t At(const Array& a, int64_t i) {
  int64_t at = a.first;
  for (size_t k = a.extent.size(); k-- > 0; i /= a.extent[k]) at += i % a.extent[k] * a.strides[k];
  return at;
}

int64_t Count(const Array& a) {
  int64_t n = 1;
  for (int64_t e : a.extent) n *= e;
  return n;
}

// Any order of dimensions, some reversed, some broadcast, with gaps between rows.
Array Draw(std::mt19937_64& rng, bool broadcast) {
  Array a;
  const size_t ndim = rng() % 5;
  std::vector<size_t> order;
  for (size_t k = 0; k < ndim; ++k) {
    a.extent.push_back(static_cast<int64_t>(1 + rng() % 5));
    order.push_back(k);
  }
  a.strides.resize(ndim);
  std::shuffle(order.begin(), order.end(), rng);
  int64_t stride = static_cast<int64_t>(1 + rng() % 2);
  for (size_t k : order) {
    a.strides[k] = stride;
    stride = stride * a.extent[k] + static_cast<int64_t>(rng() % 3 == 0);
    if (broadcast && rng() % 4 == 0) a.strides[k] = 0;
    if (rng() % 4 == 0) {
      a.first += (a.extent[k] - 1) * a.strides[k];
      a.strides[k] = -a.strides[k];
    }
  }
  a.units = stride;
  return a;
}

std::vector<char> Noise(std::mt19937_64& rng, uint64_t bytes) {
  std::vector<char> out(bytes);
  for (char& c : out) c = static_cast<char>(rng());
  return out;
}

TEST(Memory, G01_PackIsIndexByIndexForAnyStridesSizesAndCuts) {
  std::mt19937_64 rng(1);
  const DType dtypes[] = {kU8, kBF16, kF32, kI64, MakeDType(5, 128)};
  for (int round = 0; round < 20'000; ++round) {
    const DTypeInfo dtype = *FindDType(dtypes[rng() % 5]);
    const Array a = Draw(rng, /*broadcast=*/true);
    const uint64_t size = dtype.bytes, bytes = static_cast<uint64_t>(Count(a)) * size;
    std::vector<char> buffer = Noise(rng, static_cast<uint64_t>(a.units) * size);
    std::vector<char> want;
    for (int64_t i = 0; i < Count(a); ++i) {
      const char* unit = buffer.data() + static_cast<uint64_t>(At(a, i)) * size;
      want.insert(want.end(), unit, unit + size);
    }
    auto m = MakeMemory(buffer.data() + static_cast<uint64_t>(a.first) * size, dtype, a.extent,
                        a.strides);
    ASSERT_TRUE(m.ok());
    const uint64_t begin = rng() % (bytes + 1), n = rng() % (bytes - begin + 1);
    std::vector<char> got(n);
    PackShard(*m, dtype.dtype, begin, n, got.data());
    ASSERT_TRUE(std::equal(got.begin(), got.end(), want.begin() + static_cast<int64_t>(begin)))
        << "round " << round;
  }
}

TEST(Memory, UnpackWritesTheseUnitsAndNoOthers) {
  std::mt19937_64 rng(2);
  const DType dtypes[] = {kU8, kBF16, kF32, kI64, MakeDType(5, 128)};
  for (int round = 0; round < 20'000; ++round) {
    const DTypeInfo dtype = *FindDType(dtypes[rng() % 5]);
    const Array a = Draw(rng, /*broadcast=*/false);
    const uint64_t size = dtype.bytes, bytes = static_cast<uint64_t>(Count(a)) * size;
    std::vector<char> got = Noise(rng, static_cast<uint64_t>(a.units) * size), want = got;
    const std::vector<char> in = Noise(rng, bytes);
    const uint64_t begin = rng() % (bytes + 1), n = rng() % (bytes - begin + 1);
    for (uint64_t at = begin; at < begin + n; ++at) {
      want[static_cast<uint64_t>(At(a, static_cast<int64_t>(at / size))) * size + at % size] =
          in[at];
    }
    auto m =
        MakeMemory(got.data() + static_cast<uint64_t>(a.first) * size, dtype, a.extent, a.strides);
    ASSERT_TRUE(m.ok());
    UnpackShard(*m, dtype.dtype, begin, n, in.data() + begin);
    ASSERT_EQ(got, want) << "round " << round;
  }
}

TEST(Memory, AnotherDtypeIsConvertedOnTheWay) {
  std::mt19937_64 rng(3);
  const DType dtypes[] = {kF32, kBF16, MakeDType(2, 16), MakeDType(2, 64), MakeDType(10, 8)};
  for (int round = 0; round < 5'000; ++round) {
    const DTypeInfo memory = *FindDType(dtypes[rng() % 5]), stored = *FindDType(dtypes[rng() % 5]);
    const Array a = Draw(rng, /*broadcast=*/false);
    const auto count = static_cast<uint64_t>(Count(a));
    std::vector<char> buffer = Noise(rng, static_cast<uint64_t>(a.units) * memory.bytes);
    auto m = MakeMemory(buffer.data() + static_cast<uint64_t>(a.first) * memory.bytes, memory,
                        a.extent, a.strides);
    ASSERT_TRUE(m.ok());
    std::vector<char> compact, want(count * stored.bytes), got(count * stored.bytes);
    for (uint64_t i = 0; i < count; ++i) {
      const char* unit =
          buffer.data() + static_cast<uint64_t>(At(a, static_cast<int64_t>(i))) * memory.bytes;
      ConvertElements(memory.dtype, unit, stored.dtype, want.data() + i * stored.bytes, 1);
    }
    PackShard(*m, stored.dtype, 0, got.size(), got.data());
    ASSERT_EQ(got, want);
    UnpackShard(*m, stored.dtype, 0, got.size(), got.data());
    PackShard(*m, memory.dtype, 0, 0, nullptr);
    for (uint64_t i = 0; i < count; ++i) {
      std::vector<char> back(memory.bytes);
      ConvertElements(stored.dtype, want.data() + i * stored.bytes, memory.dtype, back.data(), 1);
      const char* unit =
          buffer.data() + static_cast<uint64_t>(At(a, static_cast<int64_t>(i))) * memory.bytes;
      ASSERT_EQ(std::memcmp(unit, back.data(), memory.bytes), 0);
    }
  }
}

TEST(Memory, CompactStridesAreNoStrides) {
  char data[64];
  const DTypeInfo f32 = *FindDType(kF32);
  EXPECT_TRUE(MakeMemory(data, f32, {2, 3}, {3, 1})->strides.empty());
  EXPECT_TRUE(MakeMemory(data, f32, {2, 1, 3}, {3, 99, 1})->strides.empty());
  EXPECT_TRUE(MakeMemory(data, f32, {1, 1}, {0, -5})->strides.empty());
  EXPECT_TRUE(MakeMemory(nullptr, f32, {0, 3}, {7, 7})->strides.empty());
  EXPECT_EQ(MakeMemory(data, f32, {2, 3}, {4, 1})->strides, (Dims{4, 1}));
  EXPECT_EQ(MakeMemory(data, f32, {4, 3, 2}, {12, 4, 2})->extent, (Dims{24}));
  EXPECT_EQ(MakeMemory(data, f32, {4, 3, 2}, {13, 4, 2})->extent, (Dims{4, 6}));
}

TEST(Memory, StridesThatReachTooFarAreALimit) {
  char data[4];
  const DTypeInfo f32 = *FindDType(kF32);
  for (const int64_t stride : {INT64_MAX, INT64_MIN, int64_t{1} << 61}) {
    EXPECT_EQ(MakeMemory(data, f32, {3}, {stride}).status().code(), Code::kLimit) << stride;
  }
}

TEST(Memory, OverlapIsExactForSmallShards) {
  std::mt19937_64 rng(4);
  char data[16];
  int overlapping = 0;
  for (int round = 0; round < 20'000; ++round) {
    Array a;
    for (size_t k = rng() % 4; k > 0; --k) {
      a.extent.push_back(static_cast<int64_t>(1 + rng() % 4));
      a.strides.push_back(static_cast<int64_t>(rng() % 13) - 6);
    }
    std::set<int64_t> seen;
    for (int64_t i = 0; i < Count(a); ++i) seen.insert(At(a, i));
    const bool overlaps = static_cast<int64_t>(seen.size()) < Count(a);
    const auto m = MakeMemory(data, *FindDType(kU8), a.extent, a.strides);
    ASSERT_EQ(SelfOverlaps(*m), overlaps) << round;
    overlapping += overlaps;
  }
  EXPECT_GT(overlapping, 2'000);
  EXPECT_LT(overlapping, 18'000);
}

}  // namespace
}  // namespace ckpt
