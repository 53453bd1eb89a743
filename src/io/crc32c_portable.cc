// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CRC32C by eight tables, eight bytes a step; runs everywhere.  Test: tests/unit/io/crc32c_test.cc
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "io/crc32c_impl.h"

namespace ckpt {
namespace {

static_assert(std::endian::native == std::endian::little, "the file format is little-endian");

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// table[k][b]: the register b after k + 1 zero bytes.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = Crc32cTimesX(crc);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t Crc(uint32_t crc, const void* data, size_t n) {
  const auto* in = static_cast<const unsigned char*>(data);
  for (; n >= 8; in += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, in, 8);
    word ^= crc;
    crc = 0;
#pragma GCC unroll 8  // gcc 12 at -O2 would loop: a third of the speed
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; n > 0; ++in, --n) crc = (crc >> 8) ^ kTables[0][(crc ^ *in) & 0xff];
  return crc;
}

uint32_t Copy(uint32_t crc, void* dst, const void* src, size_t n) {
  constexpr size_t kPiece = 4096;  // stays in the first cache between copy and sum
  auto* out = static_cast<char*>(dst);
  const auto* in = static_cast<const char*>(src);
  while (n > 0) {
    const size_t piece = std::min(n, kPiece);
    std::memcpy(out, in, piece);
    crc = Crc(crc, in, piece);
    out += piece;
    in += piece;
    n -= piece;
  }
  return crc;
}

}  // namespace

const Crc32cBackend& Crc32cPortable() {
  static constexpr Crc32cBackend kBackend = {"portable", Crc, Copy};
  return kBackend;
}

}  // namespace ckpt
