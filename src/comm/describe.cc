// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Test: tests/unit/comm/parts_test.cc
#include "comm/describe.h"

#include <utility>

#include "util/sync.h"
#include "util/text.h"

namespace ckpt {

struct Describer::Shared {
  const Callback callback;
  Mutex mu;
  CondVar changed;
  std::function<void(std::string)> wanted CKPT_GUARDED_BY(mu);
  bool busy CKPT_GUARDED_BY(mu) = false;
  bool stop CKPT_GUARDED_BY(mu) = false;
  bool ended CKPT_GUARDED_BY(mu) = false;

  explicit Shared(Callback c) : callback(std::move(c)) {}

  void Run() CKPT_EXCLUDES(mu) {
    mu.Lock();
    while (!stop) {
      if (!wanted) {
        changed.Wait(mu);
        continue;
      }
      const auto done = std::exchange(wanted, nullptr);
      mu.Unlock();
      std::string text = Printable(callback(), 4000);
      mu.Lock();
      busy = false;
      // Under the lock: once the destructor has set `stop`, nobody is called any more.
      if (!stop) done(std::move(text));
    }
    ended = true;
    changed.NotifyAll();
    mu.Unlock();
  }
};

Describer::Describer(Callback callback) : shared_(std::make_shared<Shared>(std::move(callback))) {}

Describer::~Describer() {
  if (!thread_.joinable()) return;
  bool ended = false;
  {
    MutexLock lock(shared_->mu);
    shared_->stop = true;
    shared_->changed.NotifyAll();
    const TimePoint deadline = Clock::now() + Millis(1000);
    while (!shared_->ended && Clock::now() < deadline)
      shared_->changed.WaitUntil(shared_->mu, deadline);
    ended = shared_->ended;
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();  // safe: the library is never unloaded, and the thread owns what it needs
  }
}

bool Describer::available() const { return static_cast<bool>(shared_->callback); }

void Describer::Ask(std::function<void(std::string)> done) {
  if (!available()) return;
  {
    MutexLock lock(shared_->mu);
    if (shared_->busy) return;
    shared_->busy = true;
    shared_->wanted = std::move(done);
    shared_->changed.NotifyAll();
  }
  if (!thread_.joinable()) {
    thread_ = StartThread("ckpt-desc", [shared = shared_] { shared->Run(); });
  }
}

}  // namespace ckpt
