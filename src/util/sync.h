// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Mutex, lock and condition variable with the annotations that clang's -Wthread-safety checks
// (preset "clang"), a steady clock, and thread naming with all signals blocked.
// Test: tests/unit/util/sync_test.cc
#ifndef CKPT_UTIL_SYNC_H_
#define CKPT_UTIL_SYNC_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#if defined(__clang__)
#define CKPT_TSA(x) __attribute__((x))
#else
#define CKPT_TSA(x)
#endif
#define CKPT_CAPABILITY(x) CKPT_TSA(capability(x))
#define CKPT_SCOPED_CAPABILITY CKPT_TSA(scoped_lockable)
#define CKPT_GUARDED_BY(x) CKPT_TSA(guarded_by(x))
#define CKPT_REQUIRES(...) CKPT_TSA(requires_capability(__VA_ARGS__))
#define CKPT_ACQUIRE(...) CKPT_TSA(acquire_capability(__VA_ARGS__))
#define CKPT_RELEASE(...) CKPT_TSA(release_capability(__VA_ARGS__))
#define CKPT_EXCLUDES(...) CKPT_TSA(locks_excluded(__VA_ARGS__))
#define CKPT_NO_TSA CKPT_TSA(no_thread_safety_analysis)

namespace ckpt {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Millis = std::chrono::milliseconds;

class CKPT_CAPABILITY("mutex") Mutex {
 public:
  void Lock() CKPT_ACQUIRE() { mu_.lock(); }
  void Unlock() CKPT_RELEASE() { mu_.unlock(); }
  std::mutex& native() { return mu_; }

 private:
  std::mutex mu_;
};

class CKPT_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) CKPT_ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() CKPT_RELEASE() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

class CondVar {
 public:
  // REQUIRES: `mu` is held.  Spurious wake-ups happen: wait in a loop on the condition.
  void Wait(Mutex& mu) CKPT_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.native(), std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False when `deadline` has passed.
  bool WaitUntil(Mutex& mu, TimePoint deadline) CKPT_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.native(), std::adopt_lock);
    const bool in_time = cv_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

// Starts a joinable thread named `name` (at most 15 bytes) with every signal blocked, so that the
// host's handlers only ever run on the host's own threads.  Throws std::system_error if the system
// refuses a thread.
std::thread StartThread(std::string name, std::function<void()> body);

}  // namespace ckpt

#endif  // CKPT_UTIL_SYNC_H_
