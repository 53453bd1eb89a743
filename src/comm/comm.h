// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one context: bootstrap, monitor thread, collective calls, and an exchange of bytes
// between ranks.  Carries opaque bytes; knows nothing of tensors or files.
//
// Group: thread-safe; one foreground collective at a time (a second gets STATE).  Every wait has a
// deadline, runs on the caller's thread and calls GroupOptions::pump there.  docs/contract.md;
// tests/unit/comm/, tests/process/.
#ifndef CKPT_COMM_COMM_H_
#define CKPT_COMM_COMM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/rounds.h"
#include "util/log.h"
#include "util/status.h"

namespace ckpt {

// Who this process is in its job.
struct JobIdentity {
  int32_t rank = 0, size = 1;
  std::string job_id;  // equal on all ranks; context name and number are added by Group::Create
  std::string source;  // "RANK + WORLD_SIZE", "none: one process": logged
  bool one_host = true;
  uint16_t port = 0;    // CKPT_PORT, 0 = none
  std::string token;    // CKPT_TOKEN
  std::string address;  // MASTER_ADDR: where rank 0 listens when there is a port; empty = this host
  std::string interface;  // CKPT_INTERFACE; read when there are several hosts; empty = all
};
// AUTO (docs/contract.md): the first complete pair of environment variables; half a pair or a value
// that is not a number: INVALID_ARGUMENT naming it.  `get` is std::getenv in production.
Result<JobIdentity> IdentityFromEnvironment(const std::function<const char*(const char*)>& get);

struct GroupOptions {
  bool self = false;  // CKPT_COMM_SELF: one rank, no environment
  std::string name = "default";
  // These two must be equal on all ranks: MISMATCH naming the key, the values, the ranks.
  std::string library_build;
  std::vector<Field> job_config;
  Millis contract_timeout{60000};
  Millis heartbeat{1000};
  Millis stall_timeout{120000};
  uint64_t max_message_bytes = 1ull << 30;  // control-plane message
  std::shared_ptr<Log> log;
  // On the waiting caller's thread, at least every 100 ms and when an event is queued.
  std::function<void()> pump;
  // RANK_LATE, on the monitor thread: must only queue.
  std::function<void(const std::string& text)> on_late;
  // The host's describe callback; run on a thread of its own with 200 ms.
  std::function<std::string()> describe;
  // Tests only: this identity, its job_id taken as it is, instead of the environment.
  std::optional<JobIdentity> identity;
};

class Group {
 public:
  // Collective.  PARTICIPANTS naming who did not come by contract_timeout, MISMATCH (build,
  // configuration), INVALID_ARGUMENT.
  static Result<std::shared_ptr<Group>> Create(GroupOptions options);
  virtual ~Group() = default;  // leaves, never waits for peers

  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  virtual const JobIdentity& identity() const = 0;

  // --- rounds.  Gate: waits for the verdict; the round id on OK.
  virtual Result<uint64_t> Arrive(const Call& call, const Status& local) = 0;
  // Sends this rank's part of a phase.  Never waits for peers.  `commit_vote`: from now on a lost
  // coordinator means OUTCOME_UNKNOWN rather than PARTICIPANTS(rank 0).
  virtual void Contribute(uint64_t round, uint32_t phase, const Status& local, Bytes payload,
                          bool commit_vote) = 0;
  // Waits for the phase's result on the caller's thread (pump runs).
  virtual Result<Bytes> Await(uint64_t round, uint32_t phase) = 0;
  // Whether the round was closed with an error (any thread; for workers that should stop).
  virtual bool Closed(uint64_t round) const = 0;
  // --- the coordinator's recipe (rank 0 only; on any one thread)
  // All contributions (index = rank), or the error that closed the round.
  virtual Result<std::vector<Bytes>> Collect(uint64_t round, uint32_t phase) = 0;
  virtual void Publish(uint64_t round, uint32_t phase, const Status& status,
                       std::vector<Bytes> payloads, bool last) = 0;
  virtual Status BeginCommit(uint64_t round) = 0;

  // Makes a caller that waits in this group run pump soon.  Any thread.
  virtual void Wake() = 0;

  // Bytes moved by this rank in the round so far, and what it is doing; cheap, any thread.
  virtual void Progress(uint64_t round, uint64_t bytes, const std::string& activity) = 0;

  // --- what heartbeats say.  Any thread, never blocks; SetPhase copies at most 63 bytes.
  virtual void SetPhase(const char* phase, int64_t step) = 0;
  virtual void CallBegins(const std::string& call) = 0;  // "ckpt_save_collective(step=100)"
  virtual void CallEnds(Code code) = 0;

  // After this every collective gives STATE.  Local; peers see LEFT.
  virtual void Leave() = 0;

  // --- exchange: request/reply between ranks on connections of its own (never the monitor's).
  // Serves requests of peers for `round` until StopServing; `provider` runs on the exchange's
  // thread.  Requests that come before StartServing wait for it (bounded by the requester's
  // deadline).
  using Provider = std::function<Status(std::string_view request, std::string* reply)>;
  virtual void StartServing(uint64_t round, Provider provider) = 0;
  virtual void StopServing(uint64_t round) = 0;  // returns once no provider call is running
  // Asks `peer`; the reply must have exactly `bytes` bytes (<= limits.chunk_bytes).  Several
  // threads may ask at once.  Gives up when the round is closed or after stall_timeout without a
  // byte: COMM naming the peer, or the peer's own error.
  virtual Status Ask(uint64_t round, int32_t peer, std::string_view request, char* reply,
                     size_t bytes) = 0;
};

}  // namespace ckpt

#endif  // CKPT_COMM_COMM_H_
