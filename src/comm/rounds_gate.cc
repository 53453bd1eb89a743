// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The gate: which calls belong together, and what is owed after one has failed.
// docs/contract.md has the rules in words.  Test: tests/unit/comm/rounds_test.cc,
// rounds_model_test.cc
#include <algorithm>

#include "comm/rounds_impl.h"
#include "util/text.h"

namespace ckpt {

using namespace rounds;  // NOLINT: the private half of this class

namespace {

// Longer ones are as good as for ever, and must not overflow the clock.
constexpr uint64_t kMaxTimeoutMs = 100'000'000'000;
// A rank that floods the others with local errors must not fill the coordinator's memory.
constexpr size_t kMaxDebts = 16;
constexpr size_t kMaxCites = 400;  // bytes

Millis Timeout(const Call& call) {
  return Millis(static_cast<int64_t>(std::min(call.timeout_ms, kMaxTimeoutMs)));
}

bool Agree(const Call& a, const Call& b) {
  if (a.op != Op::kFinalize && a.timeout_ms != b.timeout_ms) return false;
  return std::equal(
      a.fields.begin(), a.fields.end(), b.fields.begin(), b.fields.end(),
      [](const Field& x, const Field& y) { return x.name == y.name && x.value == y.value; });
}

}  // namespace

namespace rounds {

RoundKey KeyOf(const Call& call) { return {call.op, HasStep(call.op) ? call.step : -1}; }

bool HasStep(Op op) { return op == Op::kSave || op == Op::kAdvise; }

bool IsBehind(const RoundKey& a, const RoundKey& b) {
  return a.op == b.op && HasStep(a.op) && a.step < b.step;
}

Field FieldAt(const Call& call, size_t i) {
  // Every rank's finalize may bring a timeout of its own.
  if (i == 0 && call.op == Op::kFinalize) return {"contract_timeout_ms", ""};
  if (i == 0) return {"contract_timeout_ms", Cat(call.timeout_ms)};
  if (i <= call.fields.size()) return call.fields[i - 1];
  return {};
}

}  // namespace rounds

void Rounds::Impl::Verdict(int32_t rank, const Status& status, uint64_t round) {
  Outgoing out;
  out.kind = Outgoing::Kind::kVerdict;
  out.rank = rank;
  out.call_id = at(rank).call_id;
  out.round = round;
  out.status = status;
  Send(std::move(out));
}

void Rounds::Impl::Arrive(int32_t rank, uint64_t call_id, const Call& call, const Status& local) {
  Peer& peer = at(rank);
  if (peer.where != Where::kIdle && call_id == peer.call_id) return;  // said twice
  const bool known = call.op >= Op::kSave && call.op <= Op::kFinalize;
  if (peer.where != Where::kIdle || !known) {
    const std::string why = known ? Cat("this rank is in ", Describe(peer.call), " already")
                                  : std::string("no such operation");
    Outgoing out;
    out.kind = Outgoing::Kind::kVerdict;
    out.rank = rank;
    out.call_id = call_id;
    out.status = Status(Code::kState, Cat(Describe(call), ": ", why)).WithRank(rank);
    return Send(std::move(out));
  }
  peer.call_id = call_id;
  peer.call = call;
  // Private to the rank: it should not have told us, and it is nobody else's business.
  if (local.code() == Code::kState || local.code() == Code::kForked) return Verdict(rank, local, 0);

  // Debts come before any matching: whoever comes late for a round that has failed must not drag
  // down what the others are in now.
  const RoundKey key = KeyOf(call);
  const bool joins = gate && gate->key == key;
  std::optional<Debt> debt = TakeDebt(rank, key);
  if (debt && !joins) return PayDebt(rank, std::move(*debt), !local.ok());
  if (!local.ok()) return LocalError(rank, local);
  Match(rank);
}

// --- matching

void Rounds::Impl::Match(int32_t rank) {
  const RoundKey key = KeyOf(at(rank).call);
  if (!gate) return Open(rank);
  if (gate->key == key) return Join(rank);
  if (gate->key.op == key.op) return MeetOtherStep(rank);
  MeetOtherOperation(rank);
}

// A round of `rank` and of the debtors that wait for its key.
rounds::Gate Rounds::Impl::NewGate(int32_t rank) {
  Gate out;
  out.call = at(rank).call;
  out.key = KeyOf(out.call);
  out.opened = now;
  const auto timeout = Timeout(out.call);
  out.half = now + timeout / 2;
  out.deadline = now + timeout;
  out.arrived = TakeGrace(out.key);
  out.arrived.push_back(rank);
  for (int32_t r : out.arrived) at(r).where = Where::kGate;
  return out;
}

void Rounds::Impl::Open(int32_t rank) {
  gate = NewGate(rank);
  CheckComplete(gate->arrived.size());
}

void Rounds::Impl::Join(int32_t rank) {
  at(rank).where = Where::kGate;
  gate->arrived.push_back(rank);
  std::erase_if(at(rank).debts, [this](const Debt& d) { return d.key == gate->key; });
  CheckComplete(1);
}

// `fresh`: how many of those who arrived last are not yet compared with the first.
void Rounds::Impl::CheckComplete(size_t fresh) {
  const Call& first = at(gate->arrived.front()).call;
  const bool agree =
      std::all_of(gate->arrived.end() - static_cast<ptrdiff_t>(fresh), gate->arrived.end(),
                  [&](int32_t r) { return Agree(first, at(r).call); });
  Status verdict;
  if (gone > 0) verdict = GoneStatus(gate->call);
  if (!agree) verdict = FieldMismatch(*gate);
  if (!verdict.ok()) return Close({*std::exchange(gate, {})}, verdict, /*prompt=*/true);
  if (gate->arrived.size() == peers.size()) StartPhases(*std::exchange(gate, {}));
}

// The lower step fails at once; the higher one stays open for the others to reach it.
void Rounds::Impl::MeetOtherStep(int32_t rank) {
  const bool gate_is_behind = IsBehind(gate->key, KeyOf(at(rank).call));
  Gate lower = NewGate(rank);
  if (gate_is_behind) std::swap(lower, *gate);
  const Status verdict = Behind(lower, *gate, gate_is_behind);
  if (gate->cites.size() < kMaxCites) gate->cites += Cat("; ", verdict.message());
  Close({std::move(lower)}, verdict, /*prompt=*/true);
  if (gate_is_behind) CheckComplete(gate->arrived.size());
}

void Rounds::Impl::MeetOtherOperation(int32_t rank) {
  Gate second = NewGate(rank);
  const Status verdict = OtherOperation(*gate, second);
  Close({*std::exchange(gate, {}), std::move(second)}, verdict, /*prompt=*/true);
}

void Rounds::Impl::LocalError(int32_t rank, const Status& local) {
  const Status verdict = Failed(rank, local);
  const TimePoint expires = now + Timeout(at(rank).call);
  std::vector<Gate> rounds;
  if (gate) rounds.push_back(*std::exchange(gate, {}));
  const bool met = !rounds.empty();
  if (met && rounds[0].key == KeyOf(at(rank).call)) {
    rounds[0].arrived.push_back(rank);
  } else {
    rounds.push_back(NewGate(rank));
  }
  if (met) return Close(std::move(rounds), verdict, /*prompt=*/true, expires);
  const std::vector<int32_t> others = Missing(rounds[0].arrived);
  const RoundKey key = rounds[0].key;
  for (int32_t r : rounds[0].arrived) {
    at(r).where = Where::kIdle;
    Verdict(r, verdict, 0);
  }
  // A rank that still owes a higher step is behind: the others' next call is not the one it failed.
  if (!at(rank).debts.empty()) return;
  for (int32_t r : others) AddDebt(r, {key, verdict, /*any_call=*/true, expires, expires});
}

// --- closing, debts

// Closes `rounds`, which met one another, with one verdict.  `prompt`: latecomers are told at once;
// otherwise a retry of those in time is given the chance to meet them.
void Rounds::Impl::Close(std::vector<Gate> rounds, const Status& verdict, bool prompt,
                         std::optional<TimePoint> expires) {
  std::vector<bool> party(peers.size());
  for (const Gate& round : rounds) {
    for (int32_t r : round.arrived) {
      party[static_cast<size_t>(r)] = true;
      at(r).where = Where::kIdle;
      Verdict(r, verdict, 0);
    }
  }
  for (const Gate& round : rounds) {
    for (int32_t r : Missing(round.arrived)) {
      if (at(r).where == Where::kGate) continue;  // in another open round
      Debt debt{round.key, verdict, /*any_call=*/false, {}, expires};
      // Who was party to the conflict has had the verdict; its next call of this key is a new one.
      if (prompt && !party[static_cast<size_t>(r)]) debt.prompt_until = now + Grace();
      AddDebt(r, std::move(debt));
    }
  }
}

void Rounds::Impl::AddDebt(int32_t rank, Debt debt) {
  std::vector<Debt>& debts = at(rank).debts;
  std::erase_if(debts, [this](const Debt& d) { return d.expires && *d.expires <= now; });
  if (!debt.any_call) {  // repeated failures of one key are one debt
    std::erase_if(debts, [&](const Debt& d) { return !d.any_call && d.key == debt.key; });
  }
  if (debts.size() == kMaxDebts) debts.erase(debts.begin());
  debts.push_back(std::move(debt));
}

// What a call of `key` pays, if anything; the call clears what it makes obsolete.
std::optional<rounds::Debt> Rounds::Impl::TakeDebt(int32_t rank, const RoundKey& key) {
  std::vector<Debt>& debts = at(rank).debts;
  std::erase_if(debts, [this](const Debt& d) { return d.expires && *d.expires <= now; });
  auto it = std::find_if(debts.begin(), debts.end(), [&](const Debt& d) { return d.key == key; });
  if (it == debts.end()) {
    it = std::find_if(debts.begin(), debts.end(), [](const Debt& d) { return d.any_call; });
  }
  std::optional<Debt> out;
  if (it != debts.end()) {
    out = std::move(*it);
    debts.erase(it);
  }
  std::erase_if(debts, [&](const Debt& d) {
    return d.key.op != key.op || IsBehind(d.key, key) || (d.key == key && !d.any_call);
  });
  return out;
}

// `failed`: the call brings an error of its own and can join nothing.
void Rounds::Impl::PayDebt(int32_t rank, Debt debt, bool failed) {
  const bool prompt = debt.prompt_until && now < *debt.prompt_until;
  if (failed || prompt || gone > 0) return Verdict(rank, debt.verdict, 0);
  Peer& peer = at(rank);
  peer.where = Where::kGrace;
  peer.owed = std::move(debt.verdict);
  peer.grace_end = now + Grace();
  grace.push_back(rank);
}

std::vector<int32_t> Rounds::Impl::TakeGrace(const RoundKey& key) {
  std::vector<int32_t> out;
  for (int32_t r : grace) {
    if (KeyOf(at(r).call) == key) out.push_back(r);
  }
  std::erase_if(grace, [&](int32_t r) { return KeyOf(at(r).call) == key; });
  return out;
}

void Rounds::Impl::EndGrace(bool all) {
  for (int32_t r : std::exchange(grace, {})) {
    Peer& peer = at(r);
    if (!all && now < peer.grace_end) {
      grace.push_back(r);
      continue;
    }
    peer.where = Where::kIdle;
    Verdict(r, std::exchange(peer.owed, {}), 0);
  }
}

std::vector<int32_t> Rounds::Impl::Missing(const std::vector<int32_t>& arrived) const {
  std::vector<bool> here(peers.size());
  for (int32_t r : arrived) here[static_cast<size_t>(r)] = true;
  std::vector<int32_t> out;
  for (int32_t r = 0; r < options.size; ++r) {
    if (!here[static_cast<size_t>(r)] && !at(r).gone) out.push_back(r);
  }
  return out;
}

// --- time

void Rounds::Impl::GateTimers() {
  if (!gate) return;
  if (!gate->late_sent && now >= gate->half) {
    gate->late_sent = true;
    for (int32_t r : gate->arrived) {
      Outgoing out;
      out.kind = Outgoing::Kind::kLate;
      out.rank = r;
      out.call_id = at(r).call_id;
      out.text = LateText(*gate);
      Send(std::move(out));
    }
  }
  if (!gate->probe_end && now >= gate->deadline) {
    gate->probe_end = now + options.probe;
    for (int32_t r : Missing(gate->arrived)) {
      at(r).probed = true;
      Outgoing out;
      out.kind = Outgoing::Kind::kProbe;
      out.rank = r;
      Send(std::move(out));
    }
  }
  if (gate->probe_end && now >= *gate->probe_end) {
    const Status verdict = AtDeadline(*gate);
    Close({*std::exchange(gate, {})}, verdict, /*prompt=*/false);
  }
}

// Once the last missing rank has answered the probe there is nothing to wait for.
void Rounds::Impl::GateHeartbeat(int32_t rank) {
  if (!std::exchange(at(rank).probed, false) || !gate || !gate->probe_end) return;
  const std::vector<int32_t> missing = Missing(gate->arrived);
  if (std::any_of(missing.begin(), missing.end(), [this](int32_t r) { return at(r).probed; })) {
    return;
  }
  gate->probe_end = now;
  GateTimers();
}

}  // namespace ckpt
