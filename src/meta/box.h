// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What geometry.cc and runs.cc share: how a box splits into outer dimensions and a contiguous run.
// Test: tests/unit/meta/runs_test.cc
#ifndef CKPT_META_BOX_H_
#define CKPT_META_BOX_H_

#include "meta/meta.h"

namespace ckpt {

// The last dimension that a box does not span whole: from there on its elements are contiguous.
// 0 if it spans all.
inline size_t RunDim(const Dims& shape, const Dims& extent) {
  size_t d = shape.size();
  while (d > 0 && extent[d - 1] == shape[d - 1]) --d;
  return d == 0 ? 0 : d - 1;
}

}  // namespace ckpt

#endif  // CKPT_META_BOX_H_
