// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads of the library have a name and no signals; waits end at their deadline.
#include "util/sync.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

namespace ckpt {
namespace {

TEST(StartThread, IsNamedAndBlocksEverySignalButLeavesTheCallersMask) {
  sigset_t before, after, inside;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  char name[16] = "";
  StartThread("ckpt-a-rather-long-name", [&] {
    pthread_getname_np(pthread_self(), name, sizeof name);
    pthread_sigmask(SIG_SETMASK, nullptr, &inside);
  }).join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_STREQ(name, "ckpt-a-rather-l");
  for (const int sig : {SIGINT, SIGTERM, SIGUSR1, SIGPIPE, SIGCHLD, SIGIO}) {
    EXPECT_EQ(sigismember(&inside, sig), 1) << sig;
    EXPECT_EQ(sigismember(&before, sig), sigismember(&after, sig)) << sig;
  }
}

TEST(CondVar, WaitsUntilNotifiedOrUntilItsDeadline) {
  Mutex mu;
  CondVar cv;
  bool ready = false;
  std::thread other = StartThread("notify", [&] {
    MutexLock lock(mu);
    ready = true;
    cv.NotifyAll();
  });
  {
    MutexLock lock(mu);
    while (!ready) cv.Wait(mu);
    const TimePoint deadline = Clock::now() + Millis(5);
    while (cv.WaitUntil(mu, deadline)) {
    }
    EXPECT_GE(Clock::now(), deadline);
  }
  other.join();
}

}  // namespace
}  // namespace ckpt
