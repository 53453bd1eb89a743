// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for a kernel or file system that refuses a call: runs `body` on a thread for which one
// system call fails with `error` (seccomp; no privilege needed, gone with the thread).
#ifndef CKPT_TESTS_UNIT_IO_REFUSE_H_
#define CKPT_TESTS_UNIT_IO_REFUSE_H_

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <functional>
#include <thread>

namespace ckpt {

inline constexpr int kAnyDescriptor = -1;

// `fd`: only where this is the first argument.
inline void WithRefused(long call, int error, int fd, const std::function<void()>& body) {
  const auto want = static_cast<uint32_t>(call);
  const auto descriptor = static_cast<uint32_t>(fd);
  const uint8_t skip_check = fd == kAnyDescriptor ? 2 : 0;
  const auto refuse = SECCOMP_RET_ERRNO | static_cast<uint32_t>(error);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, want, skip_check, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),  // low word first
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, descriptor, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refuse),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  std::thread([&] {
    ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    body();
  }).join();
}

}  // namespace ckpt

#endif  // CKPT_TESTS_UNIT_IO_REFUSE_H_
