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
#include <set>
#include <string>

#include "comm/comm.h"
#include "core/core.h"
#include "util/sync.h"

namespace ckpt {

// "ckpt 1.2.3".  Ranks compare it at init; the commit record holds it.
extern const char kLibraryBuild[];

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

// Steps that one load has taken, by sequence.  Thread-safe.
class TriedSteps {
 public:
  void Add(uint64_t sequence) CKPT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    sequences_.insert(sequence);
  }
  std::set<uint64_t> Get() CKPT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return sequences_;
  }

 private:
  Mutex mu_;
  std::set<uint64_t> sequences_ CKPT_GUARDED_BY(mu_);
};

// Something that will have happened.  Thread-safe.
class Latch {
 public:
  void Set() CKPT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    set_ = true;
    cv_.NotifyAll();
  }
  // False when it has not happened within `limit`.
  bool WaitFor(Millis limit) CKPT_EXCLUDES(mu_) {
    const TimePoint deadline = Clock::now() + limit;
    MutexLock lock(mu_);
    while (!set_) {
      if (!cv_.WaitUntil(mu_, deadline)) return set_;
    }
    return true;
  }

 private:
  Mutex mu_;
  CondVar cv_;
  bool set_ CKPT_GUARDED_BY(mu_) = false;
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
  Result<bool> Advise(int64_t step, bool signalled, const Status& local) override;
  int32_t rank() const override { return group_->rank(); }
  int32_t size() const override { return group_->size(); }
  void SetPhase(const char* phase, int64_t step) override;
  Status Poll() override;
  Result<int64_t> Latest() override;
  Status SetPinned(int64_t step, bool pinned) override;
  Status MarkBad(int64_t step) override;
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
  // The same for the coordinator's findings: only what its own system calls refused is its own; a
  // gap between shards or a damaged file is no rank's.
  Status LocalizeErrno(const Status& status) const {
    return status.cause().sys_errno != 0 ? Localize(status) : status;
  }
  // Runs a step of a recipe on a thread of this session's crew.  What it throws (memory) becomes
  // this rank's error in the round.  Throws std::system_error when the system refuses a thread.
  void StartStep(const std::string& name, uint64_t round, uint32_t phase,
                 std::function<void()> body);
  // The same for what the caller's thread does itself; then it waits for the round's verdict.
  Status RunOnCaller(uint64_t round, uint32_t phase, const std::function<Status()>& body);
  // Queues for the host's callback and wakes the caller.  Any thread.
  void Queue(Event event);
  void Warn(int64_t step, const std::string& text);
  // Delivers queued events and log lines.  On the caller's thread only.
  void Pump() CKPT_EXCLUDES(mu_);
  // The host's callback may cancel the call that now begins; the flag tells workers to stop.  What
  // is queued from earlier calls is delivered first, so that it cancels nothing.
  std::shared_ptr<std::atomic<bool>> BeginCancellable() CKPT_EXCLUDES(mu_);
  // From now on a cancel is sent at once as this rank's error in the round.
  void CancelIn(uint64_t round, uint32_t phase) CKPT_EXCLUDES(mu_);

  // --- coordinator's memory between saves; used by the thread that runs the recipe there.
  // Takes the root at the first call, which may watch another host's lease: `stop` and `progress`
  // as in OwnerOptions.
  Result<std::shared_ptr<RootOwner>> Owner(
      std::function<bool()> stop = nullptr,
      std::function<void(const std::string&)> progress = nullptr) CKPT_EXCLUDES(owner_mu_);
  // Gives it back: not all ranks see this root.
  void DropOwner() CKPT_EXCLUDES(owner_mu_);
  // All ranks see one storage: shown once by a probe, or plain from where they are.
  std::atomic<bool> storage_is_shared{false};
  std::string Lineage() CKPT_EXCLUDES(mu_);
  void SetLineage(const std::string& lineage) CKPT_EXCLUDES(mu_);

 private:
  struct Attempts {  // of one load: rounds, each on an older step
    size_t count = 0;
    bool touched = false;  // the destination may have changed
    // Rank 0's: sequences of the steps that were taken.
    std::shared_ptr<TriedSteps> tried = std::make_shared<TriedSteps>();
    std::shared_ptr<std::atomic<bool>> cancelled;  // by the host, in or after the last round
  };
  Status LoadOnce(State& state, const LoadOptions& options, const std::string& path,
                  Attempts* attempts, OpResult* result);
  // The host asked for it when told of an event of `round`, 0 = of none.
  void Cancel(uint64_t round) CKPT_EXCLUDES(mu_);
  // OK on rank 0.
  Status OnCoordinator(const char* what) const;
  // Gives the root back on a library thread, and waits for all of those, bounded.
  void Settle();

  SessionOptions options_;
  const int pid_;
  std::string host_;
  std::shared_ptr<EventQueue> events_;
  std::shared_ptr<Group> group_;
  std::atomic<bool> finalized_{false};
  Mutex mu_;
  struct Cancellable {
    std::shared_ptr<std::atomic<bool>> flag;
    uint64_t round = 0;
    uint32_t phase = 0;
  };
  Cancellable cancellable_ CKPT_GUARDED_BY(mu_);
  std::string lineage_ CKPT_GUARDED_BY(mu_);
  Mutex
      owner_mu_;  // held over file I/O, so never wanted by the caller's thread inside a collective
  std::shared_ptr<RootOwner> owner_ CKPT_GUARDED_BY(owner_mu_);
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

// Runs `work` on this thread and on up to `threads` - 1 more, and returns when all are done.  Fewer
// when the system refuses some.  `work` must not throw.
void RunWorkers(uint32_t threads, const std::function<void()>& work);

// `body`, with what it throws as a status: NO_MEMORY, or INTERNAL with the words.
Status Contain(const std::function<Status()>& body);

// `path` as it is meant now, whatever the working directory becomes later.
std::string AbsolutePath(const std::string& path);

inline uint64_t NanosSince(TimePoint start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

}  // namespace ckpt

#endif  // CKPT_CORE_SESSION_H_
