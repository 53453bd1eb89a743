// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Sets of boxes, and whether two of a set overlap.  Coordinates lie in one array: a million boxes
// are a million times 2*ndim numbers, not two million vectors.  Pure. Test:
// tests/unit/plan/boxes_test.cc
#ifndef CKPT_PLAN_BOXES_H_
#define CKPT_PLAN_BOXES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "meta/meta.h"

namespace ckpt {

class BoxSet {
 public:
  explicit BoxSet(size_t ndim) : ndim_(ndim) {}

  // Adds a piece of t, a flat range as at most 2*ndim-1 boxes.  REQUIRES: not empty, ndim > 0.
  void Add(const TensorDesc& t, const Geometry& g, uint32_t piece);

  size_t size() const { return piece_.size(); }
  size_t ndim() const { return ndim_; }
  int64_t lo(size_t box, size_t dim) const { return coords_[(box * ndim_ + dim) * 2]; }
  int64_t hi(size_t box, size_t dim) const { return coords_[(box * ndim_ + dim) * 2 + 1]; }
  uint32_t piece(size_t box) const { return piece_[box]; }

 private:
  void AddFlat(const Dims& shape, int64_t begin, int64_t end, uint32_t piece);

  const size_t ndim_;
  std::vector<int64_t> coords_;  // box-major, then dimension, then lo, hi
  std::vector<uint32_t> piece_;
};

// Two boxes of the set that have an element in common.  n log n for what nested sharding makes
// (sets that cuts along whole hyperplanes take apart); a sweep for the rest.
std::optional<std::pair<uint32_t, uint32_t>> FindOverlap(const BoxSet& boxes);

}  // namespace ckpt

#endif  // CKPT_PLAN_BOXES_H_
