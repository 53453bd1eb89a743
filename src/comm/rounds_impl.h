// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The state behind Rounds, shared by rounds.cc (events and timers), rounds_gate.cc (who is in which
// call), rounds_phases.cc (votes after the gate) and rounds_text.cc (what people read).
// Plain copyable data: the model check clones it.
// Test: tests/unit/comm/rounds_*test.cc
#ifndef CKPT_COMM_ROUNDS_IMPL_H_
#define CKPT_COMM_ROUNDS_IMPL_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/rounds.h"

namespace ckpt {
namespace rounds {

struct RoundKey {
  Op op = Op::kSave;
  int64_t step = -1;
  bool operator==(const RoundKey&) const = default;
};

// A verdict that a rank has missed.
struct Debt {
  RoundKey key;
  Status verdict;
  bool any_call = false;                  // a local error that met no round: the next call pays it
  std::optional<TimePoint> prompt_until;  // until then paid without grace
  std::optional<TimePoint> expires;
};

enum class Where { kIdle, kGrace, kGate, kPhases };

struct Peer {
  RankInfo info;
  TimePoint heard;                // the last sign of life
  std::optional<Condition> gone;  // kDead or kLeft, for good
  TimePoint gone_at;
  bool probed = false;  // a probe is unanswered

  Where where = Where::kIdle;
  uint64_t call_id = 0;  // of the call that it is in, or was in last
  Call call;
  Status owed;              // kGrace: what it gets when the grace ends
  TimePoint grace_end;      // kGrace
  std::vector<Debt> debts;  // oldest first
};

// A round whose ranks have not all arrived.  There is at most one: a second key closes it or
// itself.
struct Gate {
  RoundKey key;
  Call call;  // of the first arrival
  TimePoint opened, half, deadline;
  bool late_sent = false;
  std::optional<TimePoint> probe_end;  // set once the deadline has passed
  std::vector<int32_t> arrived;        // in order of arrival
  std::string cites;                   // lower saves that failed against it
};

// A round that passed its gate; every rank is in it.
struct Phases {
  enum class Stage {
    kCollecting,  // ranks owe contributions
    kCollected,   // the coordinator's recipe owes the result
    kCommitting,  // the same, and only Publish may close the round
  };
  struct Track {
    bool contributed = false;
    Bytes payload;
    TimePoint progress;  // the last
    uint64_t counter = 0;
    std::string activity;
  };
  uint64_t id = 0;
  Call call;
  uint32_t phase = 1;
  Stage stage = Stage::kCollecting;
  size_t missing = 0;  // contributions
  std::vector<Track> tracks;
  TimePoint stall_check;  // no rank can have stalled before
  Clock::duration gap{};  // largest between two events since the last contribution
};

// One side of a disagreement: what these ranks say.
struct Side {
  std::string value;
  std::vector<int32_t> ranks;
};

RoundKey KeyOf(const Call& call);
bool HasStep(Op op);
// True if both are calls of one operation with steps and `a` has the lower one.
bool IsBehind(const RoundKey& a, const RoundKey& b);
// The value of field `i` of a call; index 0 is the timeout.  Empty name past the end.
Field FieldAt(const Call& call, size_t i);

}  // namespace rounds

struct Rounds::Impl {
  using RoundKey = rounds::RoundKey;
  using Debt = rounds::Debt;
  using Peer = rounds::Peer;
  using Gate = rounds::Gate;
  using Phases = rounds::Phases;
  using Side = rounds::Side;

  explicit Impl(const RoundsOptions& o) : options(o), peers(static_cast<size_t>(o.size)) {}

  // --- rounds.cc
  void Advance(TimePoint t);  // first thing in every event: the clock, then the timers
  bool Hear(int32_t rank);    // false: no such rank, or gone
  void Gone(int32_t rank, Condition how);
  void Send(Outgoing out);
  std::string Fingerprint(std::optional<TimePoint> t) const;
  Peer& at(int32_t rank) { return peers[static_cast<size_t>(rank)]; }
  const Peer& at(int32_t rank) const { return peers[static_cast<size_t>(rank)]; }
  Clock::duration Grace() const { return 2 * options.heartbeat; }
  bool Silent(int32_t rank) const { return now - at(rank).heard >= options.unresponsive; }

  // --- rounds_gate.cc
  void Arrive(int32_t rank, uint64_t call_id, const Call& call, const Status& local);
  void GateTimers();
  void GateHeartbeat(int32_t rank);
  void Match(int32_t rank);
  void Join(int32_t rank);
  void Open(int32_t rank);
  void CheckComplete(size_t fresh);
  void MeetOtherStep(int32_t rank);
  void MeetOtherOperation(int32_t rank);
  void LocalError(int32_t rank, const Status& local);
  Gate NewGate(int32_t rank);
  void Close(std::vector<Gate> rounds, const Status& verdict, bool prompt,
             std::optional<TimePoint> expires = {});
  void AddDebt(int32_t rank, Debt debt);
  std::optional<Debt> TakeDebt(int32_t rank, const RoundKey& key);
  void PayDebt(int32_t rank, Debt debt, bool failed);
  std::vector<int32_t> TakeGrace(const RoundKey& key);
  void EndGrace(bool all);
  void Verdict(int32_t rank, const Status& status, uint64_t round);
  std::vector<int32_t> Missing(const std::vector<int32_t>& arrived) const;

  // --- rounds_phases.cc
  void StartPhases(Gate gate);
  void StartPhase(uint32_t phase);
  void Contribute(int32_t rank, uint64_t round, uint32_t phase, const Status& local, Bytes payload);
  void Publish(uint64_t round, uint32_t phase, const Status& status, std::vector<Bytes> payloads,
               bool last);
  Status BeginCommit(uint64_t round);
  void Progress(int32_t rank, uint64_t round, uint64_t counter, std::string activity);
  void PhaseTimers();
  void PhaseGap(Clock::duration gap);
  void PhasesGone(Condition how);
  bool Owes(int32_t rank) const;
  void ClosePhases(const Status& status);
  void EndPhases(const Status& status);

  // --- rounds_text.cc
  RankReport Report(int32_t rank, Condition condition) const;
  Condition Life(int32_t rank) const;
  std::string Details(const std::vector<RankReport>& reports) const;
  std::string Detail(const RankReport& report) const;
  Status AtDeadline(const Gate& gate) const;
  Status GoneStatus(const Call& call) const;
  Status Disagree(std::string text, std::string field, const std::vector<Side>& sides) const;
  Status FieldMismatch(const Gate& gate) const;
  Status Behind(const Gate& lower, const Gate& higher, bool lower_first) const;
  Status OtherOperation(const Gate& first, const Gate& second) const;
  Status Failed(int32_t rank, const Status& local) const;
  Status Stalled(const std::vector<int32_t>& ranks) const;
  Status CommitRefused(const std::vector<int32_t>& silent) const;
  std::string LateText(const Gate& gate) const;

  RoundsOptions options;
  std::vector<Peer> peers;
  std::vector<int32_t> grace;  // ranks in it, in order of their calls
  std::optional<Gate> gate;
  std::optional<Phases> phases;
  std::deque<std::pair<uint64_t, Status>> closed;  // the last few rounds that failed after the gate
  std::vector<Outgoing> outgoing;
  int32_t gone = 0;  // number of ranks
  uint64_t next_round = 1;
  bool started = false;
  TimePoint now;
};

}  // namespace ckpt

#endif  // CKPT_COMM_ROUNDS_IMPL_H_
