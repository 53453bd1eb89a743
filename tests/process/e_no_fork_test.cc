// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md E08: save and load in a process that may make threads but neither fork nor exec. A
// seccomp filter sees raw system calls too, which a preloaded fork() would miss.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "process/process.h"

namespace ckpt_test {
namespace {

constexpr uint32_t kFailWith(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

// fork, vfork, execve, execveat, and clone without CLONE_THREAD give EPERM; clone3, whose flags
// lie in memory that a filter cannot read, gives ENOSYS, so that libc falls back to clone.
void DenyForkAndExec() {
  const uint32_t nr = offsetof(seccomp_data, nr), flags = offsetof(seccomp_data, args);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr),
#ifdef __NR_fork
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fork, 8, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_vfork, 7, 0),
#else
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_execve, 8, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_execve, 7, 0),
#endif
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_execve, 6, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_execveat, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, kFailWith(EPERM)),
      BPF_STMT(BPF_RET | BPF_K, kFailWith(ENOSYS)),
  };
  sock_fprog filter{sizeof program / sizeof *program, program};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

void ExpectForkIsDenied() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_EQ(child, -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(GuestInAProcess, E08_SaveAndLoadNeitherForkNorExec) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    DenyForkAndExec();
    ExpectForkIsDenied();
    Trainer t(rank, {.root = scratch / "root"}, 3);
    EXPECT_OK(t.Save(1));
    EXPECT_OK(t.Save(2));
    t.Clear();
    EXPECT_OK(t.Load({.step = 1}));
    EXPECT_TRUE(t.Holds(3));
    EXPECT_OK(t.ctx.Finalize());
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

}  // namespace
}  // namespace ckpt_test
