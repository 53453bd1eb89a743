// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The six ways in which today's stacks lose a day to a save, as their users write them: each does
// here what the user meant, or is an error on the ranks concerned, and the training goes on.
#include <sys/stat.h>

#include "process/process.h"

namespace ckpt_test {
namespace {

// DeepSpeed, accelerate, diffusers: the others wait in a hidden barrier for ever.
TEST(FieldProblems, ASaveByRank0AloneDoesNotHangAndTheTrainingGoesOn) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 1000});
    if (rank.is(0)) {
      const Outcome lone = t.Save(10);
      EXPECT_STATUS(lone, CKPT_ERR_PARTICIPANTS);
      EXPECT_EQ(lone.RankSet(CKPT_RANK_ALIVE_ELSEWHERE), (Ranks{1, 2, 3})) << lone;
      EXPECT_LT(lone.seconds, 2);
    }
    rank.Barrier("the trainer's own collective of step 11");
    EXPECT_OK(t.Save(11));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root, "step-"), std::set{StepName(11)});
  ExpectFileHolds(root, 11, 0);
}

// `if is_main_process: save()` while the others are in the trainer's next collective already: the
// guard is the bug, and the error of rank 0 says so, with what each of the others is in.
TEST(FieldProblems, AGuardedCallIsToldWhatTheOthersAreInAndTheUnguardedOneWorks) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 1000});
    const bool is_main_process = rank.is(0);
    t.ctx.Phase(is_main_process ? "save" : "all-reduce", 7);
    rank.Barrier("phases set");
    if (is_main_process) {
      const Outcome lone = t.Save(7);
      EXPECT_STATUS(lone, CKPT_ERR_PARTICIPANTS);
      for (int other : {1, 2}) {
        ASSERT_NE(lone.Report(other), nullptr) << lone;
        EXPECT_EQ(lone.Report(other)->phase, "all-reduce");
        EXPECT_EQ(lone.Report(other)->phase_step, 7);
      }
    }
    rank.Barrier("all-reduce");
    EXPECT_OK(t.Save(8));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectFileHolds(root, 8, 0);
}

// Hugging Face's Trainer: FileExistsError on all but the first.
TEST(FieldProblems, EveryRankMakingTheFolderFirstIsNoError) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    ::mkdir(root.c_str(), 0755);  // os.makedirs(exist_ok=True), as scripts do
    Trainer t(rank, {.root = root});
    EXPECT_OK(t.Save(1));
    EXPECT_OK(t.Save(2));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1), StepName(2)}));
  ExpectNoLeftovers(root);
}

// "should_save" is true on rank 0 only, but the weights are on all.
TEST(FieldProblems, ASaverRoleOnOneRankOnlyStillSavesEveryRanksShard) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    CtxOptions options{.root = root};
    const bool should_save = rank.is(0);
    if (!should_save) options.flags = CKPT_INIT_NO_WRITE;
    Trainer t(rank, options, 5);
    EXPECT_OK(t.Save(1));
    t.Clear();
    EXPECT_OK(t.Load());
    EXPECT_TRUE(t.Holds(5));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectFileHolds(root, 1, 5);
}

// Clean-up code that removes "the checkpoint" after an error removes the last good one.
TEST(FieldProblems, AFailedSaveThatCleansUpLeavesTheGoodCheckpoint) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 1000}, 1);
    EXPECT_OK(t.Save(1));
    t.Set(2);
    // The same step again, and this time a rank holds a shard of another shape.
    State odd(t.ctx);
    std::vector<float> row = Values(4);
    odd.Box("w", {16, 5}, {0, 0}, {1, 4}, row);
    SaveOptions again{.step = 1, .on_existing = CKPT_EXISTING_REPLACE};
    const Outcome o = rank.is(1) ? Save(t.ctx, odd, again) : t.Save(again);
    EXPECT_FALSE(o.ok());
    Publish(rank, "failed", o);
    t.Clear();
    EXPECT_OK(t.Load());
    EXPECT_TRUE(t.Holds(1));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "failed");
  ExpectFileHolds(root, 1, 1);
  ExpectNoLeftovers(root);
}

// Pipeline parallelism: no rank has what another has.
TEST(FieldProblems, PipelineRanksThatEachHoldOtherLayersAllTakePartAndAllLayersAreSaved) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const auto layer = [](int i) { return "layers." + std::to_string(i) + ".weight"; };
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    State state(ctx);
    const int first = 2 * rank.id();
    std::vector<float> a = Values(8, static_cast<float>(10 * first));
    std::vector<float> b = Values(8, static_cast<float>(10 * (first + 1)));
    state.Whole(layer(first), {2, 4}, a).Whole(layer(first + 1), {2, 4}, b);
    EXPECT_OK(Save(ctx, state, 3));
    std::fill(a.begin(), a.end(), kFill);
    EXPECT_OK(Load(ctx, state));
    EXPECT_EQ(a, Values(8, static_cast<float>(10 * first)));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 3));
  EXPECT_EQ(group.tensors.size(), 8u);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(group.tensors.at(layer(i)).Floats(), Values(8, static_cast<float>(10 * i)));
}

}  // namespace
}  // namespace ckpt_test
