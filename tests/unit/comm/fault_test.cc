// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks that do not come, die, stall, lie or leave: everybody else gets an answer that names them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <mutex>
#include <set>

#include "unit/comm/raw_rank.h"
#include "unit/comm/world.h"

namespace ckpt {
namespace {

using namespace testing;  // NOLINT

// Far below every deadline that a hang would run into, far above what a busy machine needs.
constexpr double kSoon = 10;

std::set<int32_t> Named(const Status& status) {
  std::set<int32_t> out;
  for (const RankReport& r : status.ranks()) out.insert(r.rank);
  return out;
}

double Seconds(TimePoint since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

// Groups for ranks 0..n-2 and a raw last rank.
struct WorldWithRaw {
  explicit WorldWithRaw(int32_t n) : job(NewJob()), groups(static_cast<size_t>(n - 1)) {
    OnAll(n, [&](int32_t r) {
      if (r == n - 1) {
        raw = std::make_unique<RawRank>(r, n, job);
        EXPECT_TRUE(raw->Next<RosterMsg>().status.ok());
        return;
      }
      auto group = Group::Create(Options(r, n, job));
      EXPECT_TRUE(group.ok()) << group.status().message();
      if (group.ok()) groups[static_cast<size_t>(r)] = *group;
    });
  }
  std::string job;
  std::vector<std::shared_ptr<Group>> groups;
  std::unique_ptr<RawRank> raw;
};

TEST(Fault, A01_ALoneCallerIsToldWhereTheOthersAre) {
  World world(4);
  ASSERT_TRUE(world.ok());
  for (int32_t r = 1; r < 4; ++r) {
    world[r].SetPhase("forward", 100 + r);
    world[r].CallBegins("ckpt_load(step=90)");
    world[r].CallEnds(Code::kOk);
  }
  const TimePoint start = Clock::now();
  const Status status = world[0].Arrive(Save(100, 1000), Status()).status();
  EXPECT_LT(Seconds(start), kSoon);
  EXPECT_EQ(status.code(), Code::kParticipants);
  EXPECT_EQ(Named(status), (std::set<int32_t>{1, 2, 3}));
  for (const RankReport& r : status.ranks()) {
    EXPECT_EQ(r.condition, Condition::kAliveElsewhere);
    EXPECT_EQ(r.phase, "forward");
    EXPECT_EQ(r.phase_step, 100 + r.rank);
    EXPECT_TRUE(r.last_call.starts_with("ckpt_load(step=90) returned OK")) << r.last_call;
    EXPECT_FALSE(r.doing.empty());
    EXPECT_FALSE(r.host.empty());
  }
  world.All([](int32_t, Group& group) {
    std::string sum;
    EXPECT_TRUE(SumOfRanks(group, 200, &sum).ok());
    EXPECT_EQ(sum, "6");
  });
}

TEST(Fault, LateRanksAreAnnouncedAtHalfTheDeadline) {
  std::mutex mu;
  std::string late;
  World world(2, [&](int32_t rank, GroupOptions& o) {
    if (rank != 0) return;
    o.on_late = [&](const std::string& text) {
      std::lock_guard lock(mu);
      late = text;
    };
  });
  ASSERT_TRUE(world.ok());
  EXPECT_FALSE(world[0].Arrive(Save(1, 300), Status()).ok());
  std::lock_guard lock(mu);
  EXPECT_NE(late.find("rank 1"), std::string::npos) << late;
}

// Whether rank 0's error comes to show `text` as what rank 1 is doing.  A busy machine may miss the
// probe's 300 ms, which must not matter for more than one verdict.
bool IsShown(World& world, const std::string& text) {
  for (int64_t step = 1; step < 30; ++step) {
    const TimePoint start = Clock::now();
    const Status status = world[0].Arrive(Save(step, 50), Status()).status();
    EXPECT_EQ(status.code(), Code::kParticipants);
    EXPECT_LT(Seconds(start), kSoon);
    if (status.ranks()[0].doing.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(Fault, TheHostsDescriptionIsShown) {
  World world(2, [](int32_t rank, GroupOptions& o) {
    if (rank == 1) o.describe = [] { return std::string("loss.backward() at train.py:12"); };
  });
  ASSERT_TRUE(world.ok());
  EXPECT_TRUE(IsShown(world, "loss.backward() at train.py:12"));
}

TEST(Fault, ADescribeCallbackThatHangsDelaysNobody) {
  std::atomic<bool> release{false};
  World world(2, [&](int32_t rank, GroupOptions& o) {
    if (rank == 1) {
      o.describe = [&] {
        while (!release) std::this_thread::yield();
        return std::string();
      };
    }
  });
  ASSERT_TRUE(world.ok());
  EXPECT_TRUE(IsShown(world, "no answer in 200 ms"));
  release = true;
}

TEST(Fault, ARankWhoseConnectionClosesIsDeadAtOnce) {
  WorldWithRaw world(3);
  std::thread second([&] {
    EXPECT_EQ(world.groups[1]->Arrive(Save(1), Status()).status().code(), Code::kParticipants);
  });
  std::thread killer([&] { world.raw->Die(); });
  const TimePoint start = Clock::now();
  const Status status = world.groups[0]->Arrive(Save(1), Status()).status();
  EXPECT_LT(Seconds(start), kSoon);
  second.join();
  killer.join();
  ASSERT_EQ(Named(status), std::set<int32_t>{2});
  EXPECT_EQ(status.ranks()[0].condition, Condition::kDead);
}

TEST(Fault, ARankThatSendsNonsenseIsDead) {
  WorldWithRaw world(2);
  world.raw->Send("\x02nonsense");
  const Status status = world.groups[0]->Arrive(Save(1), Status()).status();
  EXPECT_EQ(status.code(), Code::kParticipants);
  EXPECT_EQ(status.ranks()[0].condition, Condition::kDead);
}

TEST(Fault, ARankThatLeavesIsLeft) {
  World world(3);
  ASSERT_TRUE(world.ok());
  world[2].Leave();
  OnAll(2, [&](int32_t r) {
    const Status status = world[r].Arrive(Save(1), Status()).status();
    ASSERT_EQ(Named(status), std::set<int32_t>{2}) << status.message();
    EXPECT_EQ(status.ranks()[0].condition, Condition::kLeft);
  });
  EXPECT_EQ(world[2].Arrive(Save(1), Status()).status().code(), Code::kState);
}

TEST(Fault, ALocalErrorReachesAllWithItsCause) {
  World world(3);
  ASSERT_TRUE(world.ok());
  world.All([](int32_t rank, Group& group) {
    auto round = group.Arrive(Save(1), Status());
    ASSERT_TRUE(round.ok()) << round.status().message();
    Cause cause;
    cause.sys_errno = EIO;
    const Status local = rank == 1 ? Status(Code::kIo, "pwrite of m: EIO", cause) : Status();
    group.Contribute(*round, 1, local, "", false);
    const Status status = group.Await(*round, 1).status();
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_EQ(status.cause().rank, 1);
    EXPECT_EQ(status.cause().sys_errno, EIO);
    EXPECT_TRUE(group.Closed(*round));
    if (rank == 0) {
      EXPECT_EQ(group.Collect(*round, 1).status().code(), Code::kIo);
    }
  });
}

TEST(Fault, ARankWithoutProgressStallsTheRound) {
  World world(2, [](int32_t, GroupOptions& o) { o.stall_timeout = Millis(400); });
  ASSERT_TRUE(world.ok());
  world.All([](int32_t rank, Group& group) {
    auto round = group.Arrive(Save(1), Status());
    ASSERT_TRUE(round.ok());
    if (rank == 1) group.Progress(*round, 1, "pwrite of model.safetensors");
    if (rank == 0) group.Contribute(*round, 1, Status(), "", false);
    const Status status = group.Await(*round, 1).status();
    EXPECT_EQ(status.code(), Code::kIo) << status.message();
    EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("pwrite of model"), std::string::npos) << status.message();
  });
}

TEST(Fault, BeginCommitIsGrantedOnceAllHaveVoted) {
  World world(2);
  ASSERT_TRUE(world.ok());
  world.All([](int32_t rank, Group& group) {
    auto round = group.Arrive(Save(1), Status());
    ASSERT_TRUE(round.ok());
    group.Contribute(*round, 1, Status(), "", true);
    if (rank == 0) {
      ASSERT_TRUE(group.Collect(*round, 1).ok());
      const Status begun = group.BeginCommit(*round);
      EXPECT_TRUE(begun.ok()) << begun.message();
      group.Publish(*round, 1, Status(), {"committed"}, true);
    }
    auto result = group.Await(*round, 1);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(*result, "committed");
    if (rank == 0) {
      EXPECT_FALSE(group.BeginCommit(*round + 7).ok());
    }
  });
}

TEST(Fault, ASecondThreadGetsState) {
  World world(2);
  ASSERT_TRUE(world.ok());
  std::thread first([&] { EXPECT_TRUE(world[0].Arrive(Save(1), Status()).ok()); });
  std::thread peer([&] {
    // One of the two threads of rank 0 is in: the other must not be taken for a call.
    EXPECT_TRUE(world[1].Arrive(Save(1), Status()).ok());
  });
  first.join();
  EXPECT_EQ(world[0].Arrive(Save(2), Status()).status().code(), Code::kState);
  peer.join();
}

// A data loader's worker that outlives its killed trainer must not hide that death.
TEST(Fault, AKilledRankWithALivingChildIsDeadAtOnce) {
  const std::string job = NewJob();
  int alive[2];
  ASSERT_EQ(::pipe(alive), 0);
  const pid_t trainer = ::fork();
  if (trainer == 0) {
    auto group = Group::Create(Options(1, 2, job));
    if (!group.ok() || ::fork() == 0) {  // the worker waits for the end of the test
      ::close(alive[1]);
      char c;
      (void)!::read(alive[0], &c, 1);
      ::_exit(0);
    }
    (void)(*group)->Arrive(Save(1), Status());
    ::raise(SIGKILL);
  }
  auto group = Group::Create(Options(0, 2, job));
  ASSERT_TRUE(group.ok()) << group.status().message();
  ASSERT_TRUE((*group)->Arrive(Save(1), Status()).ok());
  const TimePoint start = Clock::now();
  const Status status = (*group)->Await(1, 1).status();
  EXPECT_LT(Seconds(start), kSoon);
  ASSERT_EQ(Named(status), std::set<int32_t>{1}) << status.message();
  EXPECT_EQ(status.ranks()[0].condition, Condition::kDead);
  ::close(alive[0]);
  ::close(alive[1]);
  ::waitpid(trainer, nullptr, 0);
}

// Rank 0 in a process of its own, killed after the vote of rank 1.
TEST(Fault, AKilledCoordinatorAfterTheVoteLeavesTheOutcomeUnknown) {
  const std::string job = NewJob();
  const pid_t child = ::fork();
  if (child == 0) {
    auto group = Group::Create(Options(0, 2, job));
    if (!group.ok()) ::_exit(1);
    auto round = (*group)->Arrive(Save(1), Status());
    if (round.ok()) (void)(*group)->Await(*round, 1);
    ::_exit(0);
  }
  auto group = Group::Create(Options(1, 2, job));
  ASSERT_TRUE(group.ok()) << group.status().message();
  auto round = (*group)->Arrive(Save(1), Status());
  ASSERT_TRUE(round.ok());
  (*group)->Contribute(*round, 1, Status(), "", true);
  ::kill(child, SIGKILL);
  const TimePoint start = Clock::now();
  const Status status = (*group)->Await(*round, 1).status();
  EXPECT_LT(Seconds(start), kSoon);
  EXPECT_EQ(status.code(), Code::kOutcomeUnknown) << status.message();
  const Status next = (*group)->Arrive(Save(2), Status()).status();
  EXPECT_EQ(next.code(), Code::kComm);
  EXPECT_NE(next.message().find("ckpt_ctx_free and a new ckpt_init"), std::string::npos);
  ::waitpid(child, nullptr, 0);
}

TEST(Fault, ACoordinatorThatLeavesIsNamed) {
  World world(2);
  ASSERT_TRUE(world.ok());
  world.groups[0].reset();
  const Status status = world[1].Arrive(Save(1), Status()).status();
  EXPECT_EQ(status.code(), Code::kParticipants) << status.message();
  EXPECT_EQ(Named(status), std::set<int32_t>{0});
}

TEST(Fault, WhoComesAfterTheCoordinatorFailedAndLeftGetsItsErrorFirst) {
  World world(3);
  ASSERT_TRUE(world.ok());
  const Status local(Code::kInvalidArgument, "a rename that leaves no name");
  EXPECT_EQ(world[0].Arrive(Save(1), local).status().code(), Code::kInvalidArgument);
  world.groups[0].reset();
  for (int32_t r : {1, 2}) {
    const Status status = world[r].Arrive(r == 1 ? Save(1) : Save(7), Status()).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
    EXPECT_EQ(status.cause().rank, 0);
    EXPECT_EQ(world[r].Arrive(Save(2), Status()).status().code(), Code::kParticipants);
  }
}

TEST(Fault, WhoComesLateForAConflictOfACoordinatorThatLeftGetsTheMismatch) {
  World world(3);
  ASSERT_TRUE(world.ok());
  OnAll(2, [&](int32_t r) {
    const Call call = r == 0 ? Save(1) : Call{Op::kLoad, -1, 20000, {}};
    EXPECT_EQ(world[r].Arrive(call, Status()).status().code(), Code::kMismatch);
  });
  world.groups[0].reset();
  EXPECT_EQ(world[2].Arrive(Save(1), Status()).status().code(), Code::kMismatch);
  EXPECT_EQ(world[1].Arrive(Save(2), Status()).status().code(), Code::kParticipants);
}

TEST(Fault, AForkedChildOnlyDropsMemory) {
  World world(2);
  ASSERT_TRUE(world.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const bool forked = world[0].Arrive(Save(1), Status()).status().code() == Code::kForked;
    world.groups.clear();
    ::_exit(forked ? 0 : 1);
  }
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  world.All([](int32_t, Group& group) {
    std::string sum;
    EXPECT_TRUE(SumOfRanks(group, 1, &sum).ok());
  });
}

}  // namespace
}  // namespace ckpt
