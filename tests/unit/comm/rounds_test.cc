// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The gate of the contract, rule by rule: agreement and deadlines.
#include "comm/rounds.h"

#include <gtest/gtest.h>

#include "comm/rounds_world.h"

namespace ckpt {
namespace {

using Kind = Outgoing::Kind;

bool Has(const Status& status, const std::string& text) {
  if (status.message().find(text) != std::string::npos) return true;
  ADD_FAILURE() << "no '" << text << "' in: " << status.message();
  return false;
}

std::vector<int32_t> Named(const Status& status) {
  std::vector<int32_t> out;
  for (const RankReport& report : status.ranks()) out.push_back(report.rank);
  return out;
}

// --- all arrive

TEST(Rounds, AllWithTheSameCallGetOkAndOneRoundId) {
  World w(4, World::Phases::kManual);
  w.Call({2, 0, 3}, Save(100));
  EXPECT_TRUE(w.Waits(0));
  w.Calls(1, Save(100));
  EXPECT_TRUE(w.AllOk());
  EXPECT_NE(w.round, 0u);
}

TEST(Rounds, OneRankAloneIsComplete) {
  World w(1);
  w.Calls(0, Save(1));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, ThousandsOfRanksPassOneGate) {
  World w(4096);
  w.CallAll(Save(1, {{"tag", "base"}, {"format", "f1"}}));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, EveryRoundHasItsOwnId) {
  World w(2);
  w.CallAll(Save(1));
  const uint64_t first = w.round;
  w.CallAll(Save(1));
  EXPECT_TRUE(w.AllOk());
  EXPECT_NE(w.round, first);
}

// --- disagreement

TEST(Rounds, A05_AnotherOptionFailsAtOnceOnAllAndNamesFieldValuesAndRank) {
  World w(4);
  w.Call({0, 2, 3}, Save(100, {{"tag", "base"}, {"format", "f1"}}));
  w.Calls(1, Save(100, {{"tag", "base"}, {"format", "f2"}}));
  const Status s = w.Same();
  EXPECT_EQ(s.code(), Code::kMismatch);
  EXPECT_EQ(s.message(),
            "save(step=100): format differs: \"f1\" on ranks 0, 2, 3, \"f2\" on rank 1");
  EXPECT_EQ(s.cause().field, "format");
  EXPECT_EQ(s.cause().rank, 1);
  ASSERT_EQ(Named(s), std::vector<int32_t>{1});
  EXPECT_EQ(s.ranks()[0].condition, Condition::kDisagrees);
}

TEST(Rounds, A05_ThoseWhoComeAfterAMismatchGetItAtOnceToo) {
  World w(4);
  w.Calls(0, Save(100, {{"tag", "a"}}));
  w.Calls(1, Save(100, {{"tag", "b"}}));
  w.Wait(Millis(500));
  w.Call({2, 3}, Save(100, {{"tag", "a"}}));
  EXPECT_EQ(w.Same().code(), Code::kMismatch);
}

TEST(Rounds, A05_AnotherStepFailsTheLowerAtOnceAndTheHigherWhenOvertaken) {
  World w(4);
  w.Calls(3, Save(101));
  w.Call({0, 1, 2}, Save(100));
  const Status lower = w.Result(0);
  EXPECT_EQ(lower.code(), Code::kMismatch);
  EXPECT_EQ(lower.cause().field, "step");
  Has(lower, "save(step=100) on rank 0 is behind save(step=101) on rank 3");
  EXPECT_EQ(w.ResultCode(1), Code::kMismatch);
  EXPECT_EQ(w.ResultCode(2), Code::kMismatch);
  EXPECT_TRUE(w.Waits(3));
  w.Call({0, 1, 2}, Save(200));
  EXPECT_EQ(w.ResultCode(3), Code::kMismatch);
  w.Calls(3, Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, A05_TheHigherStepFailsByItsDeadlineAndCitesTheLower) {
  World w(4);
  w.Calls(3, Save(101));
  w.Call({0, 1, 2}, Save(100));
  w.Wait(Millis(3400));
  EXPECT_EQ(w.ResultCode(3), Code::kParticipants);
  Has(w.Result(3), "save(step=100) on rank 0 is behind");
}

TEST(Rounds, AnOvertakenRoundCitesTheOneThatWasBehindIt) {
  World w(3);
  w.Calls(0, Save(101));
  w.Calls(1, Save(100));
  w.Calls(2, Save(102));
  Has(w.Result(0), "save(step=101) on rank 0 is behind save(step=102) on rank 2; save(step=100)");
}

TEST(Rounds, OfTwoEquallyFewTheLaterIsNamed) {
  World w(3);
  w.Calls(2, Save(100));
  w.Calls(0, Load("100"));
  EXPECT_EQ(w.Same({0, 2}).cause().rank, 0);
}

TEST(Rounds, TheMinorityIsNamedEvenIfItCameFirst) {
  World w(4);
  w.Calls(3, Save(100));
  w.Wait(Millis(3400));
  w.Call({0, 1}, Save(100, {{"tag", "b"}}));  // in grace: they owe the round that rank 3 was in
  w.Calls(3, Save(100));
  EXPECT_EQ(w.Same({0, 1, 3}).code(), Code::kMismatch);
  EXPECT_EQ(w.Result(0).cause().rank, 3);
  EXPECT_EQ(Named(w.Result(0)), std::vector<int32_t>{3});
}

TEST(Rounds, ADifferentTimeoutIsAMismatchExceptForFinalize) {
  World w(2);
  Call slow = Save(1);
  slow.timeout_ms = 9000;
  w.Calls(0, Save(1));
  w.Calls(1, slow);
  EXPECT_EQ(w.Same().cause().field, "contract_timeout_ms");
  Call patient = Finalize();
  patient.timeout_ms = 9000;
  w.Calls(0, Finalize());
  w.Calls(1, patient);
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, ArgumentsThatOnlySomeRanksGiveAreNamed) {
  World w(2);
  w.Calls(0, Save(1, {{"tag", "a"}}));
  w.Calls(1, Save(1));
  Has(w.Same(), "tag differs: \"a\" on rank 0, (not given) on rank 1");
}

TEST(Rounds, A06_LoadOfTheNewestAgainstAStepIsAMismatchOnBoth) {
  World w(2);
  w.Calls(0, Load("newest"));
  w.Calls(1, Load("100"));
  const Status s = w.Same();
  EXPECT_EQ(s.code(), Code::kMismatch);
  EXPECT_EQ(s.cause().field, "step");
  Has(s, "\"newest\" on rank 0, \"100\" on rank 1");
}

TEST(Rounds, A02_SaveAgainstLoadFailsBothAtOnce) {
  World w(2);
  w.Calls(0, Save(10));
  w.Calls(1, Load("5"));
  const Status s = w.Same();
  EXPECT_EQ(s.code(), Code::kMismatch);
  EXPECT_EQ(s.cause().field, "operation");
  Has(s, "different operations: save(step=10) on rank 0, load(step=5) on rank 1");
}

TEST(Rounds, FinalizeAgainstSaveFailsBoth) {
  World w(2);
  w.Calls(0, Finalize());
  w.Calls(1, Save(5));
  EXPECT_EQ(w.Same().code(), Code::kMismatch);
}

// --- deadlines

TEST(Rounds, A01_ALoneCallFailsByItsDeadlineAndSaysWhatTheOthersAreDoing) {
  World w(4);
  w.Calls(0, Save(100));
  w.Wait(Millis(3000));
  ASSERT_TRUE(w.Waits(0)) << "the missing are probed first";
  EXPECT_EQ(w.Take(Kind::kProbe).size(), 3u);
  w.Wait(Millis(300));
  const Status s = w.Result(0);
  EXPECT_EQ(s.code(), Code::kParticipants);
  Has(s,
      "save(step=100): 1 of 4 ranks arrived in 3.3 s (rank 0); missing: rank 1: alive elsewhere, "
      "phase \"forward\" step 101, running, last call ckpt_load() returned OK; rank 2 on host "
      "node1");
  ASSERT_EQ(Named(s), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(s.ranks()[1].condition, Condition::kAliveElsewhere);
  EXPECT_EQ(s.ranks()[1].phase, "forward");
  EXPECT_EQ(s.ranks()[1].phase_step, 101);
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, TheProbeEndsWhenAllHaveAnsweredAndTheirAnswersAreTold) {
  World w(3);
  w.Calls(0, Save(100));
  w.Wait(Millis(3000));
  w.infos[1].phase = "evaluation";
  w.rounds.Heartbeat(w.now, 1, w.infos[1]);
  w.Deliver();
  EXPECT_TRUE(w.Waits(0));
  w.rounds.Heartbeat(w.now, 2, w.infos[2]);
  w.Deliver();
  Has(w.Result(0), "rank 1: alive elsewhere, phase \"evaluation\"");
}

TEST(Rounds, WhoArrivesDuringTheProbeIsInTime) {
  World w(2);
  w.Calls(0, Save(100));
  w.Wait(Millis(3100));
  w.Calls(1, Save(100));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, TheDeadlineCountsFromTheFirstArrival) {
  World w(3);
  w.Calls(0, Save(100));
  w.Wait(Millis(2500));
  w.Calls(1, Save(100));
  w.Wait(Millis(900));
  EXPECT_EQ(w.Same({0, 1}).code(), Code::kParticipants);
}

TEST(Rounds, RanksInTimeAreToldOfTheLateOnesAtHalfTheDeadline) {
  World w(4);
  w.Call({0, 3}, Save(100));
  w.Wait(Millis(1499));
  EXPECT_TRUE(w.Take(Kind::kLate).empty());
  w.Wait(Millis(1));
  const auto late = w.Take(Kind::kLate);
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[0].rank, 0);
  EXPECT_EQ(late[1].rank, 3);
  EXPECT_EQ(late[0].text, "save(step=100): waiting for ranks 1, 2 since 1.5 s (2 of 4 arrived)");
  w.Wait(Millis(600));
  EXPECT_TRUE(w.Take(Kind::kLate).empty());
}

TEST(Rounds, ASilentRankIsUnresponsiveAndTheNextSaveWorks) {
  World w(3);
  w.muted = {2};
  w.Call({0, 1}, Save(100));
  w.Wait(Millis(3300));
  const Status s = w.Same({0, 1});
  ASSERT_EQ(Named(s), std::vector<int32_t>{2});
  EXPECT_EQ(s.ranks()[0].condition, Condition::kUnresponsive);
  EXPECT_GE(s.ranks()[0].heartbeat_age_ns, 3'000'000'000u);
  Has(s, "rank 2 on host node1: unresponsive, silent for 3.3 s");
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk()) << "not sticky: it called, so it is back";
}

TEST(Rounds, NextDeadlineIsWhenSomethingHappensAndNoneWhenNothingPends) {
  World w(2);
  EXPECT_FALSE(w.rounds.NextDeadline());
  const TimePoint t = w.now;
  w.Calls(0, Save(1));
  EXPECT_EQ(w.rounds.NextDeadline(), t + Millis(1500));
  w.Wait(Millis(1500));
  EXPECT_EQ(w.rounds.NextDeadline(), t + Millis(3000));
  w.Wait(Millis(1500));
  EXPECT_EQ(w.rounds.NextDeadline(), t + Millis(3300));
  w.Calls(1, Save(1));
  EXPECT_FALSE(w.rounds.NextDeadline());
}

TEST(Rounds, AnEndlessTimeoutDoesNotOverflowTheClock) {
  World w(2);
  Call call = Save(1);
  call.timeout_ms = UINT64_MAX;
  w.Calls(0, call);
  w.Wait(Millis(100'000));
  EXPECT_TRUE(w.Waits(0));
}

TEST(Rounds, TheMessageFitsATerminalForThousandsOfRanks) {
  World w(4000);
  w.muted = {7, 8, 9, 10, 11, 12};
  w.Calls(0, Save(100));
  w.Wait(Millis(3300));
  const Status s = w.Result(0);
  EXPECT_EQ(s.ranks().size(), 3999u) << "the reports are complete";
  EXPECT_LT(s.message().size(), 1500u) << s.message();
  Has(s, "ranks 10-12: unresponsive");
  Has(s, "ranks 4-6, 13-3999: alive elsewhere");
}

TEST(Rounds, ScatteredRanksAreCutOffWithACount) {
  World w(2000);
  for (int32_t r = 0; r < 2000; r += 2) w.Calls(r, Save(100));
  w.Wait(Millis(3300));
  Has(w.Result(0), "(ranks 0, 2, 4, 6, 8, 10, 12, 14 and 992 more)");
  EXPECT_LT(w.Result(0).message().size(), 1500u);
}

}  // namespace
}  // namespace ckpt
