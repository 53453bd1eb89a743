// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The 512-bit fold on CPUs without AVX-512: its body (crc32c_fold.inc) with a vector of four
// 128-bit lanes.  Proves factors and order; the five intrinsics of crc32c_vpclmul512.cc need the
// real CPU.
#include <gtest/gtest.h>
#include <immintrin.h>

#include <cstring>
#include <random>
#include <vector>

#include "io/crc32c_impl.h"

#define CKPT_TARGET __attribute__((target("pclmul,sse4.2")))

namespace ckpt {
namespace {

struct Lanes {
  __m128i lane[4];
};

struct Vec {
  using Type = Lanes;
  CKPT_TARGET static Type Load(const char* p) {
    Type v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  CKPT_TARGET static void Store(char* p, const Type& v) { std::memcpy(p, &v, sizeof v); }
  CKPT_TARGET static void Stream(char* p, const Type& v) { Store(p, v); }
  CKPT_TARGET static Type First(uint32_t word) {
    const __m128i zero = _mm_setzero_si128();
    return {{_mm_cvtsi32_si128(static_cast<int>(word)), zero, zero, zero}};
  }
  CKPT_TARGET static Type Pair(uint64_t lo, uint64_t hi) {
    const __m128i v = _mm_set_epi64x(static_cast<long long>(hi), static_cast<long long>(lo));
    return {{v, v, v, v}};
  }
  CKPT_TARGET static Type Xor(Type a, const Type& b) {
    for (int k = 0; k < 4; ++k) a.lane[k] = _mm_xor_si128(a.lane[k], b.lane[k]);
    return a;
  }
  CKPT_TARGET static Type FoldInto(Type sum, const Type& factors, const Type& next) {
    for (int k = 0; k < 4; ++k) {
      const __m128i lo = _mm_clmulepi64_si128(sum.lane[k], factors.lane[k], 0x00);
      const __m128i hi = _mm_clmulepi64_si128(sum.lane[k], factors.lane[k], 0x11);
      sum.lane[k] = _mm_xor_si128(lo, hi);
    }
    return Xor(sum, next);
  }
};

#include "io/crc32c_fold.inc"

TEST(Crc32cFold, Of512BitsEqualsThePortableSumOnEveryLengthFrom1000To4000) {
  if (Crc32cSse42() == nullptr) GTEST_SKIP() << "needs SSE4.2 and PCLMUL";
  std::vector<char> data(4000), copy(4000);
  std::mt19937_64 random(1);
  for (char& b : data) b = static_cast<char>(random());
  for (size_t n = 1000; n <= data.size(); ++n) {
    const uint32_t expected = Crc32cPortable().crc(7, data.data(), n);
    ASSERT_EQ(Crc(7, data.data(), n), expected) << n;
    ASSERT_EQ(Copy(7, copy.data(), data.data(), n), expected) << n;
    ASSERT_EQ(std::memcmp(copy.data(), data.data(), n), 0) << n;
  }
}

}  // namespace
}  // namespace ckpt
