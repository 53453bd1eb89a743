// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Back ends of CRC32C and the arithmetic they share.  Private to src/io.  A back end is a file
// crc32c_<name>.cc; crc32c_factory.cc chooses.  Here a CRC is the bare register: not inverted at
// either end, so that it is linear.  Pure; any thread.
// Test: tests/unit/io/crc32c_test.cc
#ifndef CKPT_IO_CRC32C_IMPL_H_
#define CKPT_IO_CRC32C_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ckpt {

struct Crc32cBackend {
  const char* name;
  uint32_t (*crc)(uint32_t crc, const void* data, size_t n);
  uint32_t (*copy)(uint32_t crc, void* dst, const void* src, size_t n);
};

// What a pass over the source leaves behind: nothing, a copy, a copy that bypasses the cache.
enum class Crc32cOutput { kNone, kCached, kStreamed };

// Copies from this size on bypass the cache: the source is read once, and the copy is next seen by
// a disk.  glibc does so only above a threshold derived from L3, far above our 1 MiB blocks.
inline constexpr size_t kCrc32cStreamFrom = 128 << 10;

const Crc32cBackend& Crc32cPortable();
// Null where this CPU cannot run it.
const Crc32cBackend* Crc32cSse42();
const Crc32cBackend* Crc32cVpclmul256();
const Crc32cBackend* Crc32cVpclmul512();

// All that run here, the one in use first.
const std::vector<const Crc32cBackend*>& Crc32cBackends();

// Polynomials over GF(2) modulo P, in the register's bit order: bit 31 is x^0, bit 0 is x^31.
inline constexpr uint32_t kCrc32cOne = 0x80000000u;
inline constexpr uint32_t kCrc32cPoly = 0x82f63b78u;

constexpr uint32_t Crc32cTimesX(uint32_t a) { return (a >> 1) ^ ((a & 1) ? kCrc32cPoly : 0); }

constexpr uint32_t Crc32cMultiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kCrc32cOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = Crc32cTimesX(b);
  }
  return product;
}

// x^n mod P, by squaring.
constexpr uint32_t Crc32cPower(uint64_t n) {
  uint32_t result = kCrc32cOne;
  for (uint32_t square = Crc32cTimesX(kCrc32cOne); n != 0; n >>= 1) {
    if (n & 1) result = Crc32cMultiply(result, square);
    square = Crc32cMultiply(square, square);
  }
  return result;
}

}  // namespace ckpt

#endif  // CKPT_IO_CRC32C_IMPL_H_
