// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// How many bytes of each set each of its ranks should own, so that bytes per rank are even.  Pure.
// Test: tests/unit/plan/balance_test.cc
#ifndef CKPT_PLAN_BALANCE_H_
#define CKPT_PLAN_BALANCE_H_

#include <cstdint>
#include <vector>

#include "plan/segments.h"

namespace ckpt {

// quotas[set][i] for the i-th rank of that set; they add up to bytes[set].  A set with fewer than
// min_run bytes per rank uses fewer ranks.  REQUIRES: the bytes of all sets add up to less than
// 2^63.
using Quotas = std::vector<std::vector<uint64_t>>;
Quotas Balance(const RankSets& sets, const std::vector<uint64_t>& bytes, size_t world_size,
               uint64_t min_run);

}  // namespace ckpt

#endif  // CKPT_PLAN_BALANCE_H_
