// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the recipes share: one context's group, root, lineage, events, and the rules for touching
// the caller's memory from the library's threads.  Private to src/core.
#ifndef CKPT_CORE_SESSION_H_
#define CKPT_CORE_SESSION_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "comm/comm.h"
#include "core/core.h"
#include "util/sync.h"

namespace ckpt {

// Worker threads read and write the caller's memory only between Enter and Leave.  Once Close has
// returned none does, and none ever will: the caller may go on, however stuck a worker's disk is.
class MemoryGate {
 public:
  bool Enter() CKPT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (closed_) return false;
    ++inside_;
    return true;
  }
  void Leave() CKPT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (--inside_ == 0) cv_.NotifyAll();
  }
  void Close() CKPT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    closed_ = true;
    while (inside_ > 0) cv_.Wait(mu_);  // a memcpy of one chunk at most
  }

 private:
  Mutex mu_;
  CondVar cv_;
  bool closed_ CKPT_GUARDED_BY(mu_) = false;
  int inside_ CKPT_GUARDED_BY(mu_) = 0;
};

// Events for the host's callback, queued by the library's threads (bounded: the oldest progress
// goes first) and delivered by the caller's.  Thread-safe.
class EventQueue {
 public:
  void Push(Event event) CKPT_EXCLUDES(mu_);
  std::deque<Event> Take() CKPT_EXCLUDES(mu_);

 private:
  Mutex mu_;
  std::deque<Event> events_ CKPT_GUARDED_BY(mu_);
};

// The threads of saves and loads.  Each owns all that it touches, so that one that sits in a system
// call on a dead disk can be left behind.
class Crew {
 public:
  Crew() : shared_(std::make_shared<Shared>()) {}
  void Start(const std::string& name, std::function<void()> body);
  // Waits until none runs, at most so long.
  void Settle(Millis limit);

 private:
  struct Shared {
    Mutex mu;
    CondVar cv;
    int running CKPT_GUARDED_BY(mu) = 0;
  };
  std::shared_ptr<Shared> shared_;
};

// Lives until the last of its threads has ended; Close is what ckpt_ctx_free means.
class SessionImpl final : public Session, public std::enable_shared_from_this<SessionImpl> {
 public:
  explicit SessionImpl(SessionOptions options);
  Status Open();  // collective: makes the group
  void Close();   // local: leaves the group, drops unfinished work

  Status Save(State& state, const SaveOptions& options, OpResult* result) override;
  Status Load(State& state, const LoadOptions& options, OpResult* result) override;
  Status Finalize(uint64_t timeout_ms) override;
  Status ArriveWithError(bool save, int64_t step, const Status& error) override;
  void SetPhase(const char* phase, int64_t step) override;
  Status Poll() override;
  Result<int64_t> Latest() override;
  Status Usable() const override;

  // --- for the recipes
  Group& group() { return *group_; }
  const std::shared_ptr<Group>& group_ptr() { return group_; }
  const SessionOptions& options() const { return options_; }
  const std::string& root() const { return options_.root; }
  Log& log() { return *options_.log; }
  uint64_t TimeoutMs(uint64_t of_call) const {
    return of_call == 0 ? options_.contract_timeout_ms : of_call;
  }
  // Adds "(rank r on host h)" and cause.rank to an error that this rank found.
  Status Localize(const Status& status) const;
  // A thread of this session's crew (above).
  void StartThread(const std::string& name, std::function<void()> body) {
    crew_.Start(name, std::move(body));
  }
  // Queues for the host's callback and wakes the caller.  Any thread.
  void Queue(Event event);
  void Warn(int64_t step, const std::string& text);
  // A fresh flag that the host's callback sets when it asks to cancel the call that now begins.
  std::shared_ptr<std::atomic<bool>> NewCancelFlag() CKPT_EXCLUDES(mu_);

  // --- coordinator's memory between saves; used by the thread that runs the recipe there.
  Result<std::shared_ptr<RootOwner>> Owner();
  std::string Lineage() CKPT_EXCLUDES(mu_);
  void SetLineage(const std::string& lineage) CKPT_EXCLUDES(mu_);

 private:
  void Pump();

  SessionOptions options_;
  const int pid_;
  std::string host_;
  std::shared_ptr<EventQueue> events_;
  std::shared_ptr<Group> group_;
  std::atomic<bool> finalized_{false};
  Mutex mu_;
  std::shared_ptr<std::atomic<bool>> cancel_ CKPT_GUARDED_BY(mu_);
  std::string lineage_ CKPT_GUARDED_BY(mu_);
  std::shared_ptr<RootOwner> owner_ CKPT_GUARDED_BY(mu_);
  Crew crew_;
};

// Marks a collective call for the heartbeats: last_call and its age.
class CallScope {
 public:
  CallScope(Group& group, const std::string& call) : group_(group) { group_.CallBegins(call); }
  ~CallScope() { group_.CallEnds(code_); }
  Status Done(const Status& status) {
    code_ = status.code();
    return status;
  }

 private:
  Group& group_;
  Code code_ = Code::kInternal;
};

// `path` as it is meant now, whatever the working directory becomes later.
std::string AbsolutePath(const std::string& path);

inline uint64_t NanosSince(TimePoint start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

}  // namespace ckpt

#endif  // CKPT_CORE_SESSION_H_
