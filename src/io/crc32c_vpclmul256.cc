// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CRC32C by carry-less multiplication of 256-bit vectors (AMD Zen 3, Intel Alder Lake).
// Test: tests/unit/io/crc32c_test.cc
#include <immintrin.h>

#include "io/crc32c_impl.h"

#define CKPT_TARGET __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.2")))

namespace ckpt {
namespace {

struct Vec {
  using Type = __m256i;
  CKPT_TARGET static Type Load(const char* p) {
    return _mm256_loadu_si256(reinterpret_cast<const Type*>(p));
  }
  CKPT_TARGET static void Store(char* p, Type v) {
    _mm256_storeu_si256(reinterpret_cast<Type*>(p), v);
  }
  CKPT_TARGET static void Stream(char* p, Type v) {
    _mm256_stream_si256(reinterpret_cast<Type*>(p), v);
  }
  CKPT_TARGET static Type First(uint32_t word) {
    return _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(word)));
  }
  CKPT_TARGET static Type Pair(uint64_t lo, uint64_t hi) {
    return _mm256_broadcastsi128_si256(
        _mm_set_epi64x(static_cast<long long>(hi), static_cast<long long>(lo)));
  }
  CKPT_TARGET static Type Xor(Type a, Type b) { return _mm256_xor_si256(a, b); }
  CKPT_TARGET static Type FoldInto(Type sum, Type factors, Type next) {
    const Type lo = _mm256_clmulepi64_epi128(sum, factors, 0x00);
    const Type hi = _mm256_clmulepi64_epi128(sum, factors, 0x11);
    return Xor(Xor(lo, hi), next);
  }
};

#include "io/crc32c_fold.inc"

}  // namespace

const Crc32cBackend* Crc32cVpclmul256() {
  static constexpr Crc32cBackend kBackend = {"vpclmulqdq256", Crc, Copy};
  const bool able = Crc32cSse42() != nullptr && __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("vpclmulqdq");
  return able ? &kBackend : nullptr;
}

}  // namespace ckpt
