// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Strided and converted access to a shard.  The strided walk goes by inner runs: after joining
// dimensions most layouts have few, long ones.
// Test: tests/unit/meta/memory_test.cc
#include "meta/memory.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "meta/convert.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr int64_t kMaxSpan = int64_t{1} << 62;  // bytes
constexpr int64_t kExactOverlap = 1 << 20;      // units

// Without dimensions of one unit, and with neighbours joined where the outer one continues the
// inner one.
void Join(Dims* extent, Dims* strides) {
  Dims e, s;
  for (size_t k = 0; k < extent->size(); ++k) {
    if ((*extent)[k] == 1) continue;
    if (!e.empty() && s.back() == (*strides)[k] * (*extent)[k]) {
      e.back() *= (*extent)[k];
      s.back() = (*strides)[k];
    } else {
      e.push_back((*extent)[k]);
      s.push_back((*strides)[k]);
    }
  }
  *extent = std::move(e);
  *strides = std::move(s);
}

// fn(address, step in bytes, units) for each inner run of units [first, first + n).
// REQUIRES: strides.
template <typename Fn>
void WalkUnits(const ShardMemory& m, uint64_t first, uint64_t n, const Fn& fn) {
  const size_t inner = m.extent.size() - 1;
  Dims at(inner);
  uint64_t left = first;
  int64_t offset = 0;  // units
  const auto inner_extent = static_cast<uint64_t>(m.extent[inner]);
  uint64_t skip = left % inner_extent;
  left /= inner_extent;
  for (size_t k = inner; k-- > 0;) {
    const auto extent = static_cast<uint64_t>(m.extent[k]);
    at[k] = static_cast<int64_t>(left % extent);
    left /= extent;
    offset += at[k] * m.strides[k];
  }
  const int64_t bytes = m.elem_bytes, step = m.strides[inner] * bytes;
  auto* const data = static_cast<char*>(m.data);
  while (n > 0) {
    const uint64_t take = std::min(n, inner_extent - skip);
    fn(data + offset * bytes + static_cast<int64_t>(skip) * step, step, take);
    n -= take;
    skip = 0;
    for (size_t k = inner; k-- > 0;) {
      offset += m.strides[k];
      if (++at[k] < m.extent[k]) break;
      offset -= at[k] * m.strides[k];
      at[k] = 0;
    }
  }
}

// Units of constant size: the compiler makes single moves of them.
template <size_t kBytes>
void CopyUnits(const char* from, int64_t from_step, char* to, int64_t to_step, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i, from += from_step, to += to_step) std::memcpy(to, from, kBytes);
}

void CopyStrided(uint32_t bytes, const char* from, int64_t from_step, char* to, int64_t to_step,
                 uint64_t n) {
  if (from_step == bytes && to_step == bytes) {
    std::memcpy(to, from, n * bytes);
    return;
  }
  switch (bytes) {
    case 1:
      return CopyUnits<1>(from, from_step, to, to_step, n);
    case 2:
      return CopyUnits<2>(from, from_step, to, to_step, n);
    case 4:
      return CopyUnits<4>(from, from_step, to, to_step, n);
    case 8:
      return CopyUnits<8>(from, from_step, to, to_step, n);
    default:
      return CopyUnits<16>(from, from_step, to, to_step, n);
  }
}

enum class Way { kOut, kIn };

// Units [first, first + n) in memory's own dtype, to or from compact bytes.
template <Way kWay>
void MoveUnits(const ShardMemory& m, uint64_t first, uint64_t n, char* compact) {
  if (m.strides.empty()) {
    char* const memory = static_cast<char*>(m.data) + first * m.elem_bytes;
    if constexpr (kWay == Way::kOut) {
      std::memcpy(compact, memory, n * m.elem_bytes);
    } else {
      std::memcpy(memory, compact, n * m.elem_bytes);
    }
    return;
  }
  WalkUnits(m, first, n, [&](char* memory, int64_t step, uint64_t units) {
    if constexpr (kWay == Way::kOut) {
      CopyStrided(m.elem_bytes, memory, step, compact, m.elem_bytes, units);
    } else {
      CopyStrided(m.elem_bytes, compact, m.elem_bytes, memory, step, units);
    }
    compact += units * m.elem_bytes;
  });
}

// Bytes that do not begin or end between units (a foreign file's blocks cut where they like): the
// cut unit goes through a copy of it.
template <Way kWay>
void MoveBytes(const ShardMemory& m, uint64_t begin, uint64_t n, char* compact) {
  const uint64_t size = m.elem_bytes;
  while (n > 0) {
    const uint64_t unit = begin / size, skip = begin % size;
    if (skip == 0 && n >= size) {
      MoveUnits<kWay>(m, unit, n / size, compact);
      const uint64_t whole = n / size * size;
      begin += whole, compact += whole, n -= whole;
      continue;
    }
    char copy[16];
    const uint64_t take = std::min(n, size - skip);
    MoveUnits<Way::kOut>(m, unit, 1, copy);
    if constexpr (kWay == Way::kOut) {
      std::memcpy(compact, copy + skip, take);
    } else {
      std::memcpy(copy + skip, compact, take);
      MoveUnits<Way::kIn>(m, unit, 1, copy);
    }
    begin += take, compact += take, n -= take;
  }
}

// Through a tile that stays in the first-level cache.
template <Way kWay>
void MoveConverted(const ShardMemory& m, DType stored, uint64_t begin, uint64_t n, char* compact) {
  constexpr uint64_t kTile = 512;
  char tile[kTile * 16];
  const uint64_t stored_bytes = FindDType(stored)->bytes;
  uint64_t unit = begin / stored_bytes;
  for (uint64_t left = n / stored_bytes; left > 0;) {
    const uint64_t take = std::min(left, kTile);
    if constexpr (kWay == Way::kOut) {
      MoveUnits<Way::kOut>(m, unit, take, tile);
      ConvertElements(m.dtype, tile, stored, compact, take);
    } else {
      ConvertElements(stored, compact, m.dtype, tile, take);
      MoveUnits<Way::kIn>(m, unit, take, tile);
    }
    unit += take, left -= take, compact += take * stored_bytes;
  }
}

}  // namespace

Result<ShardMemory> MakeMemory(void* data, const DTypeInfo& dtype, const Dims& extent,
                               const Dims& strides) {
  ShardMemory m{data, dtype.dtype, dtype.bytes, {}, {}};
  if (strides.empty() || std::find(extent.begin(), extent.end(), 0) != extent.end()) return m;
  int64_t span = dtype.bytes;
  for (size_t k = 0; k < extent.size(); ++k) {
    int64_t reach = 0;
    const bool far =
        __builtin_mul_overflow(extent[k] - 1, strides[k], &reach) ||
        __builtin_mul_overflow(reach, int64_t{dtype.bytes}, &reach) || reach == INT64_MIN ||
        __builtin_add_overflow(span, reach < 0 ? -reach : reach, &span) || span > kMaxSpan;
    if (far) {
      return Status(Code::kLimit, Cat("stride ", strides[k], " in dimension ", k, " of ", extent[k],
                                      ": more than 2^62 bytes"));
    }
  }
  m.extent = extent;
  m.strides = strides;
  Join(&m.extent, &m.strides);
  // What is left when the strides were compact ones.
  if (m.extent.empty() || (m.extent.size() == 1 && m.strides[0] == 1)) {
    m.extent.clear();
    m.strides.clear();
  }
  return m;
}

bool SelfOverlaps(const ShardMemory& m) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // |stride|, extent
  int64_t units = 1;
  for (size_t k = 0; k < m.extent.size(); ++k) {
    if (m.strides[k] == 0) return true;
    dims.emplace_back(std::abs(m.strides[k]), m.extent[k]);
    if (units <= kExactOverlap) units *= std::min(m.extent[k], kExactOverlap + 1);
  }
  std::sort(dims.begin(), dims.end());
  int64_t span = 1;
  bool nested = true;
  for (const auto& [stride, extent] : dims) {
    nested = nested && stride >= span;
    span += (extent - 1) * stride;
  }
  if (nested) return false;
  if (units > kExactOverlap) return true;
  std::vector<int64_t> offsets = {0};
  for (const auto& [stride, extent] : dims) {
    const size_t n = offsets.size();
    for (int64_t i = 1; i < extent; ++i) {
      for (size_t k = 0; k < n; ++k) offsets.push_back(offsets[k] + i * stride);
    }
  }
  std::sort(offsets.begin(), offsets.end());
  return std::adjacent_find(offsets.begin(), offsets.end()) != offsets.end();
}

void PackShard(const ShardMemory& m, DType stored, uint64_t begin, uint64_t n, void* out) {
  if (m.dtype == stored) {
    MoveBytes<Way::kOut>(m, begin, n, static_cast<char*>(out));
  } else {
    MoveConverted<Way::kOut>(m, stored, begin, n, static_cast<char*>(out));
  }
}

void UnpackShard(const ShardMemory& m, DType stored, uint64_t begin, uint64_t n, const void* in) {
  auto* const compact = const_cast<char*>(static_cast<const char*>(in));  // kIn only reads it
  if (m.dtype == stored) {
    MoveBytes<Way::kIn>(m, begin, n, compact);
  } else {
    MoveConverted<Way::kIn>(m, stored, begin, n, compact);
  }
}

void GatherShard(const TensorDesc& t, const Geometry& g, ByteRange range, const ShardMemory& m,
                 char* buffer) {
  ForEachRun(t, g, range, [&](const Run& run) {
    PackShard(m, t.dtype, run.local_offset, run.bytes, buffer + (run.tensor_offset - range.begin));
  });
}

void ScatterShard(const TensorDesc& t, const Geometry& g, ByteRange range, const char* buffer,
                  const ShardMemory& m) {
  ForEachRun(t, g, range, [&](const Run& run) {
    UnpackShard(m, t.dtype, run.local_offset, run.bytes,
                buffer + (run.tensor_offset - range.begin));
  });
}

void AppendShard(const TensorDesc& t, const Geometry& g, ByteRange range, const ShardMemory& m,
                 char* packed) {
  ForEachRun(t, g, range, [&](const Run& run) {
    PackShard(m, t.dtype, run.local_offset, run.bytes, packed);
    packed += run.bytes;
  });
}

}  // namespace ckpt
