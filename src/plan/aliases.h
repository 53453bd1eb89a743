// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The ties that the ranks declare, merged.  Private to src/plan.
// Test: tests/unit/plan/aliases_test.cc
#ifndef CKPT_PLAN_ALIASES_H_
#define CKPT_PLAN_ALIASES_H_

#include <vector>

#include "plan/plan.h"

namespace ckpt {

// Every alias stands for one stored tensor of its group, whichever ranks declare it; an alias of an
// alias is resolved.  Errors as MergeStates.  REQUIRES: `tensors` sorted by (group, name).
Result<GlobalAliases> MergeAliases(const std::vector<RankState>& ranks,
                                   const std::vector<GlobalTensor>& tensors);

}  // namespace ckpt

#endif  // CKPT_PLAN_ALIASES_H_
