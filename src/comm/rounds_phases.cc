// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// After the gate: every phase ends in one vote, the first error ends the round on all ranks, and
// nothing but its own result ends a commit.  Test: tests/unit/comm/rounds_phases_test.cc
#include <algorithm>

#include "comm/rounds_impl.h"
#include "util/text.h"

namespace ckpt {

using namespace rounds;  // NOLINT: the private half of this class

namespace {
constexpr size_t kRemembered = 8;  // failed rounds whose cause a late BeginCommit may ask for
}

using Stage = Phases::Stage;

void Rounds::Impl::StartPhases(Gate gate_in) {
  phases.emplace();
  phases->id = next_round++;
  phases->call = std::move(gate_in.call);
  phases->tracks.resize(peers.size());
  for (int32_t r : gate_in.arrived) at(r).where = Where::kPhases;
  for (int32_t r = 0; r < options.size; ++r) Verdict(r, Status(), phases->id);
  StartPhase(1);
}

void Rounds::Impl::StartPhase(uint32_t phase) {
  phases->phase = phase;
  phases->stage = Stage::kCollecting;
  phases->missing = peers.size();
  phases->gap = {};
  phases->stall_check = now + options.stall_timeout;
  for (Phases::Track& track : phases->tracks) {
    track.contributed = false;
    track.payload.clear();
    track.progress = now;
  }
}

void Rounds::Impl::Contribute(int32_t rank, uint64_t round, uint32_t phase, const Status& local,
                              Bytes payload) {
  if (!phases || phases->id != round || phases->stage == Stage::kCommitting) return;
  Phases::Track& track = phases->tracks[static_cast<size_t>(rank)];
  // An error counts whenever it comes and whatever phase it names: a rank that has voted may still
  // fail, and may not have heard yet that the next phase has begun.
  if (!local.ok()) return ClosePhases(Failed(rank, local));
  if (phase != phases->phase || track.contributed) return;
  track.contributed = true;
  track.payload = std::move(payload);
  phases->gap = {};
  if (--phases->missing > 0) return;

  phases->stage = Stage::kCollected;
  phases->tracks[0].progress = now;  // rank 0's turn begins
  Outgoing out;
  out.kind = Outgoing::Kind::kCollected;
  out.call_id = at(0).call_id;
  out.round = round;
  out.phase = phase;
  for (Phases::Track& t : phases->tracks) out.collected.push_back(std::move(t.payload));
  Send(std::move(out));
}

void Rounds::Impl::Publish(uint64_t round, uint32_t phase, const Status& status,
                           std::vector<Bytes> payloads, bool last) {
  if (!phases || phases->id != round || phases->phase != phase) return;
  if (!status.ok()) return ClosePhases(status);
  if (phases->stage == Stage::kCollecting) return;
  const size_t n = payloads.size();
  if (n > 1 && n != peers.size()) {
    return ClosePhases(
        Status(Code::kInternal, Cat(Describe(phases->call), ": phase ", phase, " has ", n,
                                    " results for ", options.size, " ranks")));
  }
  for (int32_t r = 0; r < options.size; ++r) {
    Outgoing out;
    out.kind = Outgoing::Kind::kPhase;
    out.rank = r;
    out.call_id = at(r).call_id;
    out.round = round;
    out.phase = phase;
    if (n > 0) out.payload = n == 1 ? payloads[0] : std::move(payloads[static_cast<size_t>(r)]);
    Send(std::move(out));
  }
  if (last) return EndPhases(Status());
  StartPhase(phase + 1);
  // Whoever was lost while the commit could not be stopped cannot take part in what follows.
  if (gone > 0) ClosePhases(GoneStatus(phases->call));
}

Status Rounds::Impl::BeginCommit(uint64_t round) {
  if (!phases || phases->id != round) {
    for (const auto& [id, status] : closed) {
      if (id == round) return status;
    }
    return Status(Code::kState, Cat("round ", round, " is not open"));
  }
  if (phases->stage != Stage::kCollected) {
    return Status(Code::kState, Cat(Describe(phases->call), ": commit without all votes"));
  }
  // Rank 0 is this process: its own silence shows as a gap between events, and says nothing about
  // the others.
  std::vector<int32_t> silent;
  const bool stood_still = phases->gap >= options.unresponsive;
  if (stood_still) silent.push_back(0);
  for (int32_t r = 1; r < options.size && !stood_still; ++r) {
    if (Silent(r)) silent.push_back(r);
  }
  if (!silent.empty()) return CommitRefused(silent);
  phases->stage = Stage::kCommitting;
  phases->tracks[0].progress = now;
  phases->stall_check = now + options.stall_timeout;
  return Status();
}

void Rounds::Impl::Progress(int32_t rank, uint64_t round, uint64_t counter, std::string activity) {
  if (!phases || phases->id != round) return;
  Phases::Track& track = phases->tracks[static_cast<size_t>(rank)];
  if (track.counter == counter && track.activity == activity) return;
  track.counter = counter;
  track.activity = std::move(activity);
  track.progress = now;
}

bool Rounds::Impl::Owes(int32_t rank) const {
  if (phases->stage == Stage::kCollecting) {
    return !phases->tracks[static_cast<size_t>(rank)].contributed;
  }
  return rank == 0;
}

void Rounds::Impl::PhaseGap(Clock::duration gap) {
  if (!phases) return;
  phases->gap = std::max(phases->gap, gap);
  if (gap < options.unresponsive) return;
  // This process stood still: what the others sent meanwhile is not read yet, so that their silence
  // is no proof of a stall.
  for (Phases::Track& track : phases->tracks) track.progress += gap;
  phases->stall_check += gap;
}

void Rounds::Impl::PhaseTimers() {
  if (!phases || now < phases->stall_check) return;
  TimePoint first = now;
  std::vector<int32_t> stalled;
  for (int32_t r = 0; r < options.size; ++r) {
    if (!Owes(r)) continue;
    const TimePoint progress = phases->tracks[static_cast<size_t>(r)].progress;
    first = std::min(first, progress);
    if (now - progress >= options.stall_timeout) stalled.push_back(r);
  }
  if (stalled.empty()) {
    phases->stall_check = first + options.stall_timeout;
    return;
  }
  std::stable_sort(stalled.begin(), stalled.end(), [this](int32_t a, int32_t b) {
    return phases->tracks[static_cast<size_t>(a)].progress <
           phases->tracks[static_cast<size_t>(b)].progress;
  });
  ClosePhases(Stalled(stalled));
}

void Rounds::Impl::PhasesGone(Condition how) {
  if (!phases || phases->stage == Stage::kCommitting) return;
  // Whoever has left has returned from finalize: a gate was all there was to it.
  const bool untouched = phases->phase == 1 && phases->missing == peers.size();
  if (how == Condition::kLeft && phases->call.op == Op::kFinalize && untouched) {
    return EndPhases(Status());
  }
  ClosePhases(GoneStatus(phases->call));
}

void Rounds::Impl::ClosePhases(const Status& status) {
  for (int32_t r = 0; r < options.size; ++r) {
    Outgoing out;
    out.kind = Outgoing::Kind::kPhase;
    out.rank = r;
    out.call_id = at(r).call_id;
    out.round = phases->id;
    out.phase = phases->phase;
    out.status = status;
    Send(std::move(out));
  }
  EndPhases(status);
}

void Rounds::Impl::EndPhases(const Status& status) {
  if (!status.ok()) closed.emplace_back(phases->id, status);
  if (closed.size() > kRemembered) closed.pop_front();
  phases.reset();
  for (Peer& peer : peers) peer.where = Where::kIdle;
}

}  // namespace ckpt
