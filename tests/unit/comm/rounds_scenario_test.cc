// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The scenarios of docs/contract.md: what one fault costs, and that later calls work.
#include <gtest/gtest.h>

#include "comm/rounds.h"
#include "comm/rounds_world.h"

namespace ckpt {
namespace {

TEST(RoundsScenario, AnExtraCallFailsWhenTheOthersReachTheNextAndARollbackWorks) {
  World w(4);
  w.Calls(0, Save(100));
  w.Call({1, 2, 3}, Save(200));
  EXPECT_EQ(w.ResultCode(0), Code::kMismatch);
  w.Calls(0, Save(200));
  EXPECT_TRUE(w.AllOk());
  for (int64_t step : {100, 300}) {
    w.CallAll(Save(step));
    EXPECT_TRUE(w.AllOk()) << step;
  }
}

TEST(RoundsScenario, ARankLateBeyondTheDeadlineFailsAlikeAndTheNextSavesWork) {
  World w(4);
  w.Call({0, 1, 3}, Save(100));
  w.Wait(Millis(4500));
  w.Calls(2, Save(100));
  w.Wait(Millis(2000));
  EXPECT_EQ(w.Same().code(), Code::kParticipants);
  for (int64_t step : {200, 300}) {
    w.CallAll(Save(step));
    EXPECT_TRUE(w.AllOk()) << step;
  }
}

TEST(RoundsScenario, ARankLateBeyondTheDeadlineJoinsTheRetryOfTheOthers) {
  World w(4);
  w.Call({0, 1, 3}, Save(100));
  w.Wait(Millis(3400));
  EXPECT_EQ(w.ResultCode(0), Code::kParticipants);
  w.Call({0, 1, 3}, Save(100));
  w.Wait(Millis(1000));
  w.Calls(2, Save(100));
  EXPECT_TRUE(w.AllOk());
}

TEST(RoundsScenario, ARetryWithinTheGraceMeetsTheLateRank) {
  World w(4);
  w.Call({0, 1, 3}, Save(100));
  w.Wait(Millis(3400));
  w.Calls(2, Save(100));
  w.Wait(Millis(1900));
  w.Call({0, 1, 3}, Save(100));
  EXPECT_TRUE(w.AllOk());
}

TEST(RoundsScenario, ASkippedSaveFailsOnTheOthersAsSoonAsTheNextIsCalled) {
  World w(4);
  w.Call({1, 2, 3}, Save(100));
  w.Calls(0, Save(200));
  EXPECT_EQ(w.Same({1, 2, 3}).code(), Code::kMismatch);
  w.Call({1, 2, 3}, Save(200));
  EXPECT_TRUE(w.AllOk());
  w.CallAll(Save(300));
  EXPECT_TRUE(w.AllOk());
}

TEST(RoundsScenario, ALoadInsteadOfASaveFailsBothAtOnceAndTheRestWorks) {
  World w(4);
  w.Calls(0, Save(100));
  w.Calls(3, Load("100"));
  EXPECT_EQ(w.Same({0, 3}).code(), Code::kMismatch);
  w.Call({1, 2}, Save(100));
  EXPECT_EQ(w.Same().code(), Code::kMismatch) << "at once for those who come later too";
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(RoundsScenario, ALoneSaveThatTimedOutDoesNotPoisonTheSameSaveByAll) {
  for (int32_t first : {0, 1}) {
    World w(4);
    w.Calls(0, Save(100));
    w.Wait(Millis(3400));
    EXPECT_EQ(w.ResultCode(0), Code::kParticipants);
    w.Wait(Millis(60000));
    for (int32_t i = 0; i < 4; ++i) w.Calls((first + i) % 4, Save(100));  // within the grace
    EXPECT_TRUE(w.AllOk()) << first;
    for (int64_t step : {100, 200}) {
      w.CallAll(Save(step));
      EXPECT_TRUE(w.AllOk()) << step;
    }
  }
}

TEST(RoundsScenario, ALoneSaveThatTimedOutMayCostOneJointSaveBeyondTheGrace) {
  World w(4);
  w.Calls(0, Save(100));
  w.Wait(Millis(3400));
  w.Call({1, 2, 3}, Save(100));
  w.Wait(Millis(2000));
  w.Calls(0, Save(100));
  w.Wait(Millis(3400));
  EXPECT_EQ(w.ResultCode(1), Code::kParticipants);
  EXPECT_EQ(w.ResultCode(0), Code::kParticipants);
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(RoundsScenario, ALoneLoadThatTimedOutDoesNotPoisonASave) {
  World w(4);
  w.Calls(0, Load("100"));
  w.Wait(Millis(3400));
  w.CallAll(Save(200));
  EXPECT_TRUE(w.AllOk());
}

TEST(RoundsScenario, A14_AnEmergencySaveAloneIsForgotten) {
  World w(4);
  w.Calls(1, Save(9999));
  w.Wait(Millis(3400));
  EXPECT_EQ(w.ResultCode(1), Code::kParticipants);
  w.Wait(Millis(2000));
  w.CallAll(Save(7));
  EXPECT_TRUE(w.AllOk());
}

TEST(RoundsScenario, ACallClearsTheDebtsOfOtherOperationsAndLowerSteps) {
  for (const Call& stray : {Save(50), Load("5")}) {
    World w(3);
    w.Calls(0, stray);
    w.Wait(Millis(3400));
    w.CallAll(Save(100));
    w.Wait(Millis(5000));
    w.Calls(1, stray);  // no debt: it opens a round and waits like any other
    w.Wait(Millis(2100));
    EXPECT_TRUE(w.Waits(1)) << Describe(stray);
    w.Call({0, 2}, stray);
    EXPECT_TRUE(w.AllOk());
  }
}

TEST(RoundsScenario, ADebtorConflictsWithNothing) {
  World w(3);
  w.Calls(0, Save(100));
  w.Wait(Millis(3400));
  w.Call({0, 1}, Save(200));
  w.Calls(2, Save(100));  // late for 100: the others' 200 stays open
  EXPECT_TRUE(w.Waits(0));
  w.Wait(Millis(2000));
  EXPECT_EQ(w.ResultCode(2), Code::kParticipants);
  w.Calls(2, Save(200));
  EXPECT_TRUE(w.AllOk());
}

}  // namespace
}  // namespace ckpt
