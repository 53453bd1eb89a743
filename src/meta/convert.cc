// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversion between floating-point dtypes, on their bits.  Rounding is IEEE 754's
// roundTiesToEven (round to nearest even); a pair that has neither F32 goes through it, which is
// exact one way, so nothing is rounded twice.
// Test: tests/unit/meta/convert_test.cc
#include "meta/convert.h"

#include <algorithm>
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
  static constexpr Bits kInf = static_cast<Bits>(((Bits{1} << kExp) - 1) << kFrac);
  static constexpr Bits kQuiet = static_cast<Bits>(Bits{1} << (kFrac - 1));
};
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
  const Bits payload = magnitude >> kDrop & (To::kQuiet - 1u);
  out = magnitude > From::kInf ? Bits{To::kInf} | To::kQuiet | payload : out;
  return static_cast<typename To::Bits>(sign | out);
}

template <typename From>
uint32_t WidenToF32(typename From::Bits bits) {
  constexpr int kAdd = F32::kFrac - From::kFrac;
  const uint32_t sign = static_cast<uint32_t>(bits & From::kSign) << 16;
  const uint32_t magnitude = bits & (From::kSign - 1u);
  uint32_t out = magnitude << kAdd;
  if constexpr (From::kBias != F32::kBias) {
    constexpr uint32_t kRebias = uint32_t{F32::kBias - From::kBias} << F32::kFrac;
    out += magnitude < From::kInf ? kRebias : 2 * kRebias;
    // Its subnormals are normal in F32: the fraction, a small integer, times 2^-24; exact.
    static_assert(From::kBias + From::kFrac == 25);
    const float value = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
    out = magnitude >> From::kFrac == 0 ? std::bit_cast<uint32_t>(value) : out;
  }
  return sign | out | (magnitude > From::kInf ? F32::kQuiet : 0);
}

template <typename From, typename To>
typename To::Bits Convert(typename From::Bits bits) {
  if constexpr (sizeof(typename From::Bits) > sizeof(typename To::Bits)) {
    return Narrow<From, To>(bits);
  } else if constexpr (sizeof(typename From::Bits) < sizeof(typename To::Bits)) {
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
  uint32_t to_bytes;
};
template <typename From, typename To>
constexpr Conversion Entry() {
  return {From::kDType, To::kDType, ConvertLoop<From, To>, sizeof(typename To::Bits)};
}
constexpr Conversion kConversions[] = {
    Entry<F32, BF16>(), Entry<F32, F16>(),  Entry<BF16, F32>(), Entry<BF16, F16>(),
    Entry<F16, F32>(),  Entry<F16, BF16>(), Entry<F64, F32>(),
};

const Conversion* Find(DType from, DType to) {
  for (const Conversion& c : kConversions) {
    if (c.from == from && c.to == to) return &c;
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

void ScatterConverted(const TensorDesc& stored, const Geometry& g, ByteRange range,
                      const void* buffer, DType to, void* shard) {
  if (stored.dtype == to) return ScatterRuns(stored, g, range, buffer, shard);
  const Conversion& c = *Find(stored.dtype, to);
  const auto* src = static_cast<const char*>(buffer);
  auto* dst = static_cast<char*>(shard);
  ForEachRun(stored, g, range, [&](const Run& run) {
    c.loop(src + (run.tensor_offset - range.begin),
           dst + run.local_offset / stored.elem_bytes * c.to_bytes, run.bytes / stored.elem_bytes);
  });
}

}  // namespace ckpt
