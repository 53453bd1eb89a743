// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says of processes and threads: start time of a process, what a thread is doing.
// Reads /proc only; never fails loudly: what cannot be read is left out.
// Test: tests/unit/comm/parts_test.cc
#ifndef CKPT_COMM_PROC_H_
#define CKPT_COMM_PROC_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "util/sync.h"

namespace ckpt {

// In clock ticks since boot; with the pid it names a process for as long as the host runs.
std::optional<uint64_t> StartTime(pid_t pid);

std::string HostName();

// Watches one thread of this process.  One thread at a time.
class ThreadWatch {
 public:
  explicit ThreadWatch(pid_t tid) : tid_(tid) {}

  // "running, 98 % cpu", "sleeping in syscall futex (202) at futex_wait_queue"; the kernel's
  // function only where it may be read.  The share is that since the last call.
  std::string Doing();

 private:
  const pid_t tid_;
  TimePoint last_{};
  uint64_t last_ticks_ = 0;
};

}  // namespace ckpt

#endif  // CKPT_COMM_PROC_H_
