// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CRC32C by carry-less multiplication of 512-bit vectors (Intel Ice Lake server, AMD Zen 4).
// Test: tests/unit/io/crc32c_test.cc
#include <immintrin.h>

#include "io/crc32c_impl.h"

#define CKPT_TARGET __attribute__((target("avx512f,avx2,vpclmulqdq,pclmul,sse4.2")))

namespace ckpt {
namespace {

struct Vec {
  using Type = __m512i;
  CKPT_TARGET static Type Load(const char* p) { return _mm512_loadu_si512(p); }
  CKPT_TARGET static void Store(char* p, Type v) { _mm512_storeu_si512(p, v); }
  CKPT_TARGET static void Stream(char* p, Type v) {
    _mm512_stream_si512(reinterpret_cast<Type*>(p), v);
  }
  CKPT_TARGET static Type First(uint32_t word) {
    return _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(word)));
  }
  CKPT_TARGET static Type Pair(uint64_t lo, uint64_t hi) {
    const auto l = static_cast<long long>(lo);
    const auto h = static_cast<long long>(hi);
    return _mm512_set_epi64(h, l, h, l, h, l, h, l);
  }
  CKPT_TARGET static Type Xor(Type a, Type b) { return _mm512_xor_si512(a, b); }
  CKPT_TARGET static Type FoldInto(Type sum, Type factors, Type next) {
    constexpr int kXor3 = 0x96;
    const Type lo = _mm512_clmulepi64_epi128(sum, factors, 0x00);
    const Type hi = _mm512_clmulepi64_epi128(sum, factors, 0x11);
    return _mm512_ternarylogic_epi64(lo, hi, next, kXor3);
  }
};

#include "io/crc32c_fold.inc"

}  // namespace

const Crc32cBackend* Crc32cVpclmul512() {
  static constexpr Crc32cBackend kBackend = {"vpclmulqdq512", Crc, Copy};
  const bool able = Crc32cSse42() != nullptr && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
  return able ? &kBackend : nullptr;
}

}  // namespace ckpt
