// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Events and timers of the contract; the rules are in rounds_gate.cc and rounds_phases.cc.
// Test: tests/unit/comm/rounds_test.cc, rounds_failures_test.cc
#include "comm/rounds.h"

#include <algorithm>

#include "comm/rounds_impl.h"
#include "util/text.h"

namespace ckpt {

using namespace rounds;  // NOLINT: the private half of this class

Rounds::Rounds(const RoundsOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Rounds::Rounds(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Rounds::~Rounds() = default;

Rounds Rounds::Clone() const { return Rounds(std::make_unique<Impl>(*impl_)); }
Rounds::Rounds(Rounds&&) noexcept = default;
Rounds& Rounds::operator=(Rounds&&) noexcept = default;

void Rounds::Arrive(TimePoint now, int32_t rank, uint64_t call_id, const Call& call,
                    const Status& local) {
  impl_->Advance(now);
  if (impl_->Hear(rank)) impl_->Arrive(rank, call_id, call, local);
}

void Rounds::Contribute(TimePoint now, int32_t rank, uint64_t round, uint32_t phase,
                        const Status& local, Bytes payload) {
  impl_->Advance(now);
  if (impl_->Hear(rank)) impl_->Contribute(rank, round, phase, local, std::move(payload));
}

void Rounds::Publish(TimePoint now, uint64_t round, uint32_t phase, const Status& status,
                     std::vector<Bytes> payloads, bool last) {
  impl_->Advance(now);
  impl_->Publish(round, phase, status, std::move(payloads), last);
}

Status Rounds::BeginCommit(TimePoint now, uint64_t round) {
  impl_->Advance(now);
  return impl_->BeginCommit(round);
}

void Rounds::Progress(TimePoint now, int32_t rank, uint64_t round, uint64_t counter,
                      std::string activity) {
  impl_->Advance(now);
  if (impl_->Hear(rank)) impl_->Progress(rank, round, counter, std::move(activity));
}

void Rounds::Heartbeat(TimePoint now, int32_t rank, const RankInfo& info) {
  impl_->Advance(now);
  if (!impl_->Hear(rank)) return;
  impl_->at(rank).info = info;
  impl_->GateHeartbeat(rank);
}

void Rounds::Closed(TimePoint now, int32_t rank) {
  impl_->Advance(now);
  impl_->Gone(rank, Condition::kDead);
}

void Rounds::Left(TimePoint now, int32_t rank) {
  impl_->Advance(now);
  impl_->Gone(rank, Condition::kLeft);
}

void Rounds::Tick(TimePoint now) { impl_->Advance(now); }

std::optional<TimePoint> Rounds::NextDeadline() const {
  std::optional<TimePoint> next;
  auto at = [&next](TimePoint t) { next = next ? std::min(*next, t) : t; };
  for (int32_t r : impl_->grace) at(impl_->at(r).grace_end);
  if (const auto& gate = impl_->gate) {
    if (!gate->late_sent) at(gate->half);
    at(gate->probe_end ? *gate->probe_end : gate->deadline);
  }
  if (const auto& phases = impl_->phases) {
    at(phases->stall_check);
    at(impl_->now + impl_->options.heartbeat);  // so that a gap means that the loop stood still
  }
  return next;
}

std::vector<Outgoing> Rounds::TakeOutgoing() { return std::exchange(impl_->outgoing, {}); }

std::vector<Owed> Rounds::OwedTo(int32_t rank) const {
  std::vector<Owed> out;
  for (const Debt& d : impl_->at(rank).debts) {
    if (d.expires && *d.expires <= impl_->now) continue;
    out.push_back({d.key.op, d.key.step, d.any_call, d.verdict});
  }
  return out;
}

std::string Rounds::Fingerprint(std::optional<TimePoint> relative_to) const {
  return impl_->Fingerprint(relative_to);
}

void Rounds::Impl::Advance(TimePoint t) {
  if (!started) {
    started = true;
    now = t;
    for (Peer& p : peers) p.heard = t;  // nobody is silent before there was anything to hear
  }
  const auto gap = t - now;
  now = std::max(now, t);
  PhaseGap(gap);
  EndGrace(/*all=*/false);
  GateTimers();
  PhaseTimers();
}

bool Rounds::Impl::Hear(int32_t rank) {
  if (rank < 0 || rank >= options.size || at(rank).gone) return false;
  at(rank).heard = now;
  return true;
}

void Rounds::Impl::Gone(int32_t rank, Condition how) {
  if (rank < 0 || rank >= options.size || at(rank).gone) return;
  at(rank).gone = how;
  at(rank).gone_at = now;
  ++gone;
  if (at(rank).where == Where::kGrace) std::erase(grace, rank);
  EndGrace(/*all=*/true);  // what they wait for can no longer succeed
  if (gate) {
    const Status status = GoneStatus(gate->call);
    Close({*std::exchange(gate, {})}, status, /*prompt=*/true);
  }
  PhasesGone(how);
  at(rank).where = Where::kIdle;
}

void Rounds::Impl::Send(Outgoing out) {
  if (!at(out.rank).gone) outgoing.push_back(std::move(out));
}

namespace {

std::string KeyText(const RoundKey& key) {
  return Cat(static_cast<uint32_t>(key.op), ".", key.step);
}

// Milliseconds that a timer has left; nothing when times are not wanted.
struct Remaining {
  std::optional<TimePoint> from;
  std::string operator()(std::optional<TimePoint> t) const {
    if (!from || !t) return "";
    return Cat("+", std::chrono::duration_cast<Millis>(*t - *from).count());
  }
};

std::string PeerText(const Peer& p, Remaining left) {
  static constexpr char kWhere[] = {'i', 'w', 'g', 'p'};
  std::string out(1, p.gone ? 'x' : kWhere[static_cast<int>(p.where)]);
  if (p.where != Where::kIdle) out += KeyText(KeyOf(p.call));
  if (p.where == Where::kGrace) out += left(p.grace_end);
  if (p.probed) out += "?";
  for (const Debt& d : p.debts) {
    if (left.from && d.expires && *d.expires <= *left.from) continue;
    out += Cat(d.any_call ? "*" : "$", KeyText(d.key), d.prompt_until ? "!" : "");
    if (d.prompt_until) out += left(std::max(*d.prompt_until, left.from.value_or(TimePoint{})));
    out += left(d.expires);
  }
  return out + " ";
}

}  // namespace

std::string Rounds::Impl::Fingerprint(std::optional<TimePoint> t) const {
  const Remaining left{t};
  std::string out;
  for (const Peer& p : peers) out += PeerText(p, left);
  if (gate) {
    std::vector<int32_t> arrived = gate->arrived;
    std::sort(arrived.begin(), arrived.end());
    out += Cat("G", KeyText(gate->key), gate->late_sent ? "l" : "", gate->probe_end ? "p" : "");
    out += left(gate->probe_end ? *gate->probe_end : gate->deadline);
    for (int32_t r : arrived) out += Cat(" ", r);
  }
  if (phases) {
    out += Cat("P", KeyText(KeyOf(phases->call)), "#", phases->phase, "s",
               static_cast<int>(phases->stage));
    for (const auto& track : phases->tracks) {
      out += Cat(track.contributed ? "1" : "0", left(track.progress + options.stall_timeout));
    }
    if (t) out += Cat("gap", std::chrono::duration_cast<Millis>(phases->gap).count());
  }
  return out;
}

}  // namespace ckpt
