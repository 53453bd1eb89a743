// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The seven scenarios of DESIGN section 4, four ranks each: one stray call must not poison the
// calls after it.
#include "process/process.h"

namespace ckpt_test {
namespace {

constexpr double kAtOnce = 4;       // seconds; well below kLong
constexpr uint64_t kLong = 15'000;  // a deadline that must not be what ends a call
constexpr uint64_t kShort = 1'500;  // a deadline that must be

class ContractScenarios : public testing::Test {
 protected:
  Result Run(uint64_t timeout_ms, const std::function<void(Rank&, Trainer&)>& body) {
    return launch::Run({.ranks = 4, .deadline_s = 60}, [&](Rank& rank) {
      Trainer t(rank, {.root = root(), .timeout_ms = timeout_ms, .heartbeat_ms = 500});
      body(rank, t);
      rank.Barrier("body done");
    });
  }
  std::string root() const { return scratch_ / "root"; }

  // Barriers stand for the training collectives between two saves.
  static void AllSave(Rank& rank, Trainer& t, std::vector<int64_t> steps) {
    for (int64_t step : steps) {
      rank.Barrier("train");
      EXPECT_OK(t.Save(step));
    }
  }

 private:
  Scratch scratch_;
};

TEST_F(ContractScenarios, AnExtraSaveOfRank0FailsWhenTheOthersReachTheNext) {
  const Result r = Run(kLong, [](Rank& rank, Trainer& t) {
    if (rank.is(0)) {
      rank.Notify("extra call");
      const Outcome extra = t.Save(100);
      EXPECT_STATUS(extra, CKPT_ERR_MISMATCH);
      EXPECT_SAYS(extra, "100");
      EXPECT_SAYS(extra, "200");
      EXPECT_LT(extra.seconds, kAtOnce);
    } else {
      rank.WaitFor("extra call");
    }
    EXPECT_OK(t.Save(200));
    AllSave(rank, t, {100, 300});
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root(), "step-"), (std::set{StepName(100), StepName(200), StepName(300)}));
}

TEST_F(ContractScenarios, ALateRankGetsTheOldVerdictWhenTheApplicationSkips) {
  const Result r = Run(kShort, [](Rank& rank, Trainer& t) {
    if (rank.is(2)) rank.WaitFor("gave up", 3);
    const Outcome late = t.Save(100);
    EXPECT_STATUS(late, CKPT_ERR_PARTICIPANTS);
    EXPECT_EQ(late.RankSet(), Ranks{2}) << late;
    Publish(rank, "100", late);
    if (!rank.is(2)) rank.Notify("gave up");
    AllSave(rank, t, {200, 300});
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "100");
  EXPECT_EQ(ListOf(root(), "step-"), (std::set{StepName(200), StepName(300)}));
}

TEST_F(ContractScenarios, ALateRankJoinsTheRetry) {
  const Result r = Run(kShort, [](Rank& rank, Trainer& t) {
    if (rank.is(2)) rank.WaitFor("retry", 3);
    Outcome o = t.Save(100);
    if (!rank.is(2)) {
      EXPECT_STATUS(o, CKPT_ERR_PARTICIPANTS);
      rank.Notify("retry");
    }
    if (!o.ok()) o = t.Save(100);
    EXPECT_OK(o);
    AllSave(rank, t, {200});
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root(), "step-"), (std::set{StepName(100), StepName(200)}));
}

TEST_F(ContractScenarios, ASaveThatRank0SkipsFailsAsSoonAsRank0IsAtTheNext) {
  const Result r = Run(kLong, [](Rank& rank, Trainer& t) {
    if (rank.is(0)) {
      rank.WaitFor("at 100", 3);
    } else {
      rank.Notify("at 100");
      const Outcome skipped = t.Save(100);
      EXPECT_STATUS(skipped, CKPT_ERR_MISMATCH);
      EXPECT_SAYS(skipped, "100");
      EXPECT_SAYS(skipped, "200");
      EXPECT_SAYS(skipped, "rank 0");
      EXPECT_LT(skipped.seconds, kAtOnce);
    }
    EXPECT_OK(t.Save(200));
    AllSave(rank, t, {300});
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root(), "step-"), (std::set{StepName(200), StepName(300)}));
}

TEST_F(ContractScenarios, ALoadAgainstASaveFailsBothAtOnceAndTheRestIsOk) {
  const Result r = Run(kLong, [](Rank& rank, Trainer& t) {
    const Outcome o = rank.is(3) ? t.Load({.step = 100}) : t.Save(100);
    EXPECT_STATUS(o, CKPT_ERR_MISMATCH);
    EXPECT_SAYS(o, "save");
    EXPECT_SAYS(o, "load");
    EXPECT_LT(o.seconds, kAtOnce);
    AllSave(rank, t, {200, 300});
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root(), "step-"), (std::set{StepName(200), StepName(300)}));
}

TEST_F(ContractScenarios, ALoneSaveThatTimedOutIsMadeGoodByTheJointCall) {
  const Result r = Run(kShort, [](Rank& rank, Trainer& t) {
    if (rank.is(0)) {
      const Outcome lone = t.Save(100);
      EXPECT_STATUS(lone, CKPT_ERR_PARTICIPANTS);
      EXPECT_EQ(lone.RankSet(), (Ranks{1, 2, 3})) << lone;
    }
    rank.Barrier("all at 100");
    const Outcome joint = t.Save(100);
    rank.Put("joint", joint.ok() ? "ok" : "failed");
    rank.Barrier("after the joint call");
    if (!joint.ok()) EXPECT_OK(t.Save(100));  // only where a caller missed the grace
    AllSave(rank, t, {50, 200});              // rolled back, and on
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "joint");
  EXPECT_EQ(ListOf(root(), "step-"), (std::set{StepName(50), StepName(100), StepName(200)}));
}

TEST_F(ContractScenarios, ALoneLoadThatTimedOutDoesNotDisturbTheNextSave) {
  const Result r = Run(kShort, [](Rank& rank, Trainer& t) {
    if (rank.is(0)) {
      const Outcome lone = t.Load({.step = 100});
      EXPECT_STATUS(lone, CKPT_ERR_PARTICIPANTS);
      EXPECT_EQ(lone.RankSet(), (Ranks{1, 2, 3})) << lone;
    }
    AllSave(rank, t, {200});
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root(), "step-"), std::set{StepName(200)});
}

}  // namespace
}  // namespace ckpt_test
