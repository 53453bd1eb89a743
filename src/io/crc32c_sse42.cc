// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CRC32C by the crc32 instruction: three neighbouring stretches at once, because one chain waits
// three cycles for each word, then joined by a carry-less multiplication (V. Gopal et al., "Fast
// CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel 2011). Test:
// tests/unit/io/crc32c_test.cc
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "io/crc32c_impl.h"

#define CKPT_TARGET __attribute__((target("sse4.2,pclmul")))

namespace ckpt {
namespace {

constexpr size_t kLong = 4096;  // bytes per stretch
constexpr size_t kShort = 256;
constexpr size_t kLine = 64;

uint64_t Load(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

template <Crc32cOutput kOutput>
void Store(char* p, uint64_t word) {
  if constexpr (kOutput == Crc32cOutput::kCached) std::memcpy(p, &word, 8);
}

// REQUIRES: n is a multiple of kLine, dst is aligned to it.
void Stream(char* dst, const char* src, size_t n) {
  for (size_t i = 0; i < n; i += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i));
    _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i), v);
  }
}

// a * b * x^33 mod P: the product of two registers has one factor x more than its 64 bits show, and
// crc32 of a word multiplies by x^32.
CKPT_TARGET inline uint64_t MultiplyX33(uint64_t a, uint32_t b) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(a)),
                                               _mm_cvtsi32_si128(static_cast<int>(b)), 0);
  return _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(product)));
}

// Sums (and copies) 3 * kBytes.
template <size_t kBytes, Crc32cOutput kOutput>
CKPT_TARGET uint64_t Three(uint64_t crc, char* dst, const char* src) {
  constexpr uint32_t kBy1 = Crc32cPower(8 * kBytes - 33);
  constexpr uint32_t kBy2 = Crc32cPower(8 * 2 * kBytes - 33);
  uint64_t a = crc, b = 0, c = 0;
  for (size_t i = 0; i < kBytes; i += 8) {
    const uint64_t x = Load(src + i);
    const uint64_t y = Load(src + i + kBytes);
    const uint64_t z = Load(src + i + 2 * kBytes);
    a = _mm_crc32_u64(a, x);
    b = _mm_crc32_u64(b, y);
    c = _mm_crc32_u64(c, z);
    Store<kOutput>(dst + i, x);
    Store<kOutput>(dst + i + kBytes, y);
    Store<kOutput>(dst + i + 2 * kBytes, z);
  }
  return MultiplyX33(a, kBy2) ^ MultiplyX33(b, kBy1) ^ c;
}

template <Crc32cOutput kOutput>
CKPT_TARGET uint64_t Words(uint64_t crc, char* dst, const char* src, size_t n) {
  for (size_t i = 0; i + 8 <= n; i += 8) {
    const uint64_t word = Load(src + i);
    crc = _mm_crc32_u64(crc, word);
    Store<kOutput>(dst + i, word);
  }
  for (size_t i = n - n % 8; i < n; ++i) {
    crc = _mm_crc32_u8(static_cast<uint32_t>(crc), static_cast<unsigned char>(src[i]));
    if constexpr (kOutput != Crc32cOutput::kNone) dst[i] = src[i];
  }
  return crc;
}

// `dst` is not touched with kNone, but moved along.
template <Crc32cOutput kOutput>
CKPT_TARGET uint32_t Run(uint32_t crc, char* dst, const char* src, size_t n) {
  uint64_t sum = crc;
  size_t i = 0;
  for (; i + 3 * kLong <= n; i += 3 * kLong) sum = Three<kLong, kOutput>(sum, dst + i, src + i);
  for (; i + 3 * kShort <= n; i += 3 * kShort) sum = Three<kShort, kOutput>(sum, dst + i, src + i);
  return static_cast<uint32_t>(Words<kOutput>(sum, dst + i, src + i, n - i));
}

uint32_t Crc(uint32_t crc, const void* data, size_t n) {
  const auto* in = static_cast<const char*>(data);
  return Run<Crc32cOutput::kNone>(crc, const_cast<char*>(in), in, n);
}

// Piece by piece, copied and then summed from the first cache: streaming stores want whole lines in
// order, and the three stretches of the sum would keep three lines half written.
uint32_t CopyStreamed(uint32_t crc, char* dst, const char* src, size_t n) {
  for (size_t i = 0; i < n;) {
    const size_t piece = std::min(n - i, 3 * kLong);
    Stream(dst + i, src + i, piece);
    crc = Crc(crc, src + i, piece);
    i += piece;
  }
  _mm_sfence();  // whoever is told of the copy must see it
  return crc;
}

uint32_t Copy(uint32_t crc, void* dst, const void* src, size_t n) {
  auto* out = static_cast<char*>(dst);
  const auto* in = static_cast<const char*>(src);
  if (n < kCrc32cStreamFrom) return Run<Crc32cOutput::kCached>(crc, out, in, n);
  const size_t head = (kLine - reinterpret_cast<uintptr_t>(out) % kLine) % kLine;
  const size_t body = (n - head) / kLine * kLine;
  crc = Run<Crc32cOutput::kCached>(crc, out, in, head);
  crc = CopyStreamed(crc, out + head, in + head, body);
  return Run<Crc32cOutput::kCached>(crc, out + head + body, in + head + body, n - head - body);
}

}  // namespace

const Crc32cBackend* Crc32cSse42() {
  static constexpr Crc32cBackend kBackend = {"sse42", Crc, Copy};
  const bool able = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  return able ? &kBackend : nullptr;
}

}  // namespace ckpt
