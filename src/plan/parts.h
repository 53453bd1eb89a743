// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The pieces that lie in an extent.  Pure.
// Test: tests/unit/plan/save_plan_test.cc
#ifndef CKPT_PLAN_PARTS_H_
#define CKPT_PLAN_PARTS_H_

#include <cstdint>

#include "plan/plan.h"
#include "plan/segments.h"

namespace ckpt {

// Appends to `plan` (the owner's) the extent with its parts, and the tensors that they refer to.
// REQUIRES: called in ascending order of (file, begin) for each plan.
void AddExtent(const PlannedFile& file, uint32_t file_index, ByteRange range, int32_t owner,
               const SavePlanOptions& options, RankPlan* plan);

}  // namespace ckpt

#endif  // CKPT_PLAN_PARTS_H_
