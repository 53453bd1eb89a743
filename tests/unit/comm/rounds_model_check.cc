// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The judge of the model: every message that came out, and every state.
#include <algorithm>

#include "unit/comm/rounds_model.h"
#include "util/text.h"

namespace ckpt::model {
namespace {

// The letter that tells where a rank was: i(dle), w(aiting in grace), g(ate), p(hases).
char WhereWas(const std::string& fingerprint, size_t rank) {
  size_t at = 0;
  for (size_t r = 0; r < rank; ++r) at = fingerprint.find(' ', at) + 1;
  return fingerprint[at];
}

bool Same(const Status& a, const Status& b) {
  return a.code() == b.code() && a.message() == b.message() && a.ranks().size() == b.ranks().size();
}

}  // namespace

void Explorer::Deliver(Node& n, const std::string& before, bool last_phase) {
  std::vector<Outgoing> verdicts, results;
  for (Outgoing& out : n.rounds.TakeOutgoing()) {
    if (out.kind == Outgoing::Kind::kVerdict) {
      verdicts.push_back(std::move(out));
    } else if (out.kind == Outgoing::Kind::kPhase) {
      results.push_back(std::move(out));
    } else if (out.kind == Outgoing::Kind::kCollected) {
      if (n.recipe != Recipe::kNone) Fail(n, "2: a round while another's recipe runs");
      n.recipe = Recipe::kCollected;
      n.recipe_round = out.round;
      n.recipe_phase = out.phase;
      n.age = 0;
    }
  }
  // A round ends before the next begins, but nothing says so of the order within one event.
  TakeResults(n, results, last_phase);
  TakeVerdicts(n, verdicts, before);
  for (size_t r = 0; r < n.callers.size() && !options_.delays; ++r) {
    while (!n.callers[r].mail.empty()) Read(n, r);
  }
}

void Explorer::TakeVerdicts(Node& n, const std::vector<Outgoing>& out, const std::string& before) {
  const Status* error = nullptr;
  bool ok = false;
  for (const Outgoing& v : out) {
    const auto r = static_cast<size_t>(v.rank);
    Caller& caller = n.callers[r];
    if (caller.at != At::kGate || caller.answered || caller.call_id != v.call_id) {
      return Fail(n, "2: a verdict for no call");
    }
    caller.answered = true;
    ok = ok || v.status.ok();
    // Who waits out a grace gets the verdict of an earlier round.
    if (!v.status.ok() && WhereWas(before, r) != 'w') {
      if (error && !Same(*error, v.status)) Fail(n, "2: verdicts of one round differ");
      error = &v.status;
    }
    caller.mail.push_back({/*phase_result=*/false, v.status.ok(), false, v.round});
  }
  if (ok) CheckOk(n, out);
}

void Explorer::CheckOk(Node& n, const std::vector<Outgoing>& out) {
  if (out.size() != scripts_.size()) return Fail(n, "3: OK without all ranks");
  const Step& first = scripts_[0][n.callers[0].pos];
  for (size_t r = 0; r < scripts_.size(); ++r) {
    const Caller& caller = n.callers[r];
    const Step& step = scripts_[r][caller.pos];
    const bool equal = step.op == first.op && step.step == first.step &&
                       std::string(step.content) == first.content;
    if (!out[r].status.ok() || out[r].round != out[0].round) Fail(n, "3: OK on some ranks");
    if (caller.gone || step.fails) Fail(n, "3: OK with a rank that is gone or failed");
    if (!equal) Fail(n, "3: OK for calls that differ");
  }
  if (n.open) Fail(n, "2: two rounds at once");
  n.open = true;
  n.round = out[0].round;
  n.told = Code::kOk;
  n.age = 0;
}

void Explorer::TakeResults(Node& n, const std::vector<Outgoing>& out, bool last_phase) {
  if (out.empty()) return;
  const Status& status = out[0].status;
  const bool last = last_phase || !status.ok();
  size_t here = 0;
  for (const Caller& caller : n.callers) here += caller.gone ? 0 : 1;
  if (out.size() != here) Fail(n, "2: a result is missing, or there is one too many");
  if (!n.open || out[0].round != n.round) Fail(n, "2: a result after the round's end");
  for (const Outgoing& v : out) {
    if (v.round != out[0].round || !Same(v.status, status)) Fail(n, "2: results differ");
    n.callers[static_cast<size_t>(v.rank)].mail.push_back({true, status.ok(), last, v.round});
  }
  // The recipe's own result comes with the recipe at its end.
  if (n.recipe == Recipe::kCommitting && status.code() != Code::kOutcomeUnknown) {
    Fail(n, "4: something else ended a commit that had begun");
  }
  n.told = status.code();
  n.age = 0;
  if (last) n.open = false;
}

// The oldest message reaches the rank.
void Explorer::Read(Node& n, size_t r) {
  Caller& caller = n.callers[r];
  const Mail mail = caller.mail.front();
  caller.mail.pop_front();
  if (!mail.phase_result && mail.ok) {
    caller.at = At::kVoting;
    caller.round = mail.round;
    caller.phase = 1;
  } else if (!mail.phase_result || mail.last) {
    Finish(n, r, mail.ok);
  } else {
    caller.at = At::kVoting;
    ++caller.phase;
  }
}

void Explorer::Finish(Node& n, size_t r, bool ok) {
  Caller& caller = n.callers[r];
  caller.at = At::kIdle;
  caller.answered = false;
  if (!ok && caller.tried < options_.retries) {
    ++caller.tried;
    return;
  }
  if (options_.prompt && !ok && caller.pos >= options_.settled[r]) {
    Fail(n, Cat("5: call ", caller.pos, " of rank ", r, " failed"));
  }
  caller.last_ok = ok;
  caller.tried = 0;
  ++caller.pos;
}

void Explorer::PassPhases(Node& n) {
  for (size_t r = 0; r < scripts_.size(); ++r) Vote(n, r, Status());
  Deliver(n, "", false);
  n.recipe = Recipe::kNone;
  n.rounds.Publish(n.now, n.recipe_round, n.recipe_phase, Status(), {}, /*last=*/true);
  Deliver(n, "", /*last_phase=*/true);
  if (n.open || n.told != Code::kOk) Fail(n, "2: phases without a fault failed");
}

void Explorer::CheckTimers(const Node& n) {
  const auto next = n.rounds.NextDeadline();
  constexpr int kGrace = 2;
  bool waits = n.open;
  for (const Caller& caller : n.callers) {
    if (caller.at != At::kGate || caller.answered) continue;
    waits = true;
    if (caller.waited > kGrace + options_.deadline + options_.probe) {
      Fail(n, "1: a call waits past its deadline");
    }
  }
  if (n.open && n.age > options_.stall) Fail(n, "1: a phase lasts longer than the stall limit");
  if (waits && !next) Fail(n, "1: somebody waits and no timer is armed");
  if (waits && next && *next <= n.now) Fail(n, "1: a timer lies in the past");
}

void Explorer::CheckEnd(const Node& n) {
  for (const Caller& caller : n.callers) {
    if (!options_.prompt && !n.lost && !caller.last_ok) Fail(n, "5: the second joint call failed");
  }
  if (n.rounds.Fingerprint().find_first_of("GP") != std::string::npos) {
    Fail(n, "2: a round is left");
  }
}

void Explorer::Visit(Node n) {
  std::string key = n.rounds.Fingerprint(n.now);
  for (const Caller& c : n.callers) {
    key += Cat(",", c.pos, "a", static_cast<int>(c.at), c.gone ? "x" : "", c.last_ok ? "k" : "");
    key += Cat(c.stopped ? "s" : "", c.answered ? "v" : "", c.started ? "" : "l", c.tried, "w",
               c.at == At::kGate ? c.waited : 0, "h", c.silent);
    if (c.at == At::kVoting || c.at == At::kVoted) key += Cat(c.round == n.round, c.phase);
    for (const Mail& m : c.mail) {
      key += Cat("m", m.phase_result, m.ok, m.last, m.round == n.round);
    }
  }
  key += Cat("f", n.faults, n.lost, "r", static_cast<int>(n.recipe), n.recipe_phase,
             n.recipe_round == n.round, "o", n.open, n.age, "t", static_cast<int>(n.told));
  if (seen_.insert(std::hash<std::string>()(key)).second) todo_.push_back(std::move(n));
}

void Explorer::Fail(const Node& n, const std::string& why) {
  if (!failure_.empty()) return;
  failure_ = Cat(why, " |", n.path, " | ", n.rounds.Fingerprint(n.now), "\n scripts:");
  for (const Script& script : scripts_) {
    failure_ += " [";
    for (const Step& s : script) {
      failure_ += Cat(" ", static_cast<uint32_t>(s.op), ".", s.step, s.content, s.fails ? "!" : "");
    }
    failure_ += " ]";
  }
}

}  // namespace ckpt::model
