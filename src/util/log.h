// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the library's words go: the host's log callback and CKPT_LOG (stderr), nothing else.
// Log::Write is thread-safe; with a host callback that must run on the host's threads the line is
// queued (bounded, oldest dropped and counted) until Drain().  Test: tests/unit/util/log_test.cc
#ifndef CKPT_UTIL_LOG_H_
#define CKPT_UTIL_LOG_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "util/sync.h"

namespace ckpt {

enum class LogLevel : int32_t { kError = 1, kWarn = 2, kInfo = 3, kDebug = 4 };

class Log {
 public:
  using Sink = std::function<void(LogLevel, const char* component, const char* message)>;

  // `sink` may be empty.  Lines above `level` are not queued for it.  CKPT_LOG is read here.
  Log(Sink sink, LogLevel level);

  void Write(LogLevel level, std::string_view component, std::string message) CKPT_EXCLUDES(mu_);

  // Hands queued lines to the sink on the calling thread, which must be the host's.
  void Drain() CKPT_EXCLUDES(mu_);

 private:
  struct Line {
    LogLevel level;
    std::string component, message;
  };
  const Sink sink_;
  const LogLevel sink_level_;
  LogLevel stderr_level_;
  Mutex mu_;
  std::deque<Line> queue_ CKPT_GUARDED_BY(mu_);
  uint64_t dropped_ CKPT_GUARDED_BY(mu_) = 0;
};

}  // namespace ckpt

#endif  // CKPT_UTIL_LOG_H_
