// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The sequence lock and the words about calls.  Test: tests/unit/comm/parts_test.cc
#include "comm/activity.h"

#include <cstring>

#include "util/text.h"

namespace ckpt {
namespace {

constexpr size_t kMaxPhase = 63;

size_t PhaseLength(const char* phase) {
  size_t n = ::strnlen(phase, kMaxPhase + 1);
  if (n <= kMaxPhase) return n;
  n = kMaxPhase;
  // Not in the middle of a character: continuation bytes are 10xxxxxx.
  while (n > 0 && (static_cast<unsigned char>(phase[n]) & 0xC0) == 0x80) --n;
  return n;
}

}  // namespace

void Activity::SetPhase(const char* phase, int64_t step) {
  std::array<uint64_t, kWords> words{};
  if (phase != nullptr) std::memcpy(words.data(), phase, PhaseLength(phase));
  uint64_t sequence = sequence_.load(std::memory_order_relaxed);
  if (sequence % 2 == 1) return;  // another thread is at it
  if (!sequence_.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acq_rel)) return;
  // Release on each word: a reader that sees a new one also sees the odd sequence.
  for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
  step_.store(step, std::memory_order_release);
  sequence_.store(sequence + 2, std::memory_order_release);
}

std::string Activity::Phase(int64_t* step) const {
  // A writer that is stopped half-way must not stop the monitor.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint64_t before = sequence_.load(std::memory_order_acquire);
    if (before % 2 == 1) continue;
    std::array<uint64_t, kWords> words{};
    for (size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
    *step = step_.load(std::memory_order_acquire);
    if (sequence_.load(std::memory_order_relaxed) != before) continue;
    const char* text = reinterpret_cast<const char*>(words.data());
    return Printable(std::string_view(text, ::strnlen(text, kMaxPhase)));
  }
  *step = -1;
  return "";
}

void Activity::CallBegins(const std::string& call) {
  MutexLock lock(mu_);
  call_ = call;
  running_ = true;
  since_ = Clock::now();
}

void Activity::CallEnds(Code code) {
  MutexLock lock(mu_);
  code_ = code;
  running_ = false;
  since_ = Clock::now();
}

void Activity::Progress(uint64_t round, uint64_t bytes, const std::string& activity) {
  MutexLock lock(mu_);
  fresh_ = true;
  progress_.round = round;
  progress_.bytes = bytes;
  if (progress_.activity != activity) progress_.activity = activity;
}

RankInfo Activity::Snapshot() const {
  RankInfo info;
  info.phase = Phase(&info.phase_step);
  MutexLock lock(mu_);
  if (call_.empty()) return info;
  const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
  info.last_call =
      running_ ? fmt::format("{} running for {:.1f} s", call_, seconds)
               : fmt::format("{} returned {} {:.1f} s ago", call_, CodeName(code_), seconds);
  return info;
}

std::optional<ProgressMsg> Activity::TakeProgress() {
  MutexLock lock(mu_);
  if (!fresh_) return std::nullopt;
  fresh_ = false;
  return progress_;
}

}  // namespace ckpt
