// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversions against a slow oracle that searches the target format for the nearest value.
#include "meta/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "meta/memory.h"

namespace ckpt {
namespace {

constexpr DType kF16 = MakeDType(2, 16), kF64 = MakeDType(2, 64), kE4M3 = MakeDType(10, 8),
                kE5M2 = MakeDType(12, 8), kE8M0 = MakeDType(14, 8);

struct Format16 {
  DType dtype;
  int exp, frac;
  uint16_t inf, quiet;
};
constexpr Format16 kFormats[] = {{kBF16, 8, 7, 0x7f80, 0x0040}, {kF16, 5, 10, 0x7c00, 0x0200}};

template <typename To, typename From>
To One(DType from, From in, DType to) {
  To out{};
  ConvertElements(from, &in, to, &out, 1);
  return out;
}

// The value of a magnitude; infinity's stands for the next power of two, as IEEE 754 rounds.
double Value(const Format16& f, uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> f.frac), bias = (1 << (f.exp - 1)) - 1;
  const int fraction = static_cast<int>(magnitude) & ((1 << f.frac) - 1);
  if (exponent == 0) return std::ldexp(fraction, 1 - bias - f.frac);
  return std::ldexp(fraction + (1 << f.frac), exponent - bias - f.frac);
}

// Finite or infinite values only.
uint16_t Nearest(const Format16& f, float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double x = std::fabs(static_cast<double>(value));
  uint32_t low = 0, high = f.inf;  // the largest magnitude not above x
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    if (Value(f, middle) <= x) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (low < f.inf) {
    const double down = x - Value(f, low), up = Value(f, low + 1) - x;
    if (up < down || (up == down && low % 2 == 1)) ++low;
  }
  return static_cast<uint16_t>(sign | low);
}

void ExpectNarrow(const Format16& f, uint32_t bits) {
  const auto got = One<uint16_t>(kF32, bits, f.dtype);
  if ((bits & 0x7fffffff) > 0x7f800000) {
    const auto payload = static_cast<uint16_t>(bits >> (23 - f.frac)) & (f.quiet - 1);
    ASSERT_EQ(got, (bits >> 31 << 15 | f.inf | f.quiet | static_cast<uint32_t>(payload)))
        << std::hex << bits;
  } else {
    ASSERT_EQ(got, Nearest(f, std::bit_cast<float>(bits))) << std::hex << bits;
  }
}

TEST(Convert, WhichPairs) {
  const DType floats[] = {kF64, kF32, kBF16, kF16, kE4M3, kE5M2};
  for (DType from : floats) {
    for (DType to : floats) EXPECT_TRUE(CanConvert(from, to));
    for (DType other : {kI64, kE8M0, kU8}) {
      EXPECT_FALSE(CanConvert(from, other));
      EXPECT_FALSE(CanConvert(other, from));
    }
  }
  EXPECT_TRUE(CanConvert(kI64, kI64));
}

TEST(Convert, EveryPatternOf16BitsRoundTripsThroughF32) {
  for (const Format16& f : kFormats) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const auto in = static_cast<uint16_t>(bits);
      const auto wide = One<uint32_t>(f.dtype, in, kF32);
      const auto back = One<uint16_t>(kF32, wide, f.dtype);
      const uint32_t magnitude = bits & 0x7fff;
      ASSERT_EQ(wide >> 31, bits >> 15);
      if (magnitude > f.inf) {
        ASSERT_TRUE(std::isnan(std::bit_cast<float>(wide)));
        ASSERT_NE(wide & 0x00400000, 0u) << "not quiet: " << bits;
        ASSERT_EQ(back, in | f.quiet);
        continue;
      }
      ASSERT_EQ(back, in);
      const double value = std::fabs(static_cast<double>(std::bit_cast<float>(wide)));
      ASSERT_EQ(value, magnitude == f.inf ? INFINITY : Value(f, magnitude)) << bits;
    }
  }
}

TEST(Convert, F32To16BitsIsTheNearestValueTiesToEven) {
  std::mt19937_64 rng(1);
  for (const Format16& f : kFormats) {
    SCOPED_TRACE(testing::Message() << "frac " << f.frac);
    // Every value of the format, every midpoint between two, and their neighbours in F32; the
    // last one is the step to infinity.
    for (uint32_t m = 0; m < f.inf; ++m) {
      const auto value = static_cast<float>(Value(f, m));
      const double middle = (Value(f, m) + Value(f, m + 1)) / 2;
      for (const float x : {value, static_cast<float>(middle)}) {
        const auto bits = std::bit_cast<uint32_t>(x);
        for (const uint32_t near : {bits - (bits > 0), bits, bits + 1}) {
          ASSERT_NO_FATAL_FAILURE(ExpectNarrow(f, near));
          ASSERT_NO_FATAL_FAILURE(ExpectNarrow(f, near | 0x80000000));
        }
      }
    }
    for (int i = 0; i < 300'000; ++i) {
      ASSERT_NO_FATAL_FAILURE(ExpectNarrow(f, static_cast<uint32_t>(rng())));
    }
    for (const uint32_t edge : {0u, 1u, 0x007fffffu, 0x00800000u, 0x7f7fffffu, 0x7f800000u,
                                0x7f800001u, 0x7fa00000u, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu}) {
      ASSERT_NO_FATAL_FAILURE(ExpectNarrow(f, edge));
      ASSERT_NO_FATAL_FAILURE(ExpectNarrow(f, edge | 0x80000000));
    }
  }
}

TEST(Convert, Between16BitFormatsRoundsOnce) {
  for (int k = 0; k < 2; ++k) {
    const Format16 &from = kFormats[k], &to = kFormats[1 - k];
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const uint32_t magnitude = bits & 0x7fff;
      const auto got = One<uint16_t>(from.dtype, static_cast<uint16_t>(bits), to.dtype);
      if (magnitude > from.inf) {
        ASSERT_GE(got & 0x7fff, to.inf | to.quiet);
        ASSERT_EQ(got >> 15, bits >> 15);
        continue;
      }
      const double value = magnitude == from.inf ? INFINITY : Value(from, magnitude);
      const double with_sign = bits >> 15 ? -value : value;
      ASSERT_EQ(got, Nearest(to, static_cast<float>(with_sign))) << bits;
    }
  }
}

TEST(Convert, F64ToF32IsTheProcessorsConversion) {
  std::mt19937_64 rng(2);
  const auto check = [](double x) {
    ASSERT_EQ(One<uint32_t>(kF64, x, kF32), std::bit_cast<uint32_t>(static_cast<float>(x))) << x;
  };
  for (int i = 0; i < 300'000; ++i) {
    const auto any = std::bit_cast<double>(rng());
    if (!std::isnan(any)) {
      ASSERT_NO_FATAL_FAILURE(check(any));
    }
    // Exponents F32 has, its subnormals and a little beyond.
    const uint64_t exponent = 1023 - 155 + rng() % 290, fraction = rng() >> 12;
    ASSERT_NO_FATAL_FAILURE(check(std::bit_cast<double>(exponent << 52 | fraction)));
    const uint64_t tie = fraction >> 28 << 28;  // every second one lies between two values
    ASSERT_NO_FATAL_FAILURE(check(-std::bit_cast<double>(exponent << 52 | tie)));
    ASSERT_NO_FATAL_FAILURE(check(std::ldexp(static_cast<double>(rng() % 4096), -151)));
  }
  for (const double x : {0.0, -0.0, HUGE_VAL, -HUGE_VAL, 0x1.ffffffp127, 0x1.fffffefffp127,
                         0x1p-150, 0x1.0000000000001p-150, 0x1p-1074}) {
    ASSERT_NO_FATAL_FAILURE(check(x));
  }
  EXPECT_EQ(One<uint32_t>(kF64, uint64_t{0xfff0000000000001}, kF32), 0xffc00000u);
  EXPECT_EQ(One<uint32_t>(kF64, uint64_t{0x7fffffffffffffff}, kF32), 0x7fffffffu);
}

TEST(Convert, UnalignedArraysAndEqualDTypes) {
  std::mt19937_64 rng(3);
  for (const uint64_t n : {0, 1, 3, 7, 33, 1000}) {
    std::vector<char> src(n * 4 + 1), dst(n * 2 + 3, 'x'), copy(n * 4 + 3, 'x');
    for (char& c : src) c = static_cast<char>(rng());
    ConvertElements(kF32, src.data() + 1, kBF16, dst.data() + 1, n);
    ConvertElements(kF32, src.data() + 1, kF32, copy.data() + 1, n);
    for (uint64_t i = 0; i < n; ++i) {
      uint32_t in = 0;
      uint16_t out = 0;
      std::memcpy(&in, src.data() + 1 + i * 4, 4);
      std::memcpy(&out, dst.data() + 1 + i * 2, 2);
      ASSERT_EQ(out, One<uint16_t>(kF32, in, kBF16));
    }
    EXPECT_TRUE(std::equal(src.begin() + 1, src.end(), copy.begin() + 1));
    for (const auto* v : {&dst, &copy}) {
      EXPECT_EQ(v->front(), 'x');
      EXPECT_EQ(v->end()[-1], 'x');
      EXPECT_EQ(v->end()[-2], 'x');
    }
  }
  ConvertElements(kF32, nullptr, kF32, nullptr, 0);
}

// The 8-bit formats, by a table of all their values (OFP8 1.0, table 1).
struct Format8 {
  DType dtype;
  int exp, frac;
  uint8_t largest;   // finite magnitude
  uint8_t overflow;  // what is above becomes
};
constexpr Format8 kFormats8[] = {{kE4M3, 4, 3, 0x7e, 0x7f}, {kE5M2, 5, 2, 0x7b, 0x7c}};

double Value8(const Format8& f, uint32_t magnitude) {
  return Value({f.dtype, f.exp, f.frac, 0, 0}, magnitude);
}

// By trying all magnitudes; the one after the largest stands for all that is too large.
uint8_t Nearest8(const Format8& f, double x) {
  const auto sign = static_cast<uint8_t>(std::signbit(x) ? 0x80 : 0);
  x = std::fabs(x);
  uint32_t best = 0;
  for (uint32_t m = 1; m <= f.largest + 1u; ++m) {
    const double was = std::fabs(x - Value8(f, best)), is = std::fabs(x - Value8(f, m));
    if (is < was || (is == was && m % 2 == 0)) best = m;
  }
  if (x > Value8(f, f.largest + 1u)) best = f.largest + 1u;
  return static_cast<uint8_t>(sign | (best > f.largest ? f.overflow : best));
}

TEST(Convert, EightBitFormatsWidenExactlyAndComeBack) {
  EXPECT_EQ(Value8(kFormats8[0], 0x7e), 448);
  EXPECT_EQ(Value8(kFormats8[1], 0x7b), 57344);
  for (const Format8& f : kFormats8) {
    for (uint32_t bits = 0; bits < 256; ++bits) {
      const auto in = static_cast<uint8_t>(bits);
      const auto wide = One<float>(f.dtype, in, kF32);
      ASSERT_EQ(std::signbit(wide), bits >= 0x80) << bits;
      const uint32_t magnitude = bits & 0x7f;
      if (magnitude <= f.largest) {
        ASSERT_EQ(std::fabs(wide), Value8(f, magnitude)) << bits;
        ASSERT_EQ(One<double>(f.dtype, in, kF64), static_cast<double>(wide));
        ASSERT_EQ(One<uint8_t>(kF32, wide, f.dtype), in);
      } else if (f.dtype == kE5M2 && magnitude == 0x7c) {
        ASSERT_TRUE(std::isinf(wide)) << bits;
        ASSERT_EQ(One<uint8_t>(kF32, wide, f.dtype), in);
      } else {
        ASSERT_TRUE(std::isnan(wide)) << bits;
        ASSERT_TRUE(std::isnan(One<double>(f.dtype, in, kF64)));
        const uint8_t quiet = f.dtype == kE5M2 ? 0x02 : 0;
        ASSERT_EQ(One<uint8_t>(kF32, wide, f.dtype), in | quiet);
      }
    }
  }
}

TEST(Convert, EightBitFormatsRoundOnceFromEveryOther) {
  std::mt19937_64 rng(5);
  for (const Format8& f : kFormats8) {
    SCOPED_TRACE(testing::Message() << "frac " << f.frac);
    const auto check = [&](float x) {
      ASSERT_EQ(One<uint8_t>(kF32, x, f.dtype), Nearest8(f, x)) << x;
      ASSERT_EQ(One<uint8_t>(kF64, static_cast<double>(x), f.dtype), Nearest8(f, x)) << x;
    };
    for (uint32_t m = 0; m <= f.largest; ++m) {
      const double middle = (Value8(f, m) + Value8(f, m + 1)) / 2;
      for (const double x : {Value8(f, m), middle}) {
        const auto exact = static_cast<float>(x);
        for (const float near : {std::nextafter(exact, 0.0f), exact, std::nextafter(exact, 1e9f)}) {
          ASSERT_NO_FATAL_FAILURE(check(near));
          ASSERT_NO_FATAL_FAILURE(check(-near));
        }
      }
      // Only in F64: rounding through F32 would make a tie of it.
      const double above = std::nextafter(middle, 1e9);
      ASSERT_EQ(One<uint8_t>(kF64, above, f.dtype), Nearest8(f, above)) << above;
    }
    for (int i = 0; i < 20'000; ++i) {
      const auto any = std::bit_cast<float>(static_cast<uint32_t>(rng()));
      if (!std::isnan(any)) {
        ASSERT_NO_FATAL_FAILURE(check(any));
      }
    }
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      for (const Format16& from : kFormats) {
        const auto x = One<float>(from.dtype, static_cast<uint16_t>(bits), kF32);
        const auto got = One<uint8_t>(from.dtype, static_cast<uint16_t>(bits), f.dtype);
        if (std::isnan(x)) {
          ASSERT_TRUE(std::isnan(One<float>(f.dtype, got, kF32)));
        } else if (bits % 7 == 0) {  // the slow oracle: a sample
          ASSERT_EQ(got, Nearest8(f, x)) << bits;
        }
      }
    }
  }
}

TEST(Convert, F32ToF64IsTheProcessorsConversion) {
  std::mt19937_64 rng(6);
  for (int i = 0; i < 300'000; ++i) {
    const auto bits = static_cast<uint32_t>(i < 1000 ? i : rng());
    const auto x = std::bit_cast<float>(bits);
    const auto got = One<uint64_t>(kF32, bits, kF64);
    if (std::isnan(x)) {
      ASSERT_EQ(One<uint32_t>(kF64, got, kF32), bits | 0x00400000u);
    } else {
      ASSERT_EQ(got, std::bit_cast<uint64_t>(static_cast<double>(x))) << bits;
    }
  }
}

// Shards of a 5 x 6 x 7 tensor, read through a range of its elements.
TEST(Convert, ScatterIsElementByElement) {
  const struct {
    DType from, to;
    uint32_t to_bytes;
  } pairs[] = {{kF32, kBF16, 2}, {kBF16, kF32, 4}, {kF16, kBF16, 2}, {kF32, kF32, 4}};
  std::mt19937_64 rng(4);
  for (const auto& p : pairs) {
    const TensorDesc t = *MakeTensor("g", "w", p.from, {5, 6, 7});
    for (const Geometry& g : {*MakeBox(t, {1, 2, 3}, {3, 2, 4}), *MakeBox(t, {0, 1, 0}, {5, 3, 7}),
                              *MakeBox(t, {2, 0, 6}, {2, 6, 1}), *MakeFlat(t, 17, 100)}) {
      const auto count = static_cast<uint64_t>(Elements(g));
      for (int round = 0; round < 50; ++round) {
        uint64_t first = rng() % 211, last = rng() % 211;
        if (round == 0) first = 0, last = 210;
        if (first > last) std::swap(first, last);
        std::vector<char> buffer((last - first) * t.elem_bytes);
        for (char& c : buffer) c = static_cast<char>(rng());
        std::vector<char> got(count * p.to_bytes, 'x'), want = got;
        uint64_t local = 0;
        for (int64_t e = 0; e < 210; ++e) {
          const int64_t index[] = {e / 42, e / 7 % 6, e % 7};
          bool inside = g.is_box || (e >= g.begin && e < g.begin + g.count);
          for (size_t k = 0; g.is_box && k < 3; ++k) {
            inside = inside && index[k] >= g.offset[k] && index[k] < g.offset[k] + g.extent[k];
          }
          if (!inside) continue;
          const auto at = static_cast<uint64_t>(e);
          if (at >= first && at < last) {
            ConvertElements(p.from, buffer.data() + (at - first) * t.elem_bytes, p.to,
                            want.data() + local * p.to_bytes, 1);
          }
          ++local;
        }
        ASSERT_EQ(local, count);
        const ShardMemory memory = *MakeMemory(got.data(), *FindDType(p.to), {}, {});
        ScatterShard(t, g, {first * t.elem_bytes, last * t.elem_bytes}, buffer.data(), memory);
        ASSERT_EQ(got, want) << first << ".." << last;
      }
    }
  }
}

}  // namespace
}  // namespace ckpt
