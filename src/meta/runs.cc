// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// From a shard's geometry to contiguous runs.  Everything rests on one function: how many of the
// shard's bytes lie before a byte of the tensor, by walking the dimensions once.
// Test: tests/unit/meta/runs_test.cc
#include <algorithm>
#include <cstring>

#include "meta/box.h"
#include "meta/meta.h"

namespace ckpt {
namespace {

uint64_t U(int64_t n) { return static_cast<uint64_t>(n); }

uint64_t ShardBytes(const TensorDesc& t, const Geometry& g) {
  return U(Elements(g)) * t.elem_bytes;
}

// Bytes of the box whose offset in the tensor is below `at`.
uint64_t BoxBytesBefore(const TensorDesc& t, const Geometry& g, uint64_t at) {
  uint64_t below = U(Elements(g));           // elements of the box under the current prefix
  uint64_t stride = t.bytes / t.elem_bytes;  // elements of the tensor under it
  uint64_t element = at / t.elem_bytes, before = 0;
  for (size_t k = 0; k < t.shape.size(); ++k) {
    stride /= U(t.shape[k]);
    const uint64_t index = element / stride;
    element %= stride;
    if (index < U(g.offset[k])) return before * t.elem_bytes;
    if (index >= U(g.offset[k] + g.extent[k])) return (before + below) * t.elem_bytes;
    below /= U(g.extent[k]);
    before += (index - U(g.offset[k])) * below;
  }
  return before * t.elem_bytes + at % t.elem_bytes;
}

uint64_t BytesBefore(const TensorDesc& t, const Geometry& g, uint64_t at) {
  if (t.bytes == 0 || at == 0) return 0;
  if (g.is_box) return BoxBytesBefore(t, g, std::min(at, t.bytes));
  const uint64_t begin = U(g.begin) * t.elem_bytes, end = begin + U(g.count) * t.elem_bytes;
  return std::clamp(at, begin, end) - begin;
}

// Steps through the runs of a box; `base` is the tensor offset of the current run's first byte.
class RunCursor {
 public:
  // Starts at run number `run`.
  RunCursor(const TensorDesc& t, const Geometry& g, uint64_t run)
      : outer_(RunDim(t.shape, g.extent)), extent_(g.extent), step_(outer_), at_(outer_) {
    uint64_t stride = t.elem_bytes;
    for (size_t k = t.shape.size(); k-- > 0; stride *= U(t.shape[k])) {
      base_ += U(g.offset[k]) * stride;
      if (k >= outer_) continue;
      step_[k] = stride;
      at_[k] = run % U(g.extent[k]);
      run /= U(g.extent[k]);
      base_ += at_[k] * stride;
    }
  }
  uint64_t base() const { return base_; }
  void Next() {
    for (size_t k = outer_; k-- > 0;) {
      base_ += step_[k];
      if (++at_[k] < U(extent_[k])) return;
      base_ -= at_[k] * step_[k];
      at_[k] = 0;
    }
  }

 private:
  const size_t outer_;
  const Dims& extent_;
  std::vector<uint64_t> step_, at_;
  uint64_t base_ = 0;
};

template <typename Fn>
void WalkRuns(const TensorDesc& t, const Geometry& g, ByteRange range, const Fn& fn) {
  uint64_t local = BytesBefore(t, g, range.begin);
  const uint64_t end = BytesBefore(t, g, range.end);
  if (local >= end) return;
  if (!g.is_box) {
    fn(Run{U(g.begin) * t.elem_bytes + local, local, end - local});
    return;
  }
  const uint64_t run_bytes = RunBytes(t, g);
  RunCursor cursor(t, g, local / run_bytes);
  for (uint64_t skip = local % run_bytes; local < end; skip = 0, cursor.Next()) {
    const uint64_t n = std::min(run_bytes - skip, end - local);
    fn(Run{cursor.base() + skip, local, n});
    local += n;
  }
}

}  // namespace

ByteRange Hull(const TensorDesc& t, const Geometry& g) {
  const uint64_t bytes = ShardBytes(t, g);
  if (bytes == 0) return {};
  if (!g.is_box) return {U(g.begin) * t.elem_bytes, U(g.begin) * t.elem_bytes + bytes};
  uint64_t first = 0, last = 0;
  for (size_t k = 0; k < t.shape.size(); ++k) {
    first = first * U(t.shape[k]) + U(g.offset[k]);
    last = last * U(t.shape[k]) + U(g.offset[k] + g.extent[k] - 1);
  }
  return {first * t.elem_bytes, (last + 1) * t.elem_bytes};
}

uint64_t RunBytes(const TensorDesc& t, const Geometry& g) {
  if (!g.is_box) return ShardBytes(t, g);
  uint64_t bytes = t.elem_bytes;
  for (size_t k = RunDim(t.shape, g.extent); k < g.extent.size(); ++k) bytes *= U(g.extent[k]);
  return bytes;
}

uint64_t NextByte(const TensorDesc& t, const Geometry& g, uint64_t from) {
  const uint64_t local = BytesBefore(t, g, from);
  if (local >= ShardBytes(t, g)) return t.bytes;
  if (!g.is_box) return U(g.begin) * t.elem_bytes + local;
  const uint64_t run_bytes = RunBytes(t, g);
  return RunCursor(t, g, local / run_bytes).base() + local % run_bytes;
}

void ForEachRun(const TensorDesc& t, const Geometry& g, ByteRange range,
                const std::function<void(const Run&)>& fn) {
  WalkRuns(t, g, range, fn);
}

uint64_t BytesWithin(const TensorDesc& t, const Geometry& g, ByteRange range) {
  if (range.begin >= range.end) return 0;
  return BytesBefore(t, g, range.end) - BytesBefore(t, g, range.begin);
}

}  // namespace ckpt
