// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section A: who calls (A01, A02, A03, A14).
#include <nlohmann/json.hpp>

#include "process/process.h"

namespace ckpt_test {
namespace {

TEST(CallingDiscipline, A01_LoneSaveNamesTheMissingRanksByItsDeadline) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 3000});
    EXPECT_OK(t.Save(1));
    t.ctx.Phase("phase of " + std::to_string(rank.id()), 70 + rank.id());
    rank.Barrier("phases set");
    if (rank.is(0)) {
      const Outcome lone = t.Save(100);
      EXPECT_STATUS(lone, CKPT_ERR_PARTICIPANTS);
      EXPECT_LT(lone.seconds, 4);
      EXPECT_EQ(lone.RankSet(), (Ranks{1, 2, 3})) << lone;
      EXPECT_EQ(lone.RankSet(CKPT_RANK_ALIVE_ELSEWHERE), (Ranks{1, 2, 3})) << lone;
      for (const RankReport& report : lone.ranks) {
        EXPECT_EQ(report.phase, "phase of " + std::to_string(report.rank)) << lone;
        EXPECT_EQ(report.phase_step, 70 + report.rank) << lone;
        EXPECT_FALSE(report.doing.empty()) << lone;
        EXPECT_FALSE(report.host.empty()) << lone;
        EXPECT_NE(report.last_call.find("ckpt_save_collective(step=1)"), std::string::npos) << lone;
        EXPECT_SAYS(lone, report.phase);
      }
      EXPECT_EQ(ListOf(root, "step-"), std::set{StepName(1)});
      int64_t latest = -1;
      EXPECT_OK(t.ctx.Latest(&latest));
      EXPECT_EQ(latest, 1);
      rank.Notify("timed out");
    } else {
      rank.WaitFor("timed out");
    }
    rank.Barrier("all call now");
    EXPECT_OK(t.Save(101));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1), StepName(101)}));
  ExpectNoLeftovers(root);
}

TEST(CallingDiscipline, A02_SaveAgainstLoadIsAMismatchOnBoth) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 15'000});
    const Outcome o = rank.is(0) ? t.Save(10) : t.Load({.step = 5});
    EXPECT_STATUS(o, CKPT_ERR_MISMATCH);
    EXPECT_SAYS(o, "save");
    EXPECT_SAYS(o, "load");
    EXPECT_LT(o.seconds, 4);
    Publish(rank, "mismatch", o);
    rank.Barrier("both failed");
    EXPECT_EQ(ListOf(root, "step-"), std::set<std::string>{});
    rank.Barrier("looked");
    EXPECT_OK(t.Save(11));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "mismatch");
}

// W f32 [8,8] cut on dimension 1; rank 1 may not write.
void SaveWithARankThatMayNotWrite(Rank& rank, const std::string& root) {
  CtxOptions options{.root = root, .timeout_ms = 1500};
  if (rank.is(1)) options.flags = CKPT_INIT_NO_WRITE;
  Ctx ctx(options);
  ASSERT_INIT(ctx);
  State state(ctx);
  std::vector<float> half = BoxValues(8, {0, 4 * rank.id()}, {8, 4});
  state.Box("W", {8, 8}, {0, 4 * rank.id()}, {8, 4}, half);
  EXPECT_OK(Save(ctx, state, 1));
  rank.Barrier("saved");
  if (rank.is(0)) {
    const Outcome lone = Save(ctx, state, 2);
    EXPECT_STATUS(lone, CKPT_ERR_PARTICIPANTS);
    EXPECT_EQ(lone.RankSet(), Ranks{1}) << lone;
    EXPECT_LT(lone.seconds, 2.5);
    EXPECT_EQ(ListOf(root, "step-"), std::set{StepName(1)});
  }
  rank.Barrier("timed out");
  EXPECT_OK(Save(ctx, state, 3));
}

TEST(CallingDiscipline, A03_ARankThatWritesNothingStillTakesPart) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30},
                               [&](Rank& rank) { SaveWithARankThatMayNotWrite(rank, root); });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1), StepName(3)}));
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_EQ(group.tensors.at("W").shape, (Dims{8, 8}));
  EXPECT_EQ(group.tensors.at("W").Floats(), Values(64));
  const auto record =
      nlohmann::json::parse(safetensors::ReadBytes(StepPath(root, 1) + "/ckpt.json"));
  for (const auto& file : record.at("files")) {
    const std::string writers = file.at("writers").dump();
    EXPECT_EQ(writers.find("\"rank\":1"), std::string::npos) << writers;
  }
}

TEST(CallingDiscipline, A14_ALoneEmergencySaveIsForgottenAndTheNextSaveWorks) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 1500});
    if (rank.is(1)) {
      const Outcome lone = t.Save({.step = 6, .tag = "emergency"});
      EXPECT_STATUS(lone, CKPT_ERR_PARTICIPANTS);
      EXPECT_EQ(lone.RankSet(), (Ranks{0, 2, 3})) << lone;
      EXPECT_LT(lone.seconds, 2.5);
    }
    rank.Barrier("the emergency is over");
    EXPECT_OK(t.Save(7));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root, "step-"), std::set{StepName(7)});
  ExpectFileHolds(root, 7, 0);
}

}  // namespace
}  // namespace ckpt_test
