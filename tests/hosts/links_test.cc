// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What a save does when the network between its hosts is cut, restored, lossy or slow. Two hosts
// with two ranks each; ranks 2 and 3 are on the host that loses its link.
#include <atomic>

#include "hosts/hosts.h"
#include "process/process.h"

namespace ckpt_test {
namespace {

constexpr double kUnresponsive = 3;  // max(3 heartbeats of 200 ms, 3 s)
constexpr double kProbe = 0.3;       // and what a loaded machine adds:
constexpr double kSlack = 2;

class Links : public testing::Test {
 protected:
  void SetUp() override { NEED_HOSTS(hosts); }

  Result Run(const std::function<void(Rank&)>& body) {
    const launch::Options options{.ranks = 4, .deadline_s = 90, .rank_env = Hosts::Job(2, 2)};
    return launch::Run(options, [&](Rank& rank) {
      hosts.Enter(rank.id() / 2);
      body(rank);
    });
  }

  Hosts hosts{2};
  Scratch scratch;
  const std::string root = scratch / "root";
};

// Braces of its own: a macro in a bare `if` is ambiguous.
void Did(const std::string& error) { EXPECT_EQ(error, ""); }

bool OnTheHostThatIsCut(const Rank& rank) { return rank.id() >= 2; }

TEST_F(Links, AHostCutOffBeforeTheGateIsUnresponsiveAndItsRanksLoseTheCoordinatorUntilANewInit) {
  constexpr double kDeadline = 5;
  const Result r = Run([&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = static_cast<uint64_t>(kDeadline * 1000)}, 1);
    EXPECT_OK(t.Save(1));
    rank.Barrier("saved");
    if (rank.is(0)) Did(hosts.Cut(1));
    rank.Barrier("cut");
    t.Set(2);
    const Outcome o = t.Save(2);
    EXPECT_STATUS(o, CKPT_ERR_PARTICIPANTS);
    EXPECT_LT(o.seconds, kUnresponsive + kDeadline);
    if (OnTheHostThatIsCut(rank)) {  // by its own clock
      EXPECT_EQ(o.RankSet(), (Ranks{0}));
      EXPECT_EQ(o.RankSet(CKPT_RANK_UNRESPONSIVE), (Ranks{0}));
      EXPECT_LT(o.seconds, kDeadline + kSlack);
    } else {
      EXPECT_EQ(o.RankSet(CKPT_RANK_UNRESPONSIVE), (Ranks{2, 3})) << o;
      EXPECT_EQ(o.RankSet(), (Ranks{2, 3}));
      EXPECT_LT(o.seconds, kDeadline + kProbe + kSlack);
      Publish(rank, "verdict", o);
    }
    rank.Barrier("judged");
    // The connection is given up on one side; the other learns it when the link is back.
    if (rank.is(0)) Did(hosts.Restore(1));
    rank.Barrier("restored");
    const Outcome after = t.Save(3);
    if (OnTheHostThatIsCut(rank)) {
      EXPECT_STATUS(after, CKPT_ERR_COMM);
      EXPECT_SAYS(after, "a new ckpt_init are the way on");
    } else {
      EXPECT_STATUS(after, CKPT_ERR_PARTICIPANTS);
      // Whichever close arrives first ends the round.
      EXPECT_EQ(after.RankSet(CKPT_RANK_DEAD), after.RankSet()) << after;
      for (const int dead : after.RankSet()) EXPECT_GE(dead, 2);
      Publish(rank, "after", after);
    }
    t.ctx.Free();
    Trainer again(rank, {.root = root, .timeout_ms = 20'000}, 4);
    EXPECT_OK(again.Save(4));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "verdict", {0, 1});
  ExpectSame(r, "after", {0, 1});
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1), StepName(4)}));
  ExpectFileHolds(root, 1, 1);
  ExpectFileHolds(root, 4, 4);
  ExpectNoLeftovers(root);
}

TEST_F(Links, ALinkRestoredBeforeTheContractTimeoutGivesAllTheSameErrorAndTheNextSaveWorks) {
  const Result r = Run([&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 30'000}, 1);
    EXPECT_OK(t.Save(1));
    rank.Barrier("saved");
    if (rank.is(0)) Did(hosts.Cut(1));
    rank.Barrier("cut");
    t.Set(2);
    if (!OnTheHostThatIsCut(rank)) {
      const Outcome o = t.Save({.step = 2, .timeout_ms = 4000});
      EXPECT_STATUS(o, CKPT_ERR_PARTICIPANTS);
      EXPECT_EQ(o.RankSet(CKPT_RANK_UNRESPONSIVE), (Ranks{2, 3})) << o;
      Publish(rank, "verdict", o);
      rank.Event("judged");
      if (rank.is(0)) {
        rank.WaitFor("judged", 2);
        Did(hosts.Restore(1));
      }
    } else {  // its call waits in the kernel until the link is back
      const Outcome o = t.Save({.step = 2, .timeout_ms = 4000});
      EXPECT_STATUS(o, CKPT_ERR_PARTICIPANTS);
      Publish(rank, "verdict", o);
    }
    rank.Barrier("all judged");
    t.Set(3);
    EXPECT_OK(t.Save(3));
    t.Clear();
    EXPECT_OK(t.Load());
    EXPECT_TRUE(t.Holds(3));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "verdict");
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1), StepName(3)}));
  ExpectFileHolds(root, 3, 3);
  ExpectNoLeftovers(root);
}

// A tensor of each rank, so that its bytes must travel where the rank may not write.
struct Large {
  Large(Rank& rank, Ctx& ctx, int64_t bytes) : data(bytes), state(ctx) {
    for (int64_t i = 0; i < bytes; ++i) data[i] = Byte(rank.id(), i);
    state.Add({.name = "of rank " + std::to_string(rank.id()),
               .shape = {bytes},
               .dtype = kU8,
               .data = data.data()});
  }
  static uint8_t Byte(int rank, int64_t i) {
    return static_cast<uint8_t>(i * 131 + (i >> 8) * 7 + rank * 29);
  }
  bool Right(int rank) const {
    for (size_t i = 0; i < data.size(); ++i)
      if (data[i] != Byte(rank, static_cast<int64_t>(i))) return false;
    return true;
  }
  std::vector<uint8_t> data;
  State state;
};

// The link is slow when it is cut, so that the cut falls into the transfer.
TEST_F(Links, AHostCutOffInTheDataPhaseEndsTheSaveOnBothSidesAndNothingIsPublished) {
  const Result r = Run([&](Rank& rank) {
    std::atomic<bool> armed{false};
    const auto on_event = [&](const ckpt_event& event) {
      if (event.kind == CKPT_EVENT_PROGRESS && event.bytes_done > 0 && armed.exchange(false)) {
        EXPECT_LT(event.bytes_done, event.bytes_total);
        EXPECT_EQ(hosts.Cut(1), "");
        rank.Event("cut");
      }
      return 0;
    };
    Ctx ctx({.root = root,
             .config = "io.stall_timeout_ms=6000\nlimits.chunk_bytes=64KiB\n",
             .timeout_ms = 4000,
             .flags = OnTheHostThatIsCut(rank) ? 0u : CKPT_INIT_NO_WRITE,
             .on_event = on_event});
    ASSERT_INIT(ctx);
    Large large(rank, ctx, 4 << 20);
    EXPECT_OK(Save(ctx, large.state, 1));
    rank.Barrier("saved");
    if (rank.is(0)) Did(hosts.Throttle(1, "8mbit"));
    rank.Barrier("throttled");
    armed = rank.is(2);
    const Outcome o = Save(ctx, large.state, 2);
    Publish(rank, "verdict", o);
    if (OnTheHostThatIsCut(rank)) {  // has not voted: it still waits for bytes
      EXPECT_STATUS(o, CKPT_ERR_PARTICIPANTS);
      EXPECT_EQ(o.RankSet(), (Ranks{0}));
    } else {
      EXPECT_STATUS(o, CKPT_ERR_IO);
      EXPECT_TRUE(o.cause.rank == 2 || o.cause.rank == 3) << o;
    }
    EXPECT_LT(o.seconds, 6 + 4 + kSlack);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "verdict", {0, 1});
  ExpectSame(r, "verdict", {2, 3});
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1)}));
}

// Over a link that a test has made worse: only rank 0 writes, so that half of the bytes cross it.
void SaveAndLoadOverIt(Rank& rank, const std::string& root, int64_t bytes) {
  Ctx ctx(
      {.root = root,
       .timeout_ms = 40'000,
       .heartbeat_ms = 4000,  // 12 s of silence are five lost packets of one connection in a row
       .flags = rank.is(0) ? 0u : CKPT_INIT_NO_WRITE});
  ASSERT_INIT(ctx);
  Large large(rank, ctx, bytes);
  const Outcome saved = Save(ctx, large.state, 1);
  EXPECT_OK(saved);
  rank.Put("seconds", std::to_string(saved.seconds));
  std::fill(large.data.begin(), large.data.end(), 0);
  EXPECT_OK(Load(ctx, large.state));
  EXPECT_TRUE(large.Right(rank.id()));
}

TEST_F(Links, ALinkThatLosesAFifthOfItsPacketsOnlyMakesTheSaveSlower) {
  const Result r = Run([&](Rank& rank) {
    if (rank.is(0)) Did(hosts.Lose(0, 20));  // of the bytes for the one that writes, and of votes
    rank.Barrier("lossy");
    SaveAndLoadOverIt(rank, root, 100'000);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  std::printf("[   INFO   ] lossy: saved in %s s\n", r.get(0, "seconds").c_str());
  ExpectNoLeftovers(root);
}

TEST_F(Links, AThrottledLinkOnlyMakesTheSaveSlower) {
  const Result r = Run([&](Rank& rank) {
    if (rank.is(0)) Did(hosts.Throttle(1, "16mbit"));
    rank.Barrier("slow");
    SaveAndLoadOverIt(rank, root, 2 << 20);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_GE(std::stod(r.get(0, "seconds")), 1.5);  // 4 MiB at 2 MB/s, less what the bucket holds
  std::printf("[   INFO   ] throttled: saved in %s s\n", r.get(0, "seconds").c_str());
  ExpectNoLeftovers(root);
}

TEST_F(Links, ADelayedLinkOnlyMakesTheSaveSlower) {
  for (int host : {0, 1}) {
    const std::string lacking = hosts.Delay(host, 50);
    if (!lacking.empty()) GTEST_SKIP() << "NOT RUN: needs netem of the kernel: " << lacking;
  }
  const Result r = Run([&](Rank& rank) { SaveAndLoadOverIt(rank, root, 1 << 20); });
  EXPECT_TRUE(r.ok()) << r.report();
}

}  // namespace
}  // namespace ckpt_test
