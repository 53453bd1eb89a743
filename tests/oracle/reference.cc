// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Content, shards and memory. What is on disk: reference_files.cc.
#include "oracle/reference.h"

#include <bit>
#include <cmath>
#include <stdexcept>

namespace oracle {
namespace {

constexpr uint32_t kF64 = CKPT_DTYPE(2, 64);

std::string Raw(uint64_t seed, uint64_t i, int64_t bytes) {
  std::string out;
  for (int64_t b = 0; b < bytes; ++b)
    out += static_cast<char>(Mix(seed + static_cast<uint64_t>(b / 8), i) >> (8 * (b % 8)));
  return out;
}

std::string Double(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  std::string out;
  for (int b = 0; b < 8; ++b) out += static_cast<char>(bits >> (8 * b));
  return out;
}

// Values that lie around the ranges of all formats, with ties between two values of the narrow
// ones; now and then infinity, a NaN, or any pattern of f64.
std::string AnyDouble(uint64_t bits) {
  const double sign = bits >> 63 ? -1 : 1;
  const auto small = static_cast<int>(bits >> 8 & 31), wide = static_cast<int>(bits >> 8 & 255);
  const auto few = static_cast<double>(bits >> 20 & 0xfff), many = static_cast<double>(bits >> 20);
  switch (bits & 31) {
    case 0:
      return Double(std::bit_cast<double>(Mix(bits, 1)));
    case 1:
      return Double(sign * HUGE_VAL);
    case 2:
      return Double(std::bit_cast<double>(Mix(bits, 2) | uint64_t{0x7ff} << 52));
    case 3:
    case 4:
      return Double(sign * std::ldexp(many, wide - 43 - 128));
    default:
      return Double(sign * std::ldexp(few, small - 28));
  }
}

// 1, 1.25, 1.5 or 1.75 times 2^-4 .. 2^3, or a zero: in F8_E4M3 and F8_E5M2 alike.
std::string ExactDouble(uint64_t bits) {
  const double sign = bits >> 63 ? -1 : 1;
  const double value =
      std::ldexp(4 + static_cast<double>(bits & 3), static_cast<int>(bits >> 2 & 7) - 6);
  return Double(sign * ((bits >> 8 & 7) == 0 ? 0 : value));
}

// The index with which the content of unit i is drawn.
uint64_t ContentIndex(const Tensor& t, int64_t i) {
  int64_t index = 0, factor = 1;
  for (size_t k = t.shape.size(); k-- > 0; i /= t.shape[k]) {
    if (static_cast<int>(k) != t.same_along) index += i % t.shape[k] * factor;
    factor *= t.shape[k];
  }
  return static_cast<uint64_t>(index);
}

}  // namespace

std::string BlobBytes(const Blob& blob, int rank) {
  const uint64_t seed =
      blob.seed + (blob.scope == CKPT_BLOB_PER_RANK ? static_cast<uint64_t>(rank) : 0);
  std::string out;
  for (int64_t i = 0; i < blob.bytes[static_cast<size_t>(rank)]; ++i)
    out += Raw(seed, static_cast<uint64_t>(i), 1);
  return out;
}

int64_t Count(const Dims& shape) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return count;
}

std::string Renamed(const Pairs& renames, const std::string& name) {
  for (const auto& [from, to] : renames)
    if (name.substr(0, from.size()) == from) return to + name.substr(from.size());
  return name;
}

std::vector<int64_t> Units(const Shard& s) {
  std::vector<int64_t> units;
  const int64_t total = Count(s.shape);
  if (s.kind == CKPT_SHARD_FLAT) {
    for (int64_t i = s.begin; i < s.begin + s.count; ++i) units.push_back(i);
    return units;
  }
  for (int64_t i = 0; i < total; ++i) {
    bool inside = true;
    int64_t rest = i;
    for (size_t k = s.shape.size(); s.kind == CKPT_SHARD_BOX && k-- > 0; rest /= s.shape[k]) {
      const int64_t at = rest % s.shape[k] - s.offset[k];
      inside = inside && at >= 0 && at < s.extent[k];
    }
    if (inside) units.push_back(i);
  }
  return units;
}

std::vector<int64_t> Places(const Shard& s) {
  const Dims& extent = s.kind == CKPT_SHARD_BOX ? s.extent : s.shape;
  const int64_t n = s.kind == CKPT_SHARD_FLAT ? s.count : Count(extent);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < n; ++i) {
    int64_t place = s.first, rest = i;
    if (s.strides.empty()) place += i;
    for (size_t k = s.strides.size(); k-- > 0; rest /= extent[k])
      place += rest % extent[k] * s.strides[k];
    places.push_back(place);
  }
  return places;
}

std::string MemoryUnit(const Tensor& t, int64_t i, uint32_t dtype) {
  const uint64_t index = ContentIndex(t, i);
  const DType& d = FindDType(dtype);
  if (!t.cast) return Raw(t.seed, index, d.bytes);
  const uint64_t bits = Mix(t.seed, index);
  // Any pattern of memory's own dtype, so that each of its NaNs comes to be cast.
  if (!t.exact && (bits >> 5 & 15) == 0) return Raw(t.seed + dtype, index, d.bytes);
  return Cast(kF64, (t.exact ? ExactDouble(bits) : AnyDouble(bits)).data(), dtype);
}

std::string Background(const Shard& s) {
  const int64_t bytes = s.skew + s.span * FindDType(s.dtype).bytes + 3;
  std::string out;
  for (int64_t i = 0; i < bytes; ++i) out += static_cast<char>(0xB6 + 41 * i + i / 256);
  return out;
}

std::string WithUnits(const Shard& s, const std::vector<std::string>& units) {
  std::string out = Background(s);
  const std::vector<int64_t> places = Places(s);
  const auto bytes = static_cast<size_t>(FindDType(s.dtype).bytes);
  for (size_t i = 0; i < places.size(); ++i)
    out.replace(static_cast<size_t>(s.skew) + static_cast<size_t>(places[i]) * bytes, bytes,
                units.at(i));
  return out;
}

std::string StoredBytes(const Model& model, const std::vector<Part>& parts, size_t k) {
  const Tensor& t = model.tensors[k];
  std::vector<uint32_t> held(static_cast<size_t>(Count(t.shape)), 0);
  for (const Part& part : parts) {
    for (const Shard& s : part.shards) {
      if (s.tensor != static_cast<int>(k)) continue;
      for (const int64_t i : Units(s)) held[static_cast<size_t>(i)] = s.dtype;
    }
  }
  std::string out;
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i] == 0) throw std::logic_error("nobody holds a unit of " + t.name);
    const std::string unit = MemoryUnit(t, static_cast<int64_t>(i), held[i]);
    out += t.cast ? Cast(held[i], unit.data(), t.dtype) : unit;
  }
  return out;
}

}  // namespace oracle
