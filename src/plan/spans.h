// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A tensor's bytes in order, as stretches that are held alike: either one piece holds all of a
// stretch, or its pieces interleave in runs too short to be written one by one.  Pure. Test:
// tests/unit/plan/spans_test.cc
#ifndef CKPT_PLAN_SPANS_H_
#define CKPT_PLAN_SPANS_H_

#include <cstdint>
#include <vector>

#include "meta/meta.h"
#include "plan/plan.h"

namespace ckpt {

struct Span {
  ByteRange range;                // of the tensor's bytes
  uint32_t first = 0, count = 0;  // its pieces: TensorSpans::order[first .. first + count)
};
struct TensorSpans {
  std::vector<uint32_t> order;  // indices into GlobalTensor::pieces, by first byte
  std::vector<Span> spans;      // ascending, without gap
};
// Runs of at least `min_run` bytes become spans of their own.  REQUIRES: pieces as MergeStates
// gives them.
TensorSpans MakeSpans(const GlobalTensor& t, uint64_t min_run);

}  // namespace ckpt

#endif  // CKPT_PLAN_SPANS_H_
