// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Rounds after the gate: phases, first errors, losses, stalls, and the commit.
#include <gtest/gtest.h>

#include "comm/rounds.h"
#include "comm/rounds_world.h"

namespace ckpt {
namespace {

using Kind = Outgoing::Kind;

constexpr Millis kStall{120'000};

// A world of ranks that have passed the gate of save(100).
class Phase : public World {
 public:
  explicit Phase(int32_t size, const ckpt::Call& call = Save(100))
      : World(size, Phases::kManual), size_(size) {
    CallAll(call);
    EXPECT_TRUE(AllOk());
  }

  void Give(int32_t rank, uint32_t phase = 1, const Status& local = {}, Bytes bytes = "") {
    rounds.Contribute(now, rank, round, phase, local, std::move(bytes));
    Deliver();
  }
  void GiveAll(uint32_t phase = 1) {
    for (int32_t r = 0; r < size_; ++r) Give(r, phase);
  }
  enum class Then { kNext, kEnd };
  void Publish(uint32_t phase, const Status& status, std::vector<Bytes> payloads, Then then) {
    rounds.Publish(now, round, phase, status, std::move(payloads), then == Then::kEnd);
    Deliver();
  }
  void Moves(int32_t rank, uint64_t counter, const std::string& activity) {
    rounds.Progress(now, rank, round, counter, activity);
  }
  void Lose(int32_t rank) {
    rounds.Closed(now, rank);
    Deliver();
  }
  Status Commit() {
    Status s = rounds.BeginCommit(now, round);
    Deliver();
    return s;
  }

  bool Open() { return Take(Kind::kPhase).empty(); }
  // The one result that `n` ranks got since the last call.
  Status Result(size_t n) {
    const auto results = Take(Kind::kPhase);
    EXPECT_EQ(results.size(), n);
    if (results.empty()) return Status(Code::kInternal, "none");
    for (const Outgoing& out : results) {
      EXPECT_EQ(out.status.message(), results[0].status.message());
      EXPECT_EQ(out.status.code(), results[0].status.code());
      EXPECT_EQ(out.round, round);
    }
    return results[0].status;
  }

 private:
  const int32_t size_;
};

using Then = Phase::Then;

TEST(RoundsPhases, TheRecipeGetsAllContributionsByRankAndItsResultGoesToAll) {
  Phase p(3);
  p.Give(2, 1, {}, "c");
  p.Give(0, 1, {}, "a");
  EXPECT_TRUE(p.Take(Kind::kCollected).empty());
  p.Give(1, 1, {}, "b");
  const auto collected = p.Take(Kind::kCollected);
  ASSERT_EQ(collected.size(), 1u);
  EXPECT_EQ(collected[0].rank, 0);
  EXPECT_EQ(collected[0].phase, 1u);
  EXPECT_EQ(collected[0].collected, (std::vector<Bytes>{"a", "b", "c"}));

  p.Publish(1, {}, {"x", "y", "z"}, Then::kNext);
  const auto results = p.Take(Kind::kPhase);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[1].rank, 1);
  EXPECT_EQ(results[1].payload, "y");
  p.GiveAll(2);
  p.Publish(2, {}, {"same"}, Then::kEnd);
  for (const Outgoing& out : p.Take(Kind::kPhase)) EXPECT_EQ(out.payload, "same");
  p.CallAll(Save(200));
  EXPECT_TRUE(p.AllOk()) << "the round has ended";
}

TEST(RoundsPhases, TheFirstErrorClosesTheRoundOnAllAndLeavesNoDebt) {
  Phase p(4);
  p.Give(0);
  p.Give(2, 1, Status(Code::kIo, "write w.safetensors: Input/output error"));
  const auto results = p.Take(Kind::kPhase);
  ASSERT_EQ(results.size(), 4u);
  for (const Outgoing& out : results) {
    EXPECT_EQ(out.status.code(), Code::kIo);
    EXPECT_EQ(out.status.cause().rank, 2);
    EXPECT_EQ(out.status.message(),
              "write w.safetensors: Input/output error (rank 2 on host node1)");
    ASSERT_EQ(out.status.ranks().size(), 1u);
    EXPECT_EQ(out.status.ranks()[0].condition, Condition::kFailed);
  }
  p.Give(3, 1, Status(Code::kIo, "later"));
  EXPECT_TRUE(p.Open()) << "what comes late is ignored";
  p.CallAll(Save(100));
  EXPECT_TRUE(p.AllOk());
}

TEST(RoundsPhases, ARankMayFailAfterItsVote) {
  Phase p(2);
  p.Give(1);
  p.Give(1, 1, Status(Code::kCancelled, "cancelled"));
  EXPECT_EQ(p.Result(2).code(), Code::kCancelled);
}

// Found by the model check: the next phase has begun, but the rank does not know it yet.
TEST(RoundsPhases, AnErrorOfAPhaseThatHasPassedStillPreventsTheCommit) {
  Phase p(2);
  p.GiveAll();
  p.Publish(1, {}, {}, Then::kNext);
  p.Take(Kind::kPhase);
  p.Give(1, 1, Status(Code::kCancelled, "cancelled"));
  EXPECT_EQ(p.Result(2).code(), Code::kCancelled);
}

TEST(RoundsPhases, TheRecipesErrorIsEverybodysWordForWord) {
  Phase p(2);
  p.GiveAll();
  p.Publish(1, Status(Code::kCoverage, "tensor w: rows 3-4 are missing"), {}, Then::kNext);
  const Status s = p.Result(2);
  EXPECT_EQ(s.code(), Code::kCoverage);
  EXPECT_EQ(s.message(), "tensor w: rows 3-4 are missing");
}

TEST(RoundsPhases, MalformedMessagesChangeNothing) {
  Phase p(2);
  p.Give(0, 7);
  p.rounds.Contribute(p.now, 1, p.round + 1, 1, Status(), "");
  p.Give(0);
  p.Give(0, 1, {}, "twice");
  p.Publish(1, {}, {}, Then::kNext);  // before all have voted
  p.Deliver();
  EXPECT_TRUE(p.Open());
  EXPECT_TRUE(p.Take(Kind::kCollected).empty());
  p.Give(1);
  ASSERT_EQ(p.Take(Kind::kCollected).at(0).collected[0], "");
}

TEST(RoundsPhases, AResultForTheWrongNumberOfRanksIsAnInternalError) {
  Phase p(3);
  p.GiveAll();
  p.Publish(1, {}, {"a", "b"}, Then::kNext);
  EXPECT_EQ(p.Result(3).code(), Code::kInternal);
}

TEST(RoundsPhases, ACallInTheDataPhaseGetsState) {
  Phase p(2);
  p.Calls(1, Save(200));
  EXPECT_EQ(p.World::Result(1).code(), Code::kState);
  EXPECT_TRUE(p.Open());
}

// --- losses

TEST(RoundsPhases, ALostRankClosesTheRoundAtOnce) {
  Phase p(3);
  p.Give(1);
  p.Lose(1);
  const Status s = p.Result(2);
  EXPECT_EQ(s.code(), Code::kParticipants);
  ASSERT_EQ(s.ranks().size(), 1u);
  EXPECT_EQ(s.ranks()[0].rank, 1);
  EXPECT_EQ(s.ranks()[0].condition, Condition::kDead);
  EXPECT_EQ(p.Commit().message(), s.message()) << "the recipe learns why";
}

TEST(RoundsPhases, ARankThatLeavesClosesTheRound) {
  Phase p(2);
  p.rounds.Left(p.now, 1);
  p.Deliver();
  EXPECT_EQ(p.Result(1).ranks().at(0).condition, Condition::kLeft);
}

TEST(RoundsPhases, RanksLeaveAfterFinalizeWithoutAnError) {
  Phase p(3, Finalize());
  for (int32_t r : {1, 2, 0}) p.rounds.Left(p.now, r);
  p.Deliver();
  EXPECT_TRUE(p.Open());
  EXPECT_FALSE(p.rounds.NextDeadline());
}

TEST(RoundsPhases, SilenceAloneClosesNothingBeforeTheStallTimeout) {
  Phase p(2);
  p.muted = {1};
  p.Wait(Millis(60'000));
  EXPECT_TRUE(p.Open());
}

// --- stalls

TEST(RoundsPhases, ARankWithoutProgressClosesTheRoundAndIsNamedWithWhatItDoes) {
  Phase p(3);
  p.Give(0);
  p.Wait(Millis(5'000));
  p.Moves(1, 10, "pwrite of a.safetensors");
  p.Moves(2, 10, "pwrite of model.safetensors");
  p.Wait(Millis(1'000));
  p.Moves(1, 11, "pwrite of a.safetensors");
  p.Wait(kStall - Millis(1'001));
  EXPECT_TRUE(p.Open());
  p.Wait(Millis(1));
  const Status s = p.Result(3);
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_EQ(s.cause().rank, 2);
  EXPECT_EQ(s.message(), "save(step=100): rank 2: pwrite of model.safetensors for 120.0 s");
}

TEST(RoundsPhases, SlowIsNotStalled) {
  Phase p(2);
  p.Give(0);
  for (uint64_t i = 0; i < 10; ++i) {
    p.Wait(Millis(100'000));
    p.Moves(1, i + 1, "pwrite of w");
  }
  EXPECT_TRUE(p.Open());
}

TEST(RoundsPhases, RepeatingTheSameProgressIsNone) {
  Phase p(2);
  p.Give(0);
  p.Moves(1, 1, "pwrite of w");
  for (int i = 0; i < 12; ++i) {
    p.Wait(Millis(10'000));
    p.Moves(1, 1, "pwrite of w");
  }
  EXPECT_EQ(p.Result(2).code(), Code::kIo);
}

TEST(RoundsPhases, WhoHasVotedOwesNothing) {
  Phase p(3);
  p.Give(0);
  p.Give(2);
  p.Wait(kStall);
  const Status s = p.Result(3);
  EXPECT_EQ(s.cause().rank, 1);
  EXPECT_EQ(s.ranks().size(), 1u);
}

TEST(RoundsPhases, TheRecipesTurnIsRank0sDebt) {
  Phase p(2);
  p.GiveAll();
  p.Wait(Millis(1'000));
  p.Moves(0, 5, "fsync of index");
  p.Wait(kStall);
  const Status s = p.Result(2);
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_EQ(s.message(), "save(step=100): rank 0: fsync of index for 120.0 s");
}

TEST(RoundsPhases, ACoordinatorThatStoodStillBlamesNobodyForAStall) {
  Phase p(2);
  p.rounds.Tick(p.now + 2 * kStall);  // stopped and continued: what ranks sent is not read yet
  p.Deliver();
  EXPECT_TRUE(p.Open());
}

TEST(RoundsPhases, TheLoopIsTickedOnceAHeartbeatInTheDataPhase) {
  Phase p(2);
  EXPECT_EQ(p.rounds.NextDeadline(), p.now + Millis(1000));
}

// --- commit

TEST(RoundsPhases, ACommitNeedsAllVotes) {
  Phase p(2);
  p.Give(0);
  EXPECT_EQ(p.Commit().code(), Code::kState);
  EXPECT_EQ(p.rounds.BeginCommit(p.now, 77).code(), Code::kState);
  p.Give(1);
  EXPECT_TRUE(p.Commit().ok());
}

TEST(RoundsPhases, NothingClosesACommitButItsResult) {
  Phase p(3);
  p.GiveAll();
  ASSERT_TRUE(p.Commit().ok());
  p.Lose(1);
  p.rounds.Left(p.now, 2);
  p.Give(2, 1, Status(Code::kCancelled, "cancelled"));
  EXPECT_TRUE(p.Open());
  p.Publish(1, {}, {}, Then::kEnd);
  EXPECT_TRUE(p.Result(1).ok());
}

TEST(RoundsPhases, ARankLostInACommitFailsThePhaseAfterIt) {
  Phase p(3);
  p.GiveAll();
  ASSERT_TRUE(p.Commit().ok());
  p.Lose(1);
  p.Publish(1, {}, {}, Then::kNext);
  const auto results = p.Take(Kind::kPhase);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(results[0].status.ok());
  EXPECT_EQ(results[3].status.code(), Code::kParticipants);
}

TEST(RoundsPhases, AFailedCommitIsPublishedAsItIs) {
  Phase p(2);
  p.GiveAll();
  ASSERT_TRUE(p.Commit().ok());
  p.Publish(1, Status(Code::kIo, "rename: Input/output error"), {}, Then::kEnd);
  EXPECT_EQ(p.Result(2).message(), "rename: Input/output error");
}

TEST(RoundsPhases, AStalledCommitHasAnUnknownOutcomeAndItsLateResultIsIgnored) {
  Phase p(2);
  p.GiveAll();
  ASSERT_TRUE(p.Commit().ok());
  p.Wait(kStall);
  const Status s = p.Result(2);
  EXPECT_EQ(s.code(), Code::kOutcomeUnknown);
  EXPECT_EQ(s.cause().rank, 0);
  p.Publish(1, {}, {}, Then::kEnd);
  EXPECT_TRUE(p.Open());
  p.CallAll(Save(200));
  EXPECT_TRUE(p.AllOk());
}

TEST(RoundsPhases, NoCommitWhileARankIsSilent) {
  Phase p(3);
  p.GiveAll();
  p.muted = {2};
  p.Wait(Millis(3'000));
  const Status s = p.Commit();
  EXPECT_EQ(s.code(), Code::kParticipants);
  ASSERT_EQ(s.ranks().size(), 1u);
  EXPECT_EQ(s.ranks()[0].rank, 2);
  EXPECT_EQ(s.ranks()[0].condition, Condition::kUnresponsive);
  p.Publish(1, s, {}, Then::kEnd);
  EXPECT_EQ(p.Result(3).message(), s.message());
}

TEST(RoundsPhases, NoCommitAfterTheCoordinatorStoodStillSinceTheLastVote) {
  Phase p(2);
  p.GiveAll();
  p.now += Millis(3'500);
  for (int32_t r : {0, 1}) p.rounds.Heartbeat(p.now, r, p.infos[0]);
  const Status s = p.Commit();
  EXPECT_EQ(s.code(), Code::kParticipants);
  EXPECT_EQ(s.cause().rank, 0);
  EXPECT_EQ(s.message(),
            "save(step=100): not committed: rank 0 stood still for 3.5 s since the last vote");
}

TEST(RoundsPhases, AGapBeforeTheLastVoteIsForgiven) {
  Phase p(2);
  p.Give(0);
  p.now += Millis(3'500);
  p.Give(1);
  EXPECT_TRUE(p.Commit().ok());
}

}  // namespace
}  // namespace ckpt
