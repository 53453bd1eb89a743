// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The gate: ranks that are lost or leave, errors that a rank brings, and malformed events.
#include <gtest/gtest.h>

#include "comm/rounds.h"
#include "comm/rounds_world.h"

namespace ckpt {
namespace {

Status BadArgument() { return Status(Code::kInvalidArgument, "shard w: bad offset"); }

std::vector<int32_t> Named(const Status& status) {
  std::vector<int32_t> out;
  for (const RankReport& report : status.ranks()) out.push_back(report.rank);
  return out;
}

// --- dead and left

TEST(Rounds, ALostConnectionFailsTheOpenRoundAtOnceAsDead) {
  World w(4);
  w.Call({0, 1}, Save(100));
  w.rounds.Closed(w.now, 2);
  w.Deliver();
  const Status s = w.Same({0, 1});
  EXPECT_EQ(s.code(), Code::kParticipants);
  ASSERT_EQ(Named(s), std::vector<int32_t>{2}) << "those who may still come are not blamed";
  EXPECT_EQ(s.ranks()[0].condition, Condition::kDead);
  EXPECT_EQ(s.cause().rank, 2);
}

TEST(Rounds, AnArrivedRankThatDiesFailsItsRound) {
  World w(3);
  w.Call({0, 1}, Save(100));
  w.rounds.Closed(w.now, 1);
  w.Deliver();
  EXPECT_EQ(w.ResultCode(0), Code::kParticipants);
}

TEST(Rounds, ARankThatLeftFailsEveryLaterRoundAtOnce) {
  World w(3);
  w.rounds.Left(w.now, 1);
  for (int64_t step = 1; step < 4; ++step) {
    w.Call({0, 2}, Save(step));
    const Status s = w.Same({0, 2});
    EXPECT_EQ(s.code(), Code::kParticipants);
    ASSERT_EQ(s.ranks().size(), 1u);
    EXPECT_EQ(s.ranks()[0].condition, Condition::kLeft);
  }
}

TEST(Rounds, WhoIsInGraceWhenARankDiesIsToldAtOnce) {
  World w(3);
  w.Calls(0, Save(100));
  w.Wait(Millis(3400));
  w.Calls(1, Save(100));
  ASSERT_TRUE(w.Waits(1));
  w.rounds.Closed(w.now, 2);
  w.Deliver();
  EXPECT_EQ(w.Result(1).message(), w.Result(0).message());
}

// --- local errors

TEST(Rounds, ALocalErrorClosesTheRoundOnAllWithItsCodeTextAndRank) {
  World w(3);
  w.Call({0, 2}, Save(100));
  w.Calls(1, Save(100), BadArgument());
  const Status s = w.Same();
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_EQ(s.message(), "shard w: bad offset (rank 1 on host node0)");
  EXPECT_EQ(s.cause().rank, 1);
  ASSERT_EQ(Named(s), std::vector<int32_t>{1});
  EXPECT_EQ(s.ranks()[0].condition, Condition::kFailed);
}

TEST(Rounds, ALocalErrorClosesARoundOfAnyKey) {
  World w(3);
  w.Calls(0, Save(100));
  w.Calls(1, Load("3"), BadArgument());
  EXPECT_EQ(w.Same({0, 1}).code(), Code::kInvalidArgument);
  w.Calls(2, Save(100));
  EXPECT_EQ(w.Same().code(), Code::kInvalidArgument);
}

TEST(Rounds, ALocalErrorThatMeetsNoRoundIsTheOthersNextVerdict) {
  World w(4);
  w.Calls(3, Save(100), BadArgument());
  EXPECT_EQ(w.ResultCode(3), Code::kInvalidArgument);
  w.Call({0, 1, 2}, Save(100));
  EXPECT_EQ(w.Same().code(), Code::kInvalidArgument);
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, ALocalErrorIsForgottenAfterTheDeadline) {
  World w(2);
  w.Calls(1, Save(100), BadArgument());
  w.Wait(Millis(3001));
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, TheSameLocalErrorOnAllRanksIsOneRoundAndPoisonsNothing) {
  World w(4);
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (int32_t r = 0; r < 4; ++r) w.Calls(r, Save(100), BadArgument());
    EXPECT_EQ(w.Same().cause().rank, 0);
  }
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, ARetryAfterALocalErrorIsJoinedByTheOthersFirstCall) {
  World w(3);
  w.Calls(1, Save(100), BadArgument());
  w.Calls(1, Save(100));
  w.Call({0, 2}, Save(100));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, RetriesThatRunAheadWithLocalErrorsStayInStep) {
  World w(2);
  w.Calls(0, Save(100), BadArgument());
  w.Calls(0, Save(100), BadArgument());
  w.Calls(1, Save(100), BadArgument());
  w.Calls(1, Save(100), BadArgument());
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, JoiningARoundSettlesAllErrorsOfItsKey) {
  World w(2);
  w.Calls(0, Save(100), BadArgument());
  w.Calls(0, Save(100), BadArgument());
  w.Calls(0, Save(100));
  w.Calls(1, Save(100));
  EXPECT_TRUE(w.AllOk());
  w.Calls(1, Save(100));
  w.Calls(0, Save(100));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, TheLocalErrorOfARankThatIsBehindIsItsOwn) {
  World w(2);
  w.Calls(0, Save(100));
  w.Wait(Millis(3400));
  w.Calls(1, Save(50), BadArgument());
  w.Calls(1, Save(100));
  w.Wait(Millis(2000));
  EXPECT_EQ(w.Same().code(), Code::kParticipants);
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, ALateRanksLocalErrorConcernsOnlyTheRoundThatHasFailed) {
  World w(3);
  w.Call({0, 1}, Save(100));
  w.Wait(Millis(3400));
  w.Calls(2, Save(100), BadArgument());
  EXPECT_EQ(w.Same().code(), Code::kParticipants);
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, StateAndForkedAreNobodyElsesBusiness) {
  World w(2);
  w.Calls(0, Save(1));
  w.Calls(1, Save(1), Status(Code::kState, "closed"));
  EXPECT_EQ(w.ResultCode(1), Code::kState);
  EXPECT_TRUE(w.Waits(0));
}

// --- malformed

TEST(Rounds, ASecondCallWhileOneIsOpenGetsStateAndDisturbsNothing) {
  World w(2);
  w.Calls(0, Save(1));
  w.rounds.Arrive(w.now, 0, 999, Save(2), Status());
  const auto out = w.rounds.TakeOutgoing();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].call_id, 999u);
  EXPECT_EQ(out[0].status.code(), Code::kState);
  w.Calls(1, Save(1));
  EXPECT_TRUE(w.AllOk());
}

TEST(Rounds, NonsenseIsIgnoredOrAnsweredToItsSenderAlone) {
  World w(2);
  w.Calls(0, Save(1));
  w.rounds.Arrive(w.now, 0, 1, Save(1), Status());  // the same call said twice
  w.rounds.Arrive(w.now, -1, 5, Save(1), Status());
  w.rounds.Arrive(w.now, 2, 5, Save(1), Status());
  w.rounds.Closed(w.now, 7);
  w.rounds.Contribute(w.now, 1, 77, 1, Status(), "x");
  w.rounds.Publish(w.now, 77, 1, Status(), {}, true);
  w.rounds.Progress(w.now, 1, 77, 1, "x");
  EXPECT_TRUE(w.rounds.TakeOutgoing().empty());
  Call odd = Save(1);
  odd.op = static_cast<Op>(99);
  w.Calls(1, odd);
  EXPECT_EQ(w.ResultCode(1), Code::kState);
  w.Calls(1, Save(1));
  EXPECT_TRUE(w.AllOk());
}

}  // namespace
}  // namespace ckpt
