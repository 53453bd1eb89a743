// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Renewing and watching leases.  Test: tests/unit/store/lease_test.cc
#include "store/lease.h"

#include <time.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "store/owner_record.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint64_t kLooksPerWatch = 60;
constexpr uint64_t kMaxPauseMs = 250;  // a caller that cancels does not wait longer

uint64_t BootMs() {
  struct timespec now {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

std::string Waiting(const Status& owned, uint64_t seen_ms, uint64_t dead_ms) {
  return Cat(owned.message(), ": cannot be seen from here; its lease has not changed for ",
             seen_ms / 1000, " of ", (dead_ms + 999) / 1000, " s");
}

}  // namespace

Result<std::unique_ptr<Ticker>> Ticker::Start(const std::string& name, uint32_t period_ms,
                                              std::function<void()> tick) {
  std::unique_ptr<Ticker> ticker(new Ticker);
  try {
    ticker->thread_ =
        StartThread(name, [self = ticker.get(), period = Millis(std::max(period_ms, 1u)),
                           tick = std::move(tick)] { self->Run(period, tick); });
  } catch (const std::system_error& e) {
    return Status(Code::kLimit, Cat("thread ", name, ": ", e.what()));
  }
  return ticker;
}

Ticker::~Ticker() {
  {
    MutexLock lock(mu_);
    stop_ = true;
    cv_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Ticker::Run(Millis period, const std::function<void()>& tick) {
  for (;;) {
    {
      const TimePoint next = Clock::now() + period;
      MutexLock lock(mu_);
      while (!stop_ && cv_.WaitUntil(mu_, next)) {
      }
      if (stop_) return;
    }
    tick();
  }
}

Result<std::string> WatchLease(const Dir& root, const Dir& ckpt_dir, const std::string& text,
                               const OwnerOptions& options) {
  const uint64_t dead = options.lease_dead_ms;
  const uint64_t pause = std::clamp<uint64_t>(dead / kLooksPerWatch, 1, kMaxPauseMs);
  const Status owned = OwnedBy(root, text);
  uint64_t seen = 0, last = BootMs();
  while (seen < dead) {
    if (options.stop && options.stop()) {
      return Status(Code::kCancelled, Cat("cancelled while waiting: ", Waiting(owned, seen, dead)));
    }
    if (options.progress) options.progress(Waiting(owned, seen, dead));
    std::this_thread::sleep_for(Millis(pause));
    const uint64_t now = BootMs();
    // Only what was watched counts: if we were stopped, or the machine slept, so may the owner.
    seen += std::min(now - last, 4 * pause);
    last = now;
    auto current = ReadOwnerText(ckpt_dir);
    if (current.status().code() == Code::kNotFound) return std::string();
    if (!current.ok()) return current.status();
    if (*current != text) {
      const Status alive = OwnedBy(root, *current);
      return alive.WithMessage(Cat(alive.message(), ", which renewed its lease while we watched"));
    }
  }
  return text;
}

}  // namespace ckpt
