// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "util/log.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "util/text.h"

namespace ckpt {
namespace {

constexpr size_t kMaxQueued = 1024;

LogLevel LevelFromEnvironment() {
  const char* value = std::getenv("CKPT_LOG");
  const std::string_view v = value == nullptr ? "" : value;
  if (v == "error") return LogLevel::kError;
  if (v == "warn") return LogLevel::kWarn;
  if (v == "info") return LogLevel::kInfo;
  if (v == "debug") return LogLevel::kDebug;
  return LogLevel{0};
}

}  // namespace

Log::Log(Sink sink, LogLevel level)
    : sink_(std::move(sink)), sink_level_(level), stderr_level_(LevelFromEnvironment()) {}

void Log::Write(LogLevel level, std::string_view component, std::string message) {
  if (level <= stderr_level_) {
    const std::string line = Cat("ckpt ", component, ": ", message, "\n");
    // One write per line, so that lines of several ranks do not mix; a full pipe loses a log line.
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  }
  if (!sink_ || level > sink_level_) return;
  MutexLock lock(mu_);
  if (queue_.size() == kMaxQueued) {
    queue_.pop_front();
    ++dropped_;
  }
  queue_.push_back({level, std::string(component), std::move(message)});
}

void Log::Drain() {
  std::deque<Line> lines;
  uint64_t dropped = 0;
  {
    MutexLock lock(mu_);
    lines.swap(queue_);
    std::swap(dropped, dropped_);
  }
  if (dropped > 0) {
    sink_(LogLevel::kWarn, "log", Cat(dropped, " older lines were dropped").c_str());
  }
  for (const Line& line : lines) sink_(line.level, line.component.c_str(), line.message.c_str());
}

}  // namespace ckpt
