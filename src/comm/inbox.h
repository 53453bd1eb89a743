// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the coordinator has said to this rank, for the threads that wait for it.  The monitor puts,
// callers wait in slices of at most 100 ms and run `pump` in between.  Thread-safe.
// Test: tests/unit/comm/parts_test.cc
#ifndef CKPT_COMM_INBOX_H_
#define CKPT_COMM_INBOX_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/message.h"
#include "util/sync.h"

namespace ckpt {

class Inbox {
 public:
  explicit Inbox(std::function<void()> pump) : pump_(std::move(pump)) {}

  // --- callers
  // OK once the roster has come; the init's error; COMM at `deadline`.
  Status WaitRoster(TimePoint deadline, RosterMsg* out) CKPT_EXCLUDES(mu_);
  // The number of a new call.  STATE while another is open or after Leave; COMM once the
  // coordinator is lost and that has been said.
  Result<uint64_t> BeginCall(const Call& call) CKPT_EXCLUDES(mu_);
  Result<uint64_t> WaitVerdict(uint64_t call_id) CKPT_EXCLUDES(mu_);
  Result<Bytes> WaitPhase(uint64_t round, uint32_t phase) CKPT_EXCLUDES(mu_);
  Result<std::vector<Bytes>> WaitCollected(uint64_t round, uint32_t phase) CKPT_EXCLUDES(mu_);
  // From now on a lost coordinator leaves this round's outcome unknown.
  void Voted(uint64_t round) CKPT_EXCLUDES(mu_);
  bool Closed(uint64_t round) const CKPT_EXCLUDES(mu_);
  bool ended() const CKPT_EXCLUDES(mu_);
  void Left() CKPT_EXCLUDES(mu_);
  void Wake() CKPT_EXCLUDES(mu_);

  // --- the monitor
  void Put(RosterMsg message) CKPT_EXCLUDES(mu_);
  void Put(VerdictMsg message) CKPT_EXCLUDES(mu_);
  void Put(PhaseMsg message) CKPT_EXCLUDES(mu_);
  void PutCollected(uint64_t round, uint32_t phase, std::vector<Bytes> all) CKPT_EXCLUDES(mu_);
  // `why`: PARTICIPANTS with rank 0's report.  The first counts.  `owed`: verdicts that this rank
  // has missed: the call that one is for gets it, rather than `why` which came of it.
  void Lost(const Status& why, std::vector<Owed> owed = {}) CKPT_EXCLUDES(mu_);

 private:
  using Key = std::pair<uint64_t, uint32_t>;  // round, phase

  // One wait, with `pump` outside the lock if this thread is the caller's.
  void Slice() CKPT_REQUIRES(mu_);
  // Why nothing more will come for `round` (0: for a call); OK while there is hope.
  Status Over(uint64_t round) const CKPT_REQUIRES(mu_);
  void Close(uint64_t round, const Status& status) CKPT_REQUIRES(mu_);
  // What the open call gets now that the coordinator is lost.
  Status LostVerdict() CKPT_REQUIRES(mu_);

  const std::function<void()> pump_;
  mutable Mutex mu_;
  CondVar changed_;
  std::optional<RosterMsg> roster_ CKPT_GUARDED_BY(mu_);
  uint64_t next_call_ CKPT_GUARDED_BY(mu_) = 1;
  bool calling_ CKPT_GUARDED_BY(mu_) = false;  // between BeginCall and the end of WaitVerdict
  std::optional<VerdictMsg> verdict_ CKPT_GUARDED_BY(mu_);
  uint64_t open_round_ CKPT_GUARDED_BY(mu_) = 0;  // the foreground one, until its last message
  uint64_t voted_round_ CKPT_GUARDED_BY(mu_) = 0;
  std::map<Key, Bytes> results_ CKPT_GUARDED_BY(mu_);
  std::map<Key, std::vector<Bytes>> collected_ CKPT_GUARDED_BY(mu_);
  std::map<uint64_t, Status> closed_ CKPT_GUARDED_BY(mu_);  // newest few
  // Of the last call.
  Op op_ CKPT_GUARDED_BY(mu_) = Op::kSave;
  int64_t step_ CKPT_GUARDED_BY(mu_) = -1;
  std::vector<Owed> owed_ CKPT_GUARDED_BY(mu_);
  Status lost_ CKPT_GUARDED_BY(mu_);
  bool lost_said_ CKPT_GUARDED_BY(mu_) = false;
  bool left_ CKPT_GUARDED_BY(mu_) = false;
  std::thread::id caller_ CKPT_GUARDED_BY(mu_);  // whose callbacks pump runs
};

}  // namespace ckpt

#endif  // CKPT_COMM_INBOX_H_
