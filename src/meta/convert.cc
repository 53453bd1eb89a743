// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversion between floating-point dtypes, on their bits.  Rounding is IEEE 754's
// roundTiesToEven (round to nearest even).  What is narrower than F32 is widened to it first, which
// is exact, so nothing is rounded twice.  The 8-bit formats are those of the Open Compute Project's
// "8-bit Floating Point Specification (OFP8)", revision 1.0.
// Test: tests/unit/meta/convert_test.cc
#include "meta/convert.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace ckpt {
namespace {

// An IEEE 754 binary format: sign, kExp bits of biased exponent, kFrac bits of fraction.
template <DType kCode, typename B, int kExpBits, int kFracBits>
struct Format {
  using Bits = B;
  static constexpr DType kDType = kCode;
  static constexpr int kExp = kExpBits, kFrac = kFracBits, kBias = (1 << (kExpBits - 1)) - 1;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kExp + kFrac));
  // What is too large becomes this; magnitudes from it on are no finite numbers.
  static constexpr Bits kInf = static_cast<Bits>(((Bits{1} << kExp) - 1) << kFrac);
  static constexpr Bits kQuiet = static_cast<Bits>(Bits{1} << (kFrac - 1));
  static constexpr Bits kPayload = kQuiet - 1;  // what a NaN may carry along
  static constexpr bool IsNan(Bits magnitude) { return magnitude > kInf; }
};
// OFP8's E4M3 has no infinity and one NaN, all ones: its last exponent holds numbers.  What is too
// large becomes that NaN, as the specification's non-saturating mode and PyTorch have it.
struct E4M3 : Format<MakeDType(10, 8), uint8_t, 4, 3> {
  static constexpr Bits kInf = 0x7f, kQuiet = 0, kPayload = 0;
  static constexpr bool IsNan(Bits magnitude) { return magnitude == kInf; }
};
using E5M2 = Format<MakeDType(12, 8), uint8_t, 5, 2>;
using F64 = Format<MakeDType(2, 64), uint64_t, 11, 52>;
using F32 = Format<kF32, uint32_t, 8, 23>;
using F16 = Format<MakeDType(2, 16), uint16_t, 5, 10>;
using BF16 = Format<kBF16, uint16_t, 8, 7>;

// value / 2^shift, rounded to nearest even: adding just under half, or half if the result would
// otherwise be odd, carries exactly when the quotient has to grow.
template <typename Bits>
Bits ShiftRounded(Bits value, int shift) {
  const Bits below_half = (Bits{1} << (shift - 1)) - 1;
  return (value + below_half + (value >> shift & 1)) >> shift;
}

template <typename From, typename To>
typename To::Bits Narrow(typename From::Bits bits) {
  using Bits = typename From::Bits;
  constexpr int kDrop = From::kFrac - To::kFrac, kRebias = From::kBias - To::kBias;
  constexpr int kSignShift = From::kExp + From::kFrac - To::kExp - To::kFrac;
  const Bits sign = (bits & From::kSign) >> kSignShift;
  const Bits magnitude = bits & (From::kSign - 1);
  // A carry out of the fraction enters the exponent, up to infinity: the encoding is ordered.
  const Bits normal =
      ShiftRounded<Bits>(magnitude - (static_cast<Bits>(kRebias) << From::kFrac), kDrop);
  Bits out = std::min<Bits>(normal, To::kInf);
  if constexpr (kRebias > 0) {
    const int exponent = static_cast<int>(magnitude >> From::kFrac);
    // Subnormal in To: the whole significand, in units of To's smallest value.  A shift of
    // kFrac + 2 gives 0, as does any longer one (and From's own subnormals, which are in there).
    constexpr Bits kHidden = Bits{1} << From::kFrac;
    const int shift = std::clamp(kDrop + 1 + kRebias - exponent, 1, From::kFrac + 2);
    const Bits subnormal = ShiftRounded<Bits>((magnitude & (kHidden - 1)) | kHidden, shift);
    out = exponent <= kRebias ? subnormal : out;
  }
  const Bits payload = magnitude >> kDrop & To::kPayload;
  out = From::IsNan(magnitude) ? Bits{To::kInf} | To::kQuiet | payload : out;
  return static_cast<typename To::Bits>(sign | out);
}

template <typename From>
uint32_t WidenToF32(typename From::Bits bits) {
  constexpr int kAdd = F32::kFrac - From::kFrac;
  constexpr int kSignShift = 31 - From::kExp - From::kFrac;
  const uint32_t sign = static_cast<uint32_t>(bits & From::kSign) << kSignShift;
  const uint32_t magnitude = bits & (From::kSign - 1u);
  uint32_t out = magnitude << kAdd;
  if constexpr (From::kBias != F32::kBias) {
    constexpr uint32_t kRebias = uint32_t{F32::kBias - From::kBias} << F32::kFrac;
    out += magnitude < From::kInf ? kRebias : 2 * kRebias;
    // Its subnormals are normal in F32: the fraction, a small integer, times a power of two; exact.
    constexpr float kUnit = std::bit_cast<float>(
        static_cast<uint32_t>(F32::kBias + 1 - From::kBias - From::kFrac) << F32::kFrac);
    const float value = static_cast<float>(static_cast<int32_t>(magnitude)) * kUnit;
    out = magnitude >> From::kFrac == 0 ? std::bit_cast<uint32_t>(value) : out;
  }
  return sign | out | (From::IsNan(static_cast<typename From::Bits>(magnitude)) ? F32::kQuiet : 0);
}

// F32 to F64: exact.
uint64_t WidenToF64(uint32_t bits) {
  const uint64_t sign = uint64_t{bits & F32::kSign} << 32;
  const uint32_t magnitude = bits & (F32::kSign - 1);
  if (magnitude > F32::kInf) {
    constexpr int kAdd = F64::kFrac - F32::kFrac;
    const uint64_t payload = uint64_t{magnitude & (F32::kQuiet - 1)} << kAdd;
    return sign | F64::kInf | F64::kQuiet | payload;
  }
  // By its parts: what the host's unit does with a subnormal depends on its mode.
  const int exponent = static_cast<int>(magnitude >> F32::kFrac);
  if (exponent == 0) {
    const double value = static_cast<double>(static_cast<int32_t>(magnitude)) * 0x1p-149;
    return sign | std::bit_cast<uint64_t>(value);
  }
  constexpr int kAdd = F64::kFrac - F32::kFrac;
  constexpr uint64_t kRebias = uint64_t{F64::kBias - F32::kBias} << F64::kFrac;
  const uint64_t wide = uint64_t{magnitude} << kAdd;
  return sign | (magnitude == F32::kInf ? F64::kInf : wide + kRebias);
}

template <typename From, typename To>
typename To::Bits Convert(typename From::Bits bits) {
  constexpr size_t kFrom = sizeof(typename From::Bits), kTo = sizeof(typename To::Bits);
  if constexpr (kFrom >= sizeof(uint32_t) && kTo < kFrom) {
    return Narrow<From, To>(bits);
  } else if constexpr (kFrom == sizeof(uint32_t)) {
    return WidenToF64(bits);
  } else if constexpr (kTo == sizeof(uint64_t)) {
    return WidenToF64(WidenToF32<From>(bits));
  } else if constexpr (kTo == sizeof(uint32_t)) {
    return WidenToF32<From>(bits);
  } else {
    return Narrow<F32, To>(WidenToF32<From>(bits));
  }
}

using Loop = void (*)(const char* src, char* dst, uint64_t n);

template <typename From, typename To>
void ConvertLoop(const char* __restrict src, char* __restrict dst, uint64_t n) {
  const auto one = [=](uint64_t i) {
    typename From::Bits in;
    std::memcpy(&in, src + i * sizeof(in), sizeof(in));
    const typename To::Bits out = Convert<From, To>(in);
    std::memcpy(dst + i * sizeof(out), &out, sizeof(out));
  };
  // Blocks of constant length: what -O2 takes to vectorize.
  constexpr uint64_t kBlock = 64;
  uint64_t i = 0;
  for (; n - i >= kBlock; i += kBlock) {
    for (uint64_t k = 0; k < kBlock; ++k) one(i + k);
  }
  for (; i < n; ++i) one(i);
}

struct Conversion {
  DType from, to;
  Loop loop;
};
template <typename From, typename To>
constexpr Conversion Entry() {
  if constexpr (From::kDType == To::kDType) {
    return {From::kDType, To::kDType, nullptr};
  } else {
    return {From::kDType, To::kDType, ConvertLoop<From, To>};
  }
}
template <typename From>
constexpr std::array<Conversion, 6> Row() {
  return {Entry<From, F64>(), Entry<From, F32>(),  Entry<From, BF16>(),
          Entry<From, F16>(), Entry<From, E4M3>(), Entry<From, E5M2>()};
}
// The diagonal is never used: equal dtypes are copied.
constexpr std::array<Conversion, 6> kConversions[] = {Row<F64>(), Row<F32>(),  Row<BF16>(),
                                                      Row<F16>(), Row<E4M3>(), Row<E5M2>()};

const Conversion* Find(DType from, DType to) {
  for (const auto& row : kConversions) {
    if (row[0].from != from) continue;
    for (const Conversion& c : row) {
      if (c.to == to) return &c;
    }
  }
  return nullptr;
}

}  // namespace

bool CanConvert(DType from, DType to) { return from == to || Find(from, to) != nullptr; }

void ConvertElements(DType from, const void* src, DType to, void* dst, uint64_t n) {
  if (n == 0) return;
  if (from == to) {
    std::memcpy(dst, src, n * FindDType(from)->bytes);
  } else {
    Find(from, to)->loop(static_cast<const char*>(src), static_cast<char*>(dst), n);
  }
}

}  // namespace ckpt
