// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Shards in normal form.
// Test: tests/unit/meta/geometry_test.cc

#include <algorithm>

#include "meta/box.h"
#include "meta/meta.h"
#include "util/text.h"

namespace ckpt {
namespace {

Status BadShard(const TensorDesc& t, Code code, std::string why) {
  Cause cause;
  cause.name = t.name;
  cause.field = "shard";
  return Status(code, Cat("tensor ", t.group, "/", Printable(t.name), ": ", why), std::move(cause));
}

// REQUIRES: a box inside the tensor, with elements.
Geometry Normalise(const TensorDesc& t, const Dims& offset, const Dims& extent) {
  const size_t d = RunDim(t.shape, extent);
  const bool flat = std::all_of(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(d),
                                [](int64_t n) { return n == 1; });
  Geometry g;
  if (!flat) {
    g.is_box = true;
    g.offset = offset;
    g.extent = extent;
    return g;
  }
  g.count = 1;
  for (size_t k = 0; k < t.shape.size(); ++k) {
    g.begin = g.begin * t.shape[k] + offset[k];
    g.count *= extent[k];
  }
  return g;
}

}  // namespace

Geometry MakeWhole(const TensorDesc& t) {
  Geometry g;
  if (t.bytes > 0) g.count = static_cast<int64_t>(t.bytes / t.elem_bytes);
  return g;
}

Result<Geometry> MakeBox(const TensorDesc& t, const Dims& offset, const Dims& extent) {
  if (offset.size() != t.shape.size() || extent.size() != t.shape.size()) {
    return BadShard(t, Code::kShape,
                    Cat("a box of ", offset.size(), " offsets and ", extent.size(),
                        " extents in a tensor of ", t.shape.size(), " dimensions"));
  }
  bool empty = false;
  for (size_t k = 0; k < offset.size(); ++k) {
    const bool negative = offset[k] < 0 || extent[k] < 0;
    if (negative || extent[k] > t.shape[k] || offset[k] > t.shape[k] - extent[k]) {
      return BadShard(t, negative ? Code::kInvalidArgument : Code::kShape,
                      Cat("the box at ", Bracketed(offset), " of extent ", Bracketed(extent),
                          negative ? " is negative" : " is not inside the shape ",
                          negative ? "" : Bracketed(t.shape)));
    }
    empty = empty || extent[k] == 0;
  }
  if (empty) return Geometry{};
  return Normalise(t, offset, extent);
}

Result<Geometry> MakeFlat(const TensorDesc& t, int64_t begin, int64_t count) {
  const int64_t total = MakeWhole(t).count;
  if (begin < 0 || count < 0) {
    return BadShard(t, Code::kInvalidArgument,
                    Cat("the flat range of ", count, " elements at ", begin, " is negative"));
  }
  if (count > total || begin > total - count) {
    return BadShard(t, Code::kShape,
                    Cat("the flat range of ", count, " elements at ", begin,
                        " is not inside the tensor's ", total, " elements"));
  }
  Geometry g;
  g.begin = count == 0 ? 0 : begin;
  g.count = count;
  return g;
}

Status CheckGeometry(const TensorDesc& t, const Geometry& g) {
  Result<Geometry> normal =
      g.is_box ? MakeBox(t, g.offset, g.extent) : MakeFlat(t, g.begin, g.count);
  CKPT_RETURN_IF_ERROR(normal.status());
  if (*normal == g) return Status();
  return BadShard(t, Code::kInvalidArgument, "the shard is not in normal form");
}

int64_t Elements(const Geometry& g) {
  if (!g.is_box) return g.count;
  int64_t count = 1;
  for (int64_t n : g.extent) count *= n;
  return count;
}

std::string Describe(const TensorDesc&, const Geometry& g) {
  if (Elements(g) == 0) return "no elements";
  if (!g.is_box) {
    if (g.count == 1) return Cat("element ", g.begin);
    return Cat("elements ", g.begin, "..", g.begin + g.count - 1);
  }
  std::string out = "[";
  for (size_t k = 0; k < g.offset.size(); ++k) {
    out += Cat(k == 0 ? "" : ", ", g.offset[k], ":", g.offset[k] + g.extent[k]);
  }
  return out + "]";
}

}  // namespace ckpt
