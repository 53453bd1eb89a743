// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "store/process_id.h"

#include <sys/wait.h>
#include <unistd.h>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

ProcessId Other(pid_t pid, uint64_t start_time) {
  ProcessId id = ThisProcess();
  id.pid = pid;
  id.start_time = start_time;
  return id;
}

TEST(ProcessIdentity, IsKnownAndStable) {
  const ProcessId id = ThisProcess();
  EXPECT_EQ(id.pid, getpid());
  EXPECT_GT(id.start_time, 0u);
  EXPECT_EQ(id.boot_id.size(), 36u);
  EXPECT_TRUE(id.pid_namespace.starts_with("pid:["));
  EXPECT_EQ(id, ThisProcess());
}

TEST(Life, OfThisProcessIsAlive) { EXPECT_EQ(LifeOf(ThisProcess(), ThisProcess()), Life::kAlive); }

TEST(Life, OfAnEarlierProcessWithThisPidIsOver) {
  EXPECT_EQ(LifeOf(Other(getpid(), ThisProcess().start_time - 1), ThisProcess()), Life::kDead);
}

TEST(Life, OfAZombieAndOfAReapedChildIsOver) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(LifeOf(Other(child, 0), ThisProcess()), Life::kDead);  // Z
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(LifeOf(Other(child, 0), ThisProcess()), Life::kDead);  // gone
}

TEST(Life, ElsewhereIsUnknown) {
  ProcessId other = ThisProcess();
  other.pid_namespace = "pid:[1]";
  EXPECT_EQ(LifeOf(other, ThisProcess()), Life::kUnknown);
  other = ThisProcess();
  other.boot_id = "00000000-0000-0000-0000-000000000000";
  other.host += "-other";
  EXPECT_EQ(LifeOf(other, ThisProcess()), Life::kUnknown);
}

TEST(Life, OnAnotherBootOfThisMachineIsUnknown) {
  ProcessId other = ThisProcess();
  other.boot_id = "00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(LifeOf(other, ThisProcess()), Life::kUnknown);
  other.boot_id = "";
  EXPECT_EQ(LifeOf(other, ThisProcess()), Life::kUnknown);
}

}  // namespace
}  // namespace ckpt
