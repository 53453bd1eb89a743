// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One rank fails while all save: a write or an fsync that fails (A09, C04), a full disk (C06), a
// root that cannot be, replicas that differ, a cancel, a coordinator killed, a rank stopped. Each
// time: one verdict, nothing left behind, the previous step loads, the next save works.
#include "crash/faults.h"

#include <cstdio>

namespace ckpt_test {
namespace {

void ExpectANewLaunchWorks(const std::string& root, const std::vector<int64_t>& items) {
  const int ranks = static_cast<int>(items.size());
  const Result r = launch::Run({.ranks = ranks, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root, items[rank.id()]);
    job.ExpectStep1LoadsAndTheNextSaveWorks(9);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectNoLeftovers(root);
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1), StepName(9)}));
}

TEST(Faults, A09_AWriteThatFailsOnOneRankIsTheSameErrorOnAll) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root);
    EXPECT_OK(job.Save(1));
    if (rank.is(1)) LimitFileSize(64 << 10);  // its part of the file lies behind rank 0's
    const Outcome o = job.Save(2);
    EXPECT_STATUS(o, CKPT_ERR_IO);
    EXPECT_EQ(o.cause.rank, 1) << o;
    EXPECT_EQ(o.cause.sys_errno, EFBIG) << o;
    EXPECT_NE(o.cause.path.find("model.safetensors"), std::string::npos) << o;
    EXPECT_SAYS(o, "rank 1");
    job.ExpectNothingLeft(root, o);
    if (rank.is(1)) LimitFileSize(RLIM_INFINITY);
    job.ExpectStep1LoadsAndTheNextSaveWorks(3);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "o");
}

TEST(Faults, C06_DiskFullIsNoSpaceOnAllRanksAndGivesTheSpaceBack) {
  Scratch scratch;
  const Tmpfs disk(scratch / "disk");
  if (disk.error == EPERM) GTEST_SKIP() << "C06: needs mount";
  ASSERT_EQ(disk.error, 0);
  const std::string root = disk.path + "/root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root, 12 * kMiB);
    EXPECT_OK(job.Save(1));
    rank.Barrier("saved");
    const uint64_t before = disk.Free();
    std::vector<float> much(30 * kMiB), little(16, 3.0f);
    State large(job.ctx), small(job.ctx);
    large.Whole("of rank " + std::to_string(rank.id()), {30 * kMiB}, much);
    small.Whole("replicated", {16}, little);
    rank.Barrier("looked");
    const Outcome o = Save(job.ctx, large, 2);
    if (rank.is(0)) {
      EXPECT_EQ(disk.Free(), before);
    }
    EXPECT_STATUS(o, CKPT_ERR_NO_SPACE);
    EXPECT_EQ(o.cause.sys_errno, ENOSPC) << o;
    EXPECT_NE(o.cause.path.find(root), std::string::npos) << o;
    job.ExpectNothingLeft(root, o);
    job.Set(0);
    EXPECT_OK(Load(job.ctx, job.state));
    EXPECT_TRUE(job.Holds(1));
    EXPECT_OK(Save(job.ctx, small, 3));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "o");
}

TEST(Faults, ARootThatCannotBeIsAnIoErrorThatNamesItOnAllRanks) {
  Scratch scratch;
  const std::string file = scratch / "file";
  safetensors::WriteBytes(file, "not a folder");
  for (const std::string& root : {std::string("/proc/nope/ckpt"), file}) {
    const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
      Job job(rank, root);
      for (int64_t step : {1, 2}) {  // the context stays usable
        const Outcome o = job.Save(step);
        EXPECT_STATUS(o, CKPT_ERR_IO);
        EXPECT_EQ(o.cause.path.rfind(root.substr(0, root.rfind('/')), 0), 0u) << o;
        EXPECT_NE(o.cause.sys_errno, 0) << o;
        EXPECT_SAYS(o, o.cause.path);
        Publish(rank, "o" + std::to_string(step), o);
      }
    });
    EXPECT_TRUE(r.ok()) << r.report();
    ExpectSame(r, "o1");
    ExpectSame(r, "o2");
  }
  EXPECT_EQ(safetensors::ReadBytes(file), "not a folder");
}

TEST(Faults, C04_AnFsyncThatFailsOnOneRankIsTheSameErrorOnAll) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root);
    EXPECT_OK(job.Save(1));
    if (rank.is(1)) FailFsync();
    const Outcome o = job.Save(2);
    EXPECT_STATUS(o, CKPT_ERR_IO);
    EXPECT_EQ(o.cause.rank, 1) << o;
    EXPECT_EQ(o.cause.sys_errno, EIO) << o;
    EXPECT_NE(o.cause.path.find("model.safetensors"), std::string::npos) << o;
    job.ExpectNothingLeft(root, o);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "o");
  ExpectANewLaunchWorks(root, {kSmall, kSmall, kSmall});  // the filter went with its process
}

TEST(Faults, AReplicaMismatchLeavesNothingBehindEvenWithoutCtxFree) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root);
    EXPECT_OK(job.Save(1));
    std::vector<float> copy = Values(kSmall, rank.is(2) ? 1 : 0);
    State replicas(job.ctx);
    replicas.Whole("r", {kSmall}, copy);
    const Outcome o = Save(job.ctx, replicas, 2);
    EXPECT_STATUS(o, CKPT_ERR_REPLICA);
    EXPECT_EQ(o.cause.rank, 2) << o;
    EXPECT_EQ(o.cause.name, "r") << o;
    job.ExpectNothingLeft(root, o);
    EXPECT_OK(job.ctx.Finalize());
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "o");
  ExpectNoLeftovers(root);
  ExpectANewLaunchWorks(root, {kSmall, kSmall, kSmall});
}

TEST(Faults, ACancelOnOneRankCancelsAll) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root, rank.is(1) ? kBig : kSmall,
            [&](const ckpt_event& e) { return rank.is(1) && IsProgress(e, 2); });
    EXPECT_OK(job.Save(1));
    if (rank.is(1)) SlowWrites(root);
    const Outcome o = job.Save(2);
    EXPECT_STATUS(o, CKPT_ERR_CANCELLED);
    EXPECT_EQ(o.cause.rank, 1) << o;
    EXPECT_SAYS(o, "rank 1");
    job.ExpectNothingLeft(root, o);
    job.ExpectStep1LoadsAndTheNextSaveWorks(3);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "o");
}

// The last chunk's event races with the commit: either outcome, but one.
TEST(Faults, ACancelAtTheVeryLastChunkIsOneOutcomeOnAll) {
  constexpr int64_t kTries = 20;
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root, kSmall, [&](const ckpt_event& e) {
      return rank.is(1) && e.kind == CKPT_EVENT_PROGRESS && e.step <= kTries &&
             e.bytes_done == e.bytes_total;
    });
    std::set<std::string> committed;
    for (int64_t step = 1; step <= kTries; ++step) {
      const Outcome o = job.Save(step);
      if (o.ok()) committed.insert(StepName(step));
      if (!o.ok()) {
        EXPECT_STATUS(o, CKPT_ERR_CANCELLED);
        EXPECT_EQ(o.cause.rank, 1) << o;
      }
      if (rank.is(0)) {
        ExpectNoLeftovers(root);
        EXPECT_EQ(ListOf(root, "step-"), committed);
      }
      Publish(rank, std::to_string(step), o);
    }
    EXPECT_OK(job.Save(kTries + 1));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  for (int64_t step = 1; step <= kTries; ++step) ExpectSame(r, std::to_string(step));
}

TEST(Faults, ACoordinatorKilledMidSaveIsNamedAndTheNextLaunchWorks) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const std::vector<launch::Action> plan = {launch::KillAt("rank 0 writes", 0)};
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30, .plan = plan}, [&](Rank& rank) {
    Job job(rank, root, rank.is(0) ? kBig : kSmall, [&](const ckpt_event& e) {
      if (rank.is(0) && IsProgress(e, 2)) rank.Event("rank 0 writes");
      return 0;
    });
    EXPECT_OK(job.Save(1));
    if (rank.is(0)) SlowWrites(root);
    const Outcome o = job.Save(2);
    const bool voted = o.status == CKPT_ERR_OUTCOME_UNKNOWN;  // each judges alone
    EXPECT_TRUE(voted || o.status == CKPT_ERR_PARTICIPANTS) << o;
    EXPECT_EQ(o.RankSet(), Ranks{0}) << o;
    EXPECT_EQ(o.cause.rank, 0) << o;
    EXPECT_LT(o.seconds, 5);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(r.rank(0).signal, SIGKILL) << r.report();
  ExpectANewLaunchWorks(root, {kBig, kSmall, kSmall, kSmall});
}

// Rank 2 of 3 is stopped when `trigger` has written its first chunk; the others must get away.
// `writer`: only this rank writes; -1: all.
void ExpectAStoppedRankIsLeftBehind(int trigger, const std::vector<int64_t>& items, int writer) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const std::vector<launch::Action> plan = {launch::StopAt("stop rank 2", 2)};
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30, .plan = plan}, [&](Rank& rank) {
    Job job(
        rank, root, items[rank.id()],
        [&](const ckpt_event& e) {
          if (rank.is(trigger) && IsProgress(e, 2)) rank.Event("stop rank 2");
          return 0;
        },
        writer < 0 || rank.is(writer) ? 0u : CKPT_INIT_NO_WRITE);
    EXPECT_OK(job.Save(1));
    if (rank.is(trigger)) SlowWrites(root);
    const Outcome o = job.Save(2);  // rank 2 never comes back
    EXPECT_STATUS(o, CKPT_ERR_IO);
    EXPECT_EQ(o.cause.rank, trigger) << o;  // the one that stands still, with its reason
    EXPECT_SAYS(o, "rank 2");
    EXPECT_LT(o.seconds, 6);
    job.ExpectNothingLeft(root, o);
    rank.Barrier("both back", {0, 1});
    if (rank.is(0)) rank.Signal(2, SIGKILL);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "o", {0, 1});
  ExpectANewLaunchWorks(root, items);
}

TEST(Faults, ARankStoppedWhileItWritesStallsTheSave) {
  ExpectAStoppedRankIsLeftBehind(2, {kSmall, kSmall, kBig}, -1);
}

// Rank 2 does not write and has voted; rank 1 asks for its tensor last.
TEST(Faults, ARankStoppedAfterItsVoteWhoseBytesAreStillNeededStallsTheSave) {
  ExpectAStoppedRankIsLeftBehind(1, {kSmall, kBig, 256}, 1);
}

}  // namespace
}  // namespace ckpt_test
