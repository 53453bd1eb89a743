// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "oracle/numbers.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "ckpt.h"

namespace oracle {
namespace {

constexpr uint32_t kE4M3 = CKPT_DTYPE(10, 8);

uint64_t Bits(const char* in, int64_t bytes) {
  uint64_t bits = 0;
  for (int64_t i = bytes; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(in[i]);
  return bits;
}

std::string FromBits(uint64_t bits, int64_t bytes) {
  std::string out;
  for (int64_t i = 0; i < bytes; ++i) out += static_cast<char>(bits >> (8 * i));
  return out;
}

uint64_t Ones(int bits) { return (uint64_t{1} << bits) - 1; }
int Bias(const DType& t) { return (1 << (t.exp - 1)) - 1; }

// A number taken apart. All six formats fit into a double without rounding.
struct Number {
  bool negative = false, nan = false, infinite = false;
  uint64_t fraction = 0;  // of a NaN, its upper end at bit 51
  double magnitude = 0;
};

Number Decode(const DType& t, uint64_t bits) {
  Number n;
  n.negative = bits >> (t.exp + t.frac) & 1;
  const uint64_t exponent = bits >> t.frac & Ones(t.exp), fraction = bits & Ones(t.frac);
  const bool last = exponent == Ones(t.exp);
  n.nan = last && (t.code == kE4M3 ? fraction == Ones(t.frac) : fraction != 0);
  n.infinite = last && t.code != kE4M3 && fraction == 0;
  n.fraction = fraction << (52 - t.frac);
  const auto whole = static_cast<double>(exponent == 0 ? fraction : fraction + Ones(t.frac) + 1);
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - Bias(t) - t.frac;
  if (!n.nan && !n.infinite) n.magnitude = std::ldexp(whole, power);
  return n;
}

// The bits of the largest finite magnitude, plus one.
uint64_t TooLarge(const DType& t) { return t.code == kE4M3 ? 0x7f : Ones(t.exp) << t.frac; }

uint64_t Nearest(const DType& t, double x) {
  if (x == 0) return 0;
  const int lowest = 1 - Bias(t);  // exponent of the smallest normal number
  const int exponent = std::max(std::ilogb(x), lowest);
  // x in units of the last place there: exact, and at most 2^(frac + 1) once it is rounded.
  const double units = std::nearbyint(std::ldexp(x, t.frac - exponent));
  const auto whole = static_cast<uint64_t>(units);
  // Whole numbers below 2^frac are subnormal; from there on the encoding goes on counting.
  const uint64_t bits = (static_cast<uint64_t>(exponent - lowest) << t.frac) + whole;
  return std::min(bits, TooLarge(t));
}

}  // namespace

const std::vector<DType>& DTypes() {
  static const std::vector<DType> all = {
      {CKPT_DTYPE(6, 8), "BOOL", 1},
      {CKPT_DTYPE(1, 8), "U8", 1},
      {CKPT_DTYPE(0, 8), "I8", 1},
      {CKPT_DTYPE(12, 8), "F8_E5M2", 1, 1, true, 5, 2},
      {CKPT_DTYPE(10, 8), "F8_E4M3", 1, 1, true, 4, 3},
      {CKPT_DTYPE(14, 8), "F8_E8M0", 1},
      {CKPT_DTYPE(17, 4), "F4", 1, 2},
      {CKPT_DTYPE(0, 16), "I16", 2},
      {CKPT_DTYPE(1, 16), "U16", 2},
      {CKPT_DTYPE(2, 16), "F16", 2, 1, true, 5, 10},
      {CKPT_DTYPE(4, 16), "BF16", 2, 1, true, 8, 7},
      {CKPT_DTYPE(0, 32), "I32", 4},
      {CKPT_DTYPE(1, 32), "U32", 4},
      {CKPT_DTYPE(2, 32), "F32", 4, 1, true, 8, 23},
      {CKPT_DTYPE(5, 64), "C64", 8},
      {CKPT_DTYPE(2, 64), "F64", 8, 1, true, 11, 52},
      {CKPT_DTYPE(0, 64), "I64", 8},
      {CKPT_DTYPE(1, 64), "U64", 8},
      {CKPT_DTYPE(7, 8), "U8", 1, 1, false},   // float8_e3m4
      {CKPT_DTYPE(9, 8), "U8", 1, 1, false},   // float8_e4m3b11fnuz
      {CKPT_DTYPE(11, 8), "U8", 1, 1, false},  // float8_e4m3fnuz
      {CKPT_DTYPE(13, 8), "U8", 1, 1, false},  // float8_e5m2fnuz
      {CKPT_DTYPE(5, 32), "U8", 4, 1, false},  // complex32
      {CKPT_DTYPE(0, 128), "U8", 16, 1, false},
      {CKPT_DTYPE(1, 128), "U8", 16, 1, false},
      {CKPT_DTYPE(2, 128), "U8", 16, 1, false},
      {CKPT_DTYPE(5, 128), "U8", 16, 1, false}};
  return all;
}

const DType& FindDType(uint32_t code) {
  for (const DType& t : DTypes())
    if (t.code == code) return t;
  throw std::logic_error("no such dtype");
}

std::string Cast(uint32_t from, const char* in, uint32_t to) {
  const DType &a = FindDType(from), &b = FindDType(to);
  if (from == to) return std::string(in, static_cast<size_t>(a.bytes));
  const Number n = Decode(a, Bits(in, a.bytes));
  uint64_t bits = Nearest(b, n.magnitude);
  if (n.infinite) bits = TooLarge(b);
  if (n.nan) bits = TooLarge(b) | uint64_t{1} << (b.frac - 1) | n.fraction >> (52 - b.frac);
  return FromBits(bits | static_cast<uint64_t>(n.negative) << (b.exp + b.frac), b.bytes);
}

uint32_t Crc32c(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

std::string Base64(const std::string& bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = i; k < i + 3; ++k)
      three = three << 8 | (k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      out += i + k > bytes.size() ? '=' : digits[three >> (18 - 6 * k) & 63];
  }
  return out;
}

std::string Hex8(uint32_t value) {
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
  return out;
}

// splitmix64 (Vigna), its state a function of both.
uint64_t Mix(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0xd1342543de82ef95 + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

}  // namespace oracle
