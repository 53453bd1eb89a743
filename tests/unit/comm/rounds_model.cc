// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What may happen next in the model; rounds_model_check.cc judges what comes of it.
#include "unit/comm/rounds_model.h"

#include <algorithm>

#include "util/text.h"

namespace ckpt::model {
namespace {

constexpr Millis kUnit{1000};  // the heartbeat; a grace is two, silence three
constexpr int kSilence = 3;
constexpr uint32_t kPhases = 2;

}  // namespace

std::string Explorer::Run(Totals* totals) {
  RoundsOptions o;
  o.size = options_.ranks;
  o.heartbeat = kUnit;
  o.unresponsive = kSilence * kUnit;
  o.probe = options_.probe * kUnit;
  o.stall_timeout = options_.stall * kUnit;
  Node root(Facts{}, Rounds(o));
  root.callers.resize(scripts_.size());
  root.now = TimePoint{} + kUnit;
  root.faults = options_.faults;
  root.rounds.Tick(root.now);
  Visit(std::move(root));
  while (!todo_.empty() && failure_.empty()) {
    Node node = std::move(todo_.back());
    todo_.pop_back();
    Expand(node);
  }
  ++totals->worlds;
  totals->states += seen_.size();
  totals->steps += steps_;
  return failure_;
}

bool Explorer::All(const Node& n, bool (Explorer::*what)(const Node&, size_t) const) const {
  for (size_t r = 0; r < scripts_.size(); ++r) {
    if (!(this->*what)(n, r)) return false;
  }
  return true;
}

void Explorer::Expand(const Node& node) {
  fingerprint_ = node.rounds.Fingerprint();
  if (All(node, &Explorer::Done) && node.recipe == Recipe::kNone) return CheckEnd(node);
  const bool all_at_last = All(node, &Explorer::AtLast);
  bool busy = false;
  for (size_t r = 0; r < scripts_.size(); ++r) busy = RankEvents(node, r, all_at_last) || busy;
  busy = RecipeEvents(node, all_at_last) || busy;
  for (size_t r = 0; r < scripts_.size() && node.faults > 0; ++r) FaultEvents(node, r, all_at_last);
  TimeEvents(node, all_at_last, busy);
}

bool Explorer::MayCall(const Node& node, size_t r, bool all_at_last) const {
  if (Done(node, r) || node.callers[r].at != At::kIdle || !node.callers[r].mail.empty()) {
    return false;
  }
  if (r == 0 && node.recipe != Recipe::kNone) return false;
  // The trainer's own collectives keep the ranks together before the last call.
  return options_.prompt || all_at_last || !AtLast(node, r);
}

// Whether this rank has something to do that is no fault.
bool Explorer::RankEvents(const Node& node, size_t r, bool all_at_last) {
  const Caller& caller = node.callers[r];
  if (caller.gone) return false;
  if (caller.stopped) {
    Try(node, "cont", r, [r](Node& n) {
      n.callers[r].stopped = false;
      n.callers[r].silent = 0;
      n.rounds.Heartbeat(n.now, static_cast<int32_t>(r), {});
    });
    return true;
  }
  bool any = false;
  if (MayCall(node, r, all_at_last)) {
    any = true;
    Try(node, "call", r, [this, r](Node& n) { MakeCall(n, r); });
  }
  if (!caller.mail.empty()) {
    any = true;
    Try(node, "read", r, [this, r](Node& n) { Read(n, r); });
  }
  if (caller.at == At::kVoting) {
    any = true;
    Try(node, "vote", r, [this, r](Node& n) { Vote(n, r, Status()); });
  }
  return any;
}

void Explorer::FaultEvents(const Node& node, size_t r, bool all_at_last) {
  const Caller& caller = node.callers[r];
  if (caller.gone || caller.stopped) return;
  if (options_.loss && r > 0) {
    Try(node, "lose", r, [this, r](Node& n) { Go(n, r, Condition::kDead); });
  }
  if (options_.leave && r > 0) {
    Try(node, "leave", r, [this, r](Node& n) { Go(n, r, Condition::kLeft); });
  }
  if (all_at_last) return;
  if (options_.votes && (caller.at == At::kVoting || caller.at == At::kVoted)) {
    Try(node, "fail", r, [this, r](Node& n) {
      --n.faults;
      Vote(n, r, Status(Code::kIo, Cat("disk of ", r)));
    });
  }
  if (options_.stop && r > 0) {
    Try(node, "stop", r, [r](Node& n) {
      --n.faults;
      n.callers[r].stopped = true;
    });
  }
}

// The recipe runs in the background: ranks, time and losses go on meanwhile.
bool Explorer::RecipeEvents(const Node& node, bool all_at_last) {
  if (node.recipe == Recipe::kNone) return false;
  const bool last = node.recipe_phase == kPhases;
  const bool may_fail = options_.votes && node.faults > 0 && !all_at_last;
  const auto fails = [this](Code code) {
    return [this, code](Node& n) {
      --n.faults;
      Publish(n, Status(code, "recipe"), /*last=*/true);
    };
  };
  if (node.recipe == Recipe::kCommitting) {
    Try(node, "renamed", 0, [this](Node& n) { Publish(n, Status(), /*last=*/true); });
    if (may_fail) Try(node, "unknown", 0, fails(Code::kOutcomeUnknown));
  } else if (last) {
    Try(node, "commit", 0, [this](Node& n) { Commit(n); });
  } else {
    Try(node, "publish", 0, [this](Node& n) { Publish(n, Status(), /*last=*/false); });
  }
  if (may_fail) Try(node, "recipe-fails", 0, fails(Code::kIo));
  return true;
}

void Explorer::TimeEvents(const Node& node, bool all_at_last, bool busy) {
  if (options_.prompt) {
    bool late = options_.late_rank >= 0;
    for (size_t r = 0; r < scripts_.size() && late; ++r) {
      const bool is_late = r == static_cast<size_t>(options_.late_rank);
      late = is_late ? !node.callers[r].started
                     : node.callers[r].at == At::kGate && node.callers[r].pos == 0;
    }
    if (busy && !late) return;
  } else if (all_at_last && busy) {
    return;  // the last call is prompt
  }
  Try(node, "wait", 0, [this](Node& n) { Wait(n, 1); });
  if (options_.pause && node.faults > 0 && !all_at_last) {
    Try(node, "pause", 0, [this](Node& n) {
      --n.faults;
      Wait(n, kSilence);
    });
  }
}

void Explorer::Try(const Node& from, const char* name, size_t r, const Event& event) {
  if (!failure_.empty()) return;
  ++steps_;
  Node node = from.Clone();
  node.path += Cat(" ", name, r);
  publishing_last_ = must_close_ = false;
  event(node);
  Deliver(node, fingerprint_, publishing_last_);
  if (must_close_ && node.open) Fail(node, "4: a rank's error did not end its round");
  if (!options_.phases && node.open) PassPhases(node);
  CheckTimers(node);
  Visit(std::move(node));
}

// --- events

void Explorer::MakeCall(Node& n, size_t r) {
  Caller& caller = n.callers[r];
  const Step& step = scripts_[r][caller.pos];
  caller.at = At::kGate;
  caller.started = true;
  caller.answered = false;
  caller.waited = 0;
  ++caller.call_id;
  Call call;
  call.op = step.op;
  call.step = step.step;
  call.timeout_ms = static_cast<uint64_t>((options_.deadline * kUnit).count());
  if (*step.content) call.fields = {{"tag", step.content}};
  n.rounds.Arrive(n.now, static_cast<int32_t>(r), caller.call_id, call,
                  step.fails ? Status(Code::kNoMemory, Cat("memory of ", r)) : Status());
}

void Explorer::Vote(Node& n, size_t r, const Status& local) {
  Caller& caller = n.callers[r];
  caller.at = At::kVoted;
  must_close_ = !local.ok() && caller.round == n.round && n.recipe != Recipe::kCommitting;
  n.rounds.Contribute(n.now, static_cast<int32_t>(r), caller.round, caller.phase, local, "");
}

void Explorer::Commit(Node& n) {
  const Status may = n.rounds.BeginCommit(n.now, n.recipe_round);
  if (!may.ok()) return Publish(n, may, /*last=*/true);
  if (n.told != Code::kOk || !n.open) Fail(n, "4: commit after an error was told");
  n.recipe = Recipe::kCommitting;
  n.age = 0;
}

void Explorer::Publish(Node& n, const Status& status, bool last) {
  // A commit that has begun takes place, unless the recipe itself gives it up.
  const bool renames = n.recipe == Recipe::kCommitting && status.ok();
  if (renames && n.told != Code::kOk && n.told != Code::kOutcomeUnknown) {
    Fail(n, "4: committed although another error than OUTCOME_UNKNOWN was told");
  }
  n.recipe = Recipe::kNone;
  publishing_last_ = last;
  n.rounds.Publish(n.now, n.recipe_round, n.recipe_phase, status, {}, last);
}

void Explorer::Go(Node& n, size_t r, Condition how) {
  --n.faults;
  n.lost = true;
  n.callers[r].gone = true;
  n.callers[r].at = At::kIdle;
  n.callers[r].mail.clear();
  const auto rank = static_cast<int32_t>(r);
  how == Condition::kDead ? n.rounds.Closed(n.now, rank) : n.rounds.Left(n.now, rank);
}

void Explorer::Wait(Node& n, int units) {
  n.now += units * kUnit;
  for (Caller& caller : n.callers) {
    if (caller.at == At::kGate && !caller.answered) ++caller.waited;
    if (caller.stopped) caller.silent = std::min(caller.silent + units, kSilence);
  }
  // What a coordinator that stood still did not hear is no stall.
  if (n.open && units == 1) ++n.age;
  n.rounds.Tick(n.now);
  // Heartbeats matter to the commit alone; without it probes are left to run out.
  for (size_t r = 0; r < n.callers.size() && options_.phases; ++r) {
    const Caller& caller = n.callers[r];
    if (caller.gone || caller.stopped) continue;
    n.rounds.Heartbeat(n.now, static_cast<int32_t>(r), {});
  }
}

}  // namespace ckpt::model
