// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The slow, obvious judge of save plans: byte by byte over small files.
#ifndef CKPT_TESTS_UNIT_PLAN_ORACLE_H_
#define CKPT_TESTS_UNIT_PLAN_ORACLE_H_

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "unit/plan/world.h"

namespace ckpt::testing {

// MergeStates + PlanSave, which must succeed.
SavePlan PlanOf(const World& w, const SavePlanOptions& options);

// Judges with EXPECT: every byte of every file has one owner and, by counting, exactly one source
// (or the header); sources hold what they are asked for; no block has two owners; who may not write
// owns nothing but header blocks; and carrying the plan out gives the files.
void Judge(const World& w, const SavePlan& plan, const SavePlanOptions& options);

// Bytes owned, per rank.
std::vector<uint64_t> OwnedBytes(const SavePlan& plan);
size_t ExtentCount(const SavePlan& plan);

}  // namespace ckpt::testing

#endif  // CKPT_TESTS_UNIT_PLAN_ORACLE_H_
