// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Preemption: a signal of one rank and the advice that all get (C08).
#include <chrono>
#include <csignal>

#include "process/process.h"

namespace ckpt_test {
namespace {

constexpr uint32_t kSaveAndExit = CKPT_ADVICE_SAVE_NOW | CKPT_ADVICE_EXIT_SOON;

struct Advice {
  Outcome outcome;
  ckpt_advice value{};
};

Advice Advise(Ctx& ctx, int64_t step) {
  Advice a;
  a.value.struct_size = sizeof a.value;
  ckpt_error* error = nullptr;
  const auto start = std::chrono::steady_clock::now();
  const ckpt_status status = Lib().ckpt_advise(ctx.get(), step, &a.value, &error);
  a.outcome = Take(status, error);
  a.outcome.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return a;
}

void ExpectFlags(Ctx& ctx, int64_t step, uint32_t flags) {
  const Advice a = Advise(ctx, step);
  EXPECT_OK(a.outcome);
  EXPECT_EQ(a.value.flags, flags) << "step " << step;
  EXPECT_EQ(a.value.next_step, step + 1);
  EXPECT_EQ(a.value.seconds_left, 0u);
  EXPECT_EQ(a.value.struct_size, sizeof(ckpt_advice));
}

ckpt_ctx* handlers_ctx = nullptr;
void OnSignal(int number) { Lib().ckpt_notify_signal(handlers_ctx, number); }

TEST(Advise, C08_ASignalOfOneRankIsToldToAllOnce) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    EXPECT_EQ(Lib().ckpt_has_feature("advise"), 1);
    Trainer t(rank, {.root = scratch / "root"});
    ExpectFlags(t.ctx, 1, 0);
    handlers_ctx = t.ctx.get();
    std::signal(SIGTERM, OnSignal);
    if (rank.is(1)) {
      std::raise(SIGTERM);
      std::raise(SIGTERM);
    }
    ExpectFlags(t.ctx, 2, kSaveAndExit);
    ExpectFlags(t.ctx, 3, 0);
    EXPECT_OK(t.Save(3));
    if (rank.is(0)) std::raise(SIGTERM);
    ExpectFlags(t.ctx, 3, kSaveAndExit);
    EXPECT_OK(t.ctx.Finalize());
    Lib().ckpt_notify_signal(t.ctx.get(), SIGTERM);
    Lib().ckpt_notify_signal(nullptr, SIGTERM);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Advise, AFailedOneLeavesTheSignalForTheNext) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch / "root", .timeout_ms = 1500});
    if (rank.is(0)) {
      Lib().ckpt_notify_signal(t.ctx.get(), SIGTERM);
      const Advice lone = Advise(t.ctx, 7);
      EXPECT_STATUS(lone.outcome, CKPT_ERR_PARTICIPANTS);
      EXPECT_EQ(lone.outcome.RankSet(), Ranks{1}) << lone.outcome;
      EXPECT_LT(lone.outcome.seconds, 2.5);
      EXPECT_EQ(lone.value.flags, 0u);
    }
    rank.Barrier("timed out");
    ExpectFlags(t.ctx, 8, kSaveAndExit);
    ExpectFlags(t.ctx, 9, 0);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Advise, AgainstASaveIsAMismatchOnBoth) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch / "root", .timeout_ms = 15'000});
    const Outcome o = rank.is(0) ? t.Save(5) : Advise(t.ctx, 5).outcome;
    EXPECT_STATUS(o, CKPT_ERR_MISMATCH);
    EXPECT_SAYS(o, "advise(step=5)");
    EXPECT_LT(o.seconds, 4);
    Publish(rank, "mismatch", o);
    rank.Barrier("both failed");
    ExpectFlags(t.ctx, 6, 0);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "mismatch");
}

TEST(Advise, ABadArgumentOfOneRankIsTheErrorOfAll) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch / "root", .timeout_ms = 15'000});
    Advice a;
    if (rank.is(1)) {
      ckpt_error* error = nullptr;
      const ckpt_status status = Lib().ckpt_advise(t.ctx.get(), 4, nullptr, &error);
      a.outcome = Take(status, error);
    } else {
      a = Advise(t.ctx, 4);
      EXPECT_LT(a.outcome.seconds, 4);
    }
    EXPECT_STATUS(a.outcome, CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(a.outcome.cause.rank, 1) << a.outcome;
    EXPECT_SAYS(a.outcome, "ckpt_advice");
    Publish(rank, "bad", a.outcome);
    rank.Barrier("both failed");
    ExpectFlags(t.ctx, 5, 0);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "bad");
}

}  // namespace
}  // namespace ckpt_test
