// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of the save plan one by one.
#include <gtest/gtest.h>

#include "unit/plan/oracle.h"

namespace ckpt {
namespace {

using testing::Judge;
using testing::OwnedBytes;
using testing::PlanOf;
using testing::World;

World Columns(int ranks, int64_t rows, int64_t width) {
  World w(ranks);
  const size_t t = w.Add("w", kF32, {rows, width * ranks});
  w.Slices(t, 1, std::vector<int64_t>(static_cast<size_t>(ranks), width));
  w.File("model", 4096, {t});
  return w;
}

TEST(SavePlan, ShortRunsAreAssembledAtOneOwnerWithOnePartPerSource) {
  const World w = Columns(4, 64, 16);  // 16 KiB in runs of 64 bytes
  const SavePlan plan = PlanOf(w, {});
  Judge(w, plan, {});
  EXPECT_EQ(testing::ExtentCount(plan), 2u);  // the header's and one for the data
  for (const RankPlan& r : plan.ranks) {
    for (const PlanExtent& e : r.extents) EXPECT_TRUE(e.parts.empty() || e.parts.size() == 4);
  }
}

TEST(SavePlan, LongRunsAreWrittenByTheirHolders) {
  const World w = Columns(4, 3, 2048);  // runs of 8 KiB
  const SavePlanOptions options{4096, 8192, 0};
  const SavePlan plan = PlanOf(w, options);
  Judge(w, plan, options);
  for (size_t r = 0; r < 4; ++r) {
    for (const PlanExtent& e : plan.ranks[r].extents) {
      for (const PlanPart& p : e.parts) EXPECT_EQ(p.source_rank, static_cast<int32_t>(r));
    }
  }
}

TEST(SavePlan, A03_ARankThatMayNotWriteOwnsNothingAndItsBytesTravel) {
  World w = Columns(2, 8, 4);
  w.ranks[1].may_write = false;
  const SavePlanOptions options{64, 16, 0};
  const SavePlan plan = PlanOf(w, options);
  Judge(w, plan, options);
  EXPECT_TRUE(plan.ranks[1].extents.empty());
}

TEST(SavePlan, ACoordinatorThatMayNotWriteStillOwnsTheHeadersBlocksAndNoOther) {
  World w(3);
  const size_t t = w.Add("w", kU8, {10000});
  w.Whole(0, t);
  w.File("model", 100, {t});
  w.ranks[0].may_write = false;
  const SavePlanOptions options{4096, 16, 0};
  const SavePlan plan = PlanOf(w, options);
  Judge(w, plan, options);
  EXPECT_EQ(OwnedBytes(plan)[0], 4096u);
}

TEST(SavePlan, WithoutAnyRankThatMayWriteItIsInvalid) {
  World w = Columns(2, 8, 4);
  for (RankState& r : w.ranks) r.may_write = false;
  const auto state = MergeStates(w.ranks);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(PlanSave(*state, w.files, {}).status().code(), Code::kInvalidArgument);
}

TEST(SavePlan, AFileThatTheStateDoesNotKnowIsADefectNotACrash) {
  World w = Columns(2, 8, 4);
  const auto state = MergeStates(w.ranks);
  ASSERT_TRUE(state.ok());
  auto unknown = w.files;
  unknown[0].tensors[0].desc.name = "x";
  EXPECT_EQ(PlanSave(*state, unknown, {}).status().code(), Code::kInternal);
  auto hole = w.files;
  hole[0].tensors[0].offset += 4;
  EXPECT_EQ(PlanSave(*state, hole, {}).status().code(), Code::kInternal);
}

TEST(SavePlan, HoldersOfAPieceThatTheOwnerLacksTakeTurns) {
  World w(5);
  for (int r = 1; r < 5; ++r) w.ranks[static_cast<size_t>(r)].may_write = false;
  for (int f = 0; f < 4; ++f) {
    const size_t s = w.Add("s" + std::to_string(f), kU8, {1 << 20});
    for (int r = 1; r < 5; ++r) w.Whole(r, s);
    w.File("f" + std::to_string(f), 4096, {s});
  }
  const SavePlan plan = PlanOf(w, {});
  std::vector<int> asked(5, 0);
  for (const PlanExtent& e : plan.ranks[0].extents) {
    for (const PlanPart& p : e.parts) ++asked[static_cast<size_t>(p.source_rank)];
  }
  EXPECT_EQ(asked, (std::vector<int>{0, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace ckpt
