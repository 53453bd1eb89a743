// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Checksum tables as base64.  Test: tests/unit/store/record_test.cc
#include "store/crc_table.h"

#include <array>
#include <bit>
#include <cstring>

#include "util/text.h"

namespace ckpt {
namespace {

static_assert(std::endian::native == std::endian::little, "tables are little-endian");

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> MakeReverse() {
  std::array<int8_t, 256> out{};
  out.fill(-1);
  for (int i = 0; i < 64; ++i)
    out[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  return out;
}
constexpr std::array<int8_t, 256> kReverse = MakeReverse();

uint64_t TextBytes(uint64_t bytes) { return (bytes + 2) / 3 * 4; }

}  // namespace

std::string EncodeCrcTable(const std::vector<uint32_t>& crcs) {
  const auto* in = reinterpret_cast<const unsigned char*>(crcs.data());
  const size_t n = crcs.size() * sizeof(uint32_t);
  std::string out;
  out.reserve(TextBytes(n));
  for (size_t i = 0; i < n; i += 3) {
    const size_t have = std::min<size_t>(3, n - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < have ? in[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) {
      out += k <= have ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::vector<uint32_t>> DecodeCrcTable(std::string_view text, uint64_t count) {
  if (count > text.size() || text.size() != TextBytes(count * sizeof(uint32_t))) {
    return std::nullopt;
  }
  std::string bytes;
  bytes.reserve(text.size());
  uint32_t group = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int8_t value = kReverse[static_cast<unsigned char>(text[i])];
    group = group << 6 | static_cast<uint32_t>(value < 0 ? 0 : value);
    if (i % 4 == 3) {
      for (int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift & 255);
      group = 0;
    }
  }
  std::vector<uint32_t> out(count);
  if (count > 0) std::memcpy(out.data(), bytes.data(), count * sizeof(uint32_t));
  // One spelling per table: this also refuses strange characters, padding and stray bits.
  if (EncodeCrcTable(out) != text) return std::nullopt;
  return out;
}

std::string CrcText(uint32_t crc) { return fmt::format("{:08x}", crc); }

std::optional<uint32_t> ParseCrcText(std::string_view text) {
  uint32_t crc = 0;
  for (char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(c >= 'a' && c <= 'f')) return std::nullopt;
    crc = crc << 4 | static_cast<uint32_t>(digit ? c - '0' : c - 'a' + 10);
  }
  if (text.size() != 8) return std::nullopt;
  return crc;
}

}  // namespace ckpt
