// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The public face: inversion at both ends, and the algebra of pieces.  Appending n bytes to a
// message multiplies the register by x^(8n) mod P; everything here follows from that. Test:
// tests/unit/io/crc32c_test.cc
#include "io/crc32c.h"

#include "io/crc32c_impl.h"

namespace ckpt {
namespace {

const Crc32cBackend& Chosen() {
  static const Crc32cBackend& backend = *Crc32cBackends().front();
  return backend;
}

// 8n overflows from 2^61 on, but powers of x repeat: P = (x + 1) Q with Q primitive of degree 31.
uint32_t PowerOfBytes(uint64_t n) {
  constexpr uint64_t kOrder = (uint64_t{1} << 31) - 1;
  static_assert(Crc32cPower(kOrder) == kCrc32cOne);
  return Crc32cPower(n % kOrder * 8 % kOrder);
}

uint32_t Shift(uint32_t crc, uint64_t bytes) { return Crc32cMultiply(crc, PowerOfBytes(bytes)); }

}  // namespace

uint32_t Crc32c(uint32_t crc, const void* data, size_t n) { return ~Chosen().crc(~crc, data, n); }

uint32_t Crc32cCopy(uint32_t crc, void* dst, const void* src, size_t n) {
  return ~Chosen().copy(~crc, dst, src, n);
}

uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t length_b) {
  return Shift(crc_a, length_b) ^ crc_b;
}

uint32_t Crc32cZeros(uint64_t n) { return ~Shift(~uint32_t{0}, n); }

uint32_t Crc32cContribution(uint32_t crc_of_piece, uint64_t length, uint64_t offset,
                            uint64_t block) {
  // XOR with the CRC of as many zero bytes takes out both inversions.
  return Shift(crc_of_piece ^ Crc32cZeros(length), block - offset - length);
}

const char* Crc32cImplementation() { return Chosen().name; }

}  // namespace ckpt
