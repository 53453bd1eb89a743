// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Random worlds: every plan is judged by the oracle, is the same when made again, and survives its
// encoding.
#include <gtest/gtest.h>

#include "unit/plan/oracle.h"

namespace ckpt {
namespace {

SavePlanOptions RandomOptions(std::mt19937_64& rng, size_t world) {
  const uint64_t aligns[] = {1, 4, 16, 64, 4096}, runs[] = {1, 8, 64, 1000};
  SavePlanOptions o;
  o.io_align = aligns[rng() % 5];
  o.min_run = runs[rng() % 4];
  o.coordinator = rng() % 2 == 0 ? 0 : static_cast<int32_t>(rng() % world);
  return o;
}

class RandomWorlds : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomWorlds, EveryByteHasOneOwnerAndOneSourceAndTheRightValue) {
  for (uint64_t seed = GetParam(); seed < GetParam() + 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 rng(seed);
    testing::World w = testing::RandomWorld(rng);
    const SavePlanOptions options = RandomOptions(rng, w.ranks.size());
    SavePlan plan = testing::PlanOf(w, options);
    testing::Judge(w, plan, options);
    const SavePlan again = testing::PlanOf(w, options);
    for (size_t r = 0; r < plan.ranks.size() && !HasFatalFailure(); ++r) {
      const Bytes bytes = EncodeRankPlan(plan.ranks[r]);
      ASSERT_EQ(bytes, EncodeRankPlan(again.ranks[r]));
      auto decoded = DecodeRankPlan(bytes);
      ASSERT_TRUE(decoded.ok()) << decoded.status().message();
      ASSERT_EQ(EncodeRankPlan(*decoded), bytes);
      plan.ranks[r] = std::move(decoded).value();
    }
    testing::Judge(w, plan, options);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWorlds, ::testing::Values(0, 100, 200, 300, 400, 500));

}  // namespace
}  // namespace ckpt
