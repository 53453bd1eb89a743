// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups of several ranks in one process, over real sockets: what every rank gets, and that nobody
// waits for ever.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "unit/comm/world.h"

namespace ckpt {
namespace {

using namespace testing;  // NOLINT

double Seconds(TimePoint since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

TEST(Group, EveryRankGetsTheResultOfEveryRound) {
  World world(4);
  ASSERT_TRUE(world.ok()) << world.status[0].message();
  world.All([](int32_t rank, Group& group) {
    EXPECT_EQ(group.rank(), rank);
    EXPECT_EQ(group.size(), 4);
    for (int64_t step = 0; step < 20; ++step) {
      std::string sum;
      const Status status = SumOfRanks(group, step, &sum);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(sum, "6");
    }
  });
}

TEST(Group, OneRankAloneIsReadyInMillisecondsAndIgnoresTheEnvironment) {
  ::setenv("WORLD_SIZE", "4", 1);
  GroupOptions o;
  o.self = true;
  const TimePoint start = Clock::now();
  auto group = Group::Create(o);
  ::unsetenv("WORLD_SIZE");
  ASSERT_TRUE(group.ok()) << group.status().message();
  EXPECT_LT(Seconds(start), 1.0);
  RecordProperty("init_us", static_cast<int>(Seconds(start) * 1e6));
  std::string sum;
  EXPECT_TRUE(SumOfRanks(**group, 1, &sum).ok());
  EXPECT_EQ(sum, "0");
}

TEST(Group, GateLatency) {
  World world(4);
  ASSERT_TRUE(world.ok());
  constexpr int kRounds = 300;
  std::atomic<int64_t> total_ns{0};
  world.All([&](int32_t rank, Group& group) {
    for (int i = 0; i < kRounds; ++i) {
      const TimePoint start = Clock::now();
      auto round = group.Arrive(Save(i), Status());
      if (rank == 0) total_ns += (Clock::now() - start).count();
      ASSERT_TRUE(round.ok()) << round.status().message();
      group.Contribute(*round, 1, Status(), "", false);
      if (rank == 0) {
        ASSERT_TRUE(group.Collect(*round, 1).ok());
        group.Publish(*round, 1, Status(), {}, true);
      }
      ASSERT_TRUE(group.Await(*round, 1).ok());
    }
  });
  RecordProperty("mean_gate_us", static_cast<int>(total_ns / kRounds / 1000));
  std::printf("[   INFO   ] mean gate %d us\n", static_cast<int>(total_ns / kRounds / 1000));
}

}  // namespace
}  // namespace ckpt
