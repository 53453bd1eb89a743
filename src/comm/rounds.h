// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The contract as a pure state machine: what the coordinator decides from what it hears.  Events
// in, messages out; no sockets, no clock (every event carries the time), no threads: one thread at
// a time. docs/contract.md states the rules; tests/unit/comm/rounds_test.cc tests each,
// rounds_model_test.cc explores all interleavings of small worlds.
//
// A *round* is one collective call.  It opens with the first arrival and passes a gate (everybody
// has arrived with the same arguments).  It then has *phases* 1, 2, ...: every rank contributes a
// local status and bytes; when all have, or one failed, the coordinator's recipe gets them and
// publishes one result.  The first error closes the round on all ranks with the same Status.
#ifndef CKPT_COMM_ROUNDS_H_
#define CKPT_COMM_ROUNDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "util/status.h"
#include "util/sync.h"
#include "util/wire.h"

namespace ckpt {

enum class Op : uint32_t { kSave = 1, kLoad = 2, kAdvise = 3, kFinalize = 4 };

struct Field {  // one argument that must agree on all ranks
  std::string name, value;
};

// A collective call as a rank announces it.  The round's key is (op, step); step is -1 for load and
// finalize.
struct Call {
  Op op = Op::kSave;
  int64_t step = -1;
  uint64_t timeout_ms =
      0;  // gate deadline after the round's first arrival (the first arrival's counts; differs:
          // MISMATCH on field "contract_timeout_ms", except for finalize)
  std::vector<Field> fields;  // same names in the same order on every rank
};
// "save(step=100)"
std::string Describe(const Call& call);

// A verdict that a rank has missed.
struct Owed {
  Op op = Op::kSave;
  int64_t step = -1;
  bool any_call = false;  // a local error that met no round: the next call gets it, whatever it is
  Status verdict;
};

// What a rank's heartbeat says.
struct RankInfo {
  std::string host, phase, doing, last_call;
  int64_t phase_step = -1;
};

struct RoundsOptions {
  int32_t size = 1;
  Millis heartbeat{1000};
  Millis unresponsive{3000};  // silence; max(3 heartbeats, 3 s)
  Millis stall_timeout{120000};
  Millis probe{300};  // wait for fresh details before a PARTICIPANTS verdict
};

struct Outgoing {
  enum class Kind {
    kVerdict,    // of the gate, to the rank's call `call_id`; OK carries the round id
    kPhase,      // result of a phase (or the error that closed the round), to one rank
    kCollected,  // to the coordinator's recipe: all contributions of a phase (index = rank)
    kProbe,      // please send a heartbeat with fresh details now
    kLate,       // RANK_LATE event: `text` names the ranks waited for
  };
  Kind kind = Kind::kVerdict;
  int32_t rank = 0;
  uint64_t call_id = 0;
  uint64_t round = 0;
  uint32_t phase = 0;
  Status status;
  Bytes payload;
  std::vector<Bytes> collected;
  std::string text;
};

class Rounds {
 public:
  explicit Rounds(const RoundsOptions& options);
  ~Rounds();

  // --- events.  Malformed ones (unknown round, a rank arriving twice) close nothing and are
  // answered with STATE to that rank alone, or ignored. `call_id` is the rank's own number of this
  // call and comes back in the verdict.
  void Arrive(TimePoint now, int32_t rank, uint64_t call_id, const Call& call, const Status& local);
  // Only for the round's current phase, once; an error counts at any time before a commit.
  void Contribute(TimePoint now, int32_t rank, uint64_t round, uint32_t phase, const Status& local,
                  Bytes payload);
  // The recipe's result of a phase: an error closes the round; OK with `last` ends it.  `payloads`
  // holds one per rank, or one for all, or none.
  void Publish(TimePoint now, uint64_t round, uint32_t phase, const Status& status,
               std::vector<Bytes> payloads, bool last);
  // From now until Publish nothing else closes the round.  The error that already did, otherwise;
  // or PARTICIPANTS if a rank has been silent for the unresponsive limit, or the coordinator's own
  // loop has had such a gap since the last vote.
  Status BeginCommit(TimePoint now, uint64_t round);
  // Progress of a rank inside a round: `counter` only has to change; `activity` is "pwrite of
  // model.safetensors".
  void Progress(TimePoint now, int32_t rank, uint64_t round, uint64_t counter,
                std::string activity);
  void Heartbeat(TimePoint now, int32_t rank, const RankInfo& info);
  void Closed(TimePoint now, int32_t rank);  // connection lost: DEAD
  void Left(TimePoint now, int32_t rank);    // context freed, or finalize returned
  void Tick(TimePoint now);

  // When Tick is next needed; nullopt when nothing is pending.
  std::optional<TimePoint> NextDeadline() const;
  std::vector<Outgoing> TakeOutgoing();
  // What the rank's next call would be told at once, were the rounds to end now; oldest first.
  std::vector<Owed> OwedTo(int32_t rank) const;

  // --- for the model check
  // Canonical text of the whole state; times only if `relative_to` is given, as what the timers
  // have left.
  std::string Fingerprint(std::optional<TimePoint> relative_to = {}) const;
  Rounds Clone() const;
  Rounds(Rounds&&) noexcept;
  Rounds& operator=(Rounds&&) noexcept;

 private:
  struct Impl;
  explicit Rounds(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ckpt

#endif  // CKPT_COMM_ROUNDS_H_
