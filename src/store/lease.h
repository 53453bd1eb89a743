// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Ownership between hosts: an owner renews a counter in its record, and whoever cannot see its
// process watches that.  Private to src/store.  Test: tests/unit/store/lease_test.cc
#ifndef CKPT_STORE_LEASE_H_
#define CKPT_STORE_LEASE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "io/io.h"
#include "store/store.h"
#include "util/sync.h"

namespace ckpt {

// Calls `tick` every period on a thread of its own, until it is destroyed.
class Ticker {
 public:
  // LIMIT when the system refuses a thread.
  static Result<std::unique_ptr<Ticker>> Start(const std::string& name, uint32_t period_ms,
                                               std::function<void()> tick);
  // Waits for a tick that is being done.
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  Ticker() = default;
  void Run(Millis period, const std::function<void()>& tick) CKPT_EXCLUDES(mu_);

  Mutex mu_;
  CondVar cv_;
  bool stop_ CKPT_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// Watches owner.json, which says `text` now.  Unchanged for options.lease_dead_ms: `text`, its
// owner is dead.  "": the record has gone.  OWNED as soon as it changes; CANCELLED.
Result<std::string> WatchLease(const Dir& root, const Dir& ckpt_dir, const std::string& text,
                               const OwnerOptions& options);

}  // namespace ckpt

#endif  // CKPT_STORE_LEASE_H_
