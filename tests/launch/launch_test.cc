// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The launcher's own promises: hangs, kills, barriers, logs, and that nothing is left behind.
#include "launch/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

using launch::Rank;
using launch::Result;

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << "in: " << (text)

bool Lives(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return false;
  return line[line.rfind(')') + 2] != 'Z';
}

TEST(Launch, EveryRankGetsItsEnvironmentAndAPrivateFolder) {
  setenv("SLURM_PROCID", "7", 1);
  Result r =
      launch::Run({.ranks = 3, .env = {{"COLOR", "red"}}, .rank_env = {{}, {{"COLOR", "blue"}}}},
                  [](Rank& rank) {
                    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                             "CKPT_JOB_ID", "COLOR", "TMPDIR", "XDG_RUNTIME_DIR"})
                      rank.Put(name, std::getenv(name));
                    EXPECT_EQ(std::getenv("SLURM_PROCID"), nullptr);
                    EXPECT_TRUE(std::filesystem::is_directory(std::getenv("TMPDIR")));
                  });
  unsetenv("SLURM_PROCID");
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(r.get(1, "RANK"), "1");
  EXPECT_EQ(r.get(2, "LOCAL_RANK"), "2");
  EXPECT_EQ(r.get(2, "WORLD_SIZE"), "3");
  EXPECT_EQ(r.get(2, "LOCAL_WORLD_SIZE"), "3");
  EXPECT_EQ(r.get(0, "COLOR") + r.get(1, "COLOR") + r.get(2, "COLOR"), "redbluered");
  EXPECT_EQ(r.get(0, "CKPT_JOB_ID"), r.get(2, "CKPT_JOB_ID"));
  EXPECT_EQ(r.get(0, "TMPDIR").rfind(r.folder(), 0), 0u);
  EXPECT_EQ(r.get(0, "XDG_RUNTIME_DIR").rfind(r.folder(), 0), 0u);
  Result again = launch::Run({}, [](Rank& rank) { rank.Put("id", rank.job_id()); });
  EXPECT_NE(again.get(0, "id"), r.get(0, "CKPT_JOB_ID"));
}

TEST(Launch, RanksShareAGroupThatIsNotTheCallers) {
  Result r =
      launch::Run({.ranks = 2}, [](Rank& rank) { rank.Put("pgid", std::to_string(getpgrp())); });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(r.get(0, "pgid"), r.get(1, "pgid"));
  EXPECT_NE(r.get(0, "pgid"), std::to_string(getpgrp()));
}

TEST(Launch, AHangGives124AndNamesTheRanksThatHang) {
  Result r = launch::Run({.ranks = 3, .deadline_s = 0.5}, [](Rank& rank) {
    if (rank.is(1)) rank.WaitFor("never");
    if (rank.is(2))
      for (;;) pause();
  });
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.code(), launch::kHangCode);
  EXPECT_FALSE(r.rank(0).hung);
  EXPECT_TRUE(r.rank(1).hung);
  EXPECT_TRUE(r.rank(2).hung);
  EXPECT_CONTAINS(r.summary(), "hang");
  EXPECT_CONTAINS(r.summary(), "rank 1: hung, killed at the deadline, in wait for \"never\"");
  EXPECT_LT(r.seconds(), 5);
}

TEST(Launch, ARankKilledByItsOwnSignalIsReportedWithIt) {
  Result r = launch::Run({.ranks = 2}, [](Rank& rank) {
    if (rank.is(1)) raise(SIGKILL);
  });
  EXPECT_EQ(r.code(), 1);
  EXPECT_EQ(r.rank(1).signal, SIGKILL);
  EXPECT_FALSE(r.rank(1).by_plan);
  EXPECT_CONTAINS(r.summary(), "rank 1: killed by signal 9");
}

TEST(Launch, APlannedKillHappensAtTheEventAndIsNotAFailure) {
  launch::Scratch scratch;
  const std::string after = scratch / "after";
  Result r = launch::Run({.ranks = 2, .plan = {launch::KillAt("half", 1)}}, [&](Rank& rank) {
    if (rank.is(0)) return;
    rank.Event("half");
    std::ofstream(after) << "must not be reached";
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(r.rank(1).signal, SIGKILL);
  EXPECT_TRUE(r.rank(1).by_plan);
}

TEST(Launch, KillAllEndsEveryRankEvenAStoppedOne) {
  Result r = launch::Run(
      {.ranks = 3, .plan = {launch::StopAt("stop", 2), launch::KillAllAt("kill")}}, [](Rank& rank) {
        if (rank.is(0)) rank.Event("stop");
        if (rank.is(0)) rank.Event("kill");
        rank.WaitFor("never");
      });
  EXPECT_TRUE(r.ok()) << r.report();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(r.rank(i).signal, SIGKILL);
}

TEST(Launch, AStoppedRankGoesOnWhenContinued) {
  Result r = launch::Run({.ranks = 2}, [](Rank& rank) {
    if (rank.is(0)) {
      rank.Signal(1, SIGSTOP);
      rank.Signal(1, SIGCONT);
    }
    rank.Barrier("end");
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Launch, ABarrierHoldsUntilTheLastMemberIsThere) {
  launch::Scratch scratch;
  const std::string path = scratch / "count";
  Result r = launch::Run({.ranks = 4}, [&](Rank& rank) {
    for (int round = 1; round <= 50; ++round) {
      const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      EXPECT_EQ(write(fd, "x", 1), 1);
      close(fd);
      rank.Barrier("written");
      EXPECT_EQ(std::filesystem::file_size(path), 4u * round);
      rank.Barrier("read");
    }
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Launch, ABarrierOfSomeRanksLeavesTheOthersAlone) {
  Result r = launch::Run({.ranks = 3}, [](Rank& rank) {
    if (rank.is(1)) return rank.WaitFor("met");
    rank.Barrier("pair", {0, 2});
    if (rank.is(0)) rank.Notify("met");
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Launch, ABarrierWithARankThatExitedFailsInsteadOfHanging) {
  Result r = launch::Run({.ranks = 3, .deadline_s = 20}, [](Rank& rank) {
    if (!rank.is(2)) rank.Barrier("all");
  });
  EXPECT_EQ(r.code(), 1) << r.report();
  EXPECT_CONTAINS(r.log(0), "barrier \"all\": gone rank 2");
}

TEST(Launch, EventsAreCountedAndWaitedFor) {
  Result r = launch::Run({.ranks = 4}, [](Rank& rank) {
    if (!rank.is(0)) return rank.Notify("ready");
    rank.WaitFor("ready", 3);
    EXPECT_THROW(rank.WaitFor("ready", 4, 0.05), launch::Broken);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Launch, AFailedCheckFailsTheRankAndItsLogIsShown) {
  Result r = launch::Run({.ranks = 2}, [](Rank& rank) {
    std::printf("hello from %d\n", rank.id());
    if (rank.is(1)) RANK_CHECK(rank, 1 + 1 == 3);
  });
  EXPECT_EQ(r.code(), 1);
  EXPECT_EQ(r.rank(1).exit_code, 1);
  EXPECT_EQ(r.rank(0).exit_code, 0);
  EXPECT_CONTAINS(r.report(), "rank 0| hello from 0");
  EXPECT_CONTAINS(r.report(), "launch_test.cc");
  EXPECT_CONTAINS(r.report(), "check failed: 1 + 1 == 3");
}

TEST(Launch, AGoogletestAssertionInsideARankFailsThatRank) {
  Result r = launch::Run({.ranks = 2}, [](Rank& rank) { EXPECT_EQ(rank.id(), 0) << "marker"; });
  EXPECT_EQ(r.rank(0).exit_code, 0);
  EXPECT_EQ(r.rank(1).exit_code, 1);
  EXPECT_CONTAINS(r.log(1), "marker");
}

TEST(Launch, AnExceptionFailsTheRankWithItsText) {
  Result r = launch::Run({}, [](Rank&) { throw std::runtime_error("thrown in vain"); });
  EXPECT_EQ(r.rank(0).exit_code, 1);
  EXPECT_CONTAINS(r.log(0), "thrown in vain");
}

TEST(Launch, NothingIsLeftBehindNeitherProcessNorFolder) {
  Result r = launch::Run({.ranks = 2, .deadline_s = 1}, [](Rank& rank) {
    std::ofstream(rank.folder() + "/tmp/file" + std::to_string(rank.id())) << "x";
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    rank.Put("child", std::to_string(child));
    rank.Put("self", std::to_string(getpid()));
    if (rank.is(1)) rank.WaitFor("never");
  });
  EXPECT_EQ(r.code(), launch::kHangCode);
  EXPECT_FALSE(std::filesystem::exists(r.folder()));
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(Lives(std::stoi(r.get(i, "self"))));
    EXPECT_FALSE(Lives(std::stoi(r.get(i, "child"))));
  }
}

int Cli(const std::string& arguments, std::string* output) {
  launch::Scratch scratch;
  const std::string file = scratch / "out";
  const int status =
      std::system((std::string(LAUNCH_CLI) + " " + arguments + " >" + file + " 2>&1").c_str());
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  *output = text.str();
  return WEXITSTATUS(status);
}

TEST(LaunchCli, PrintsTheRanksOutputInOrder) {
  std::string out;
  EXPECT_EQ(Cli("-n 3 -- sh -c 'echo rank $RANK of $WORLD_SIZE'", &out), 0);
  EXPECT_EQ(out, "rank 0 of 3\nrank 1 of 3\nrank 2 of 3\n");
}

TEST(LaunchCli, GivesTheFailedRanksCodeAndItsLog) {
  std::string out;
  EXPECT_EQ(Cli("-n 2 -- sh -c 'echo told $RANK; exit $((RANK * 5))'", &out), 5);
  EXPECT_CONTAINS(out, "rank 1| told 1");
}

TEST(LaunchCli, AHangIs124AndUsageIs2) {
  std::string out;
  EXPECT_EQ(Cli("-n 2 --deadline 0.3 -- sh -c 'read x < /dev/zero'", &out), 124);
  EXPECT_CONTAINS(out, "hang");
  EXPECT_EQ(Cli("-n 0 -- true", &out), 2);
  EXPECT_EQ(Cli("", &out), 2);
  EXPECT_EQ(Cli("-n 1 -- /no/such/program", &out), 127);
}

}  // namespace
