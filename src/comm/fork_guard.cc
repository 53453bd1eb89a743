// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Test: tests/unit/comm/fault_test.cc
#include "comm/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>

namespace ckpt {
namespace {

// Plain atomics: the child's handler may neither lock nor allocate.  A slot holds fd + 1.
constinit std::array<std::atomic<int>, 4096> slots{};

void CloseInChild() {
  for (auto& slot : slots) {
    const int fd = slot.exchange(0, std::memory_order_relaxed) - 1;
    if (fd >= 0) ::close(fd);
  }
}

}  // namespace

ForkGuard::ForkGuard(int fd) {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, CloseInChild); });
  for (size_t i = 0; i < slots.size(); ++i) {
    int free = 0;
    if (slots[i].compare_exchange_strong(free, fd + 1)) {
      slot_ = static_cast<int>(i);
      return;
    }
  }
}

void ForkGuard::Release() {
  if (slot_ >= 0) slots[static_cast<size_t>(slot_)].store(0);
  slot_ = -1;
}

}  // namespace ckpt
