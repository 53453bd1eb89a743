// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What this rank is doing, as its heartbeats say it: phase and step, last call, bytes of progress.
// Written by the host's and the library's threads, read by the monitor.  Thread-safe; SetPhase
// takes no lock.  Test: tests/unit/comm/parts_test.cc
#ifndef CKPT_COMM_ACTIVITY_H_
#define CKPT_COMM_ACTIVITY_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "comm/message.h"
#include "util/sync.h"

namespace ckpt {

class Activity {
 public:
  // Copies at most 63 bytes, whole UTF-8 characters.  Of two threads at once one wins.
  void SetPhase(const char* phase, int64_t step);
  void CallBegins(const std::string& call) CKPT_EXCLUDES(mu_);
  void CallEnds(Code code) CKPT_EXCLUDES(mu_);
  void Progress(uint64_t round, uint64_t bytes, const std::string& activity) CKPT_EXCLUDES(mu_);

  // Phase, step and last call: "ckpt_load(step=900) returned OK 41.2 s ago".
  RankInfo Snapshot() const CKPT_EXCLUDES(mu_);
  // The newest progress, if there is any since the last call.
  std::optional<ProgressMsg> TakeProgress() CKPT_EXCLUDES(mu_);

 private:
  static constexpr size_t kWords = 8;
  std::string Phase(int64_t* step) const;

  // A sequence lock: odd while a writer is at work.  The words are atomic so that a reader that
  // meets a writer reads nonsense, which it throws away, but no data race.
  std::atomic<uint64_t> sequence_{0};
  std::array<std::atomic<uint64_t>, kWords> words_{};
  std::atomic<int64_t> step_{-1};

  mutable Mutex mu_;
  std::string call_ CKPT_GUARDED_BY(mu_);
  Code code_ CKPT_GUARDED_BY(mu_) = Code::kOk;
  bool running_ CKPT_GUARDED_BY(mu_) = false;
  TimePoint since_ CKPT_GUARDED_BY(mu_){};
  ProgressMsg progress_ CKPT_GUARDED_BY(mu_);
  bool fresh_ CKPT_GUARDED_BY(mu_) = false;
};

}  // namespace ckpt

#endif  // CKPT_COMM_ACTIVITY_H_
