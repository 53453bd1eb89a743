// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank of a row: what it calls, and what it tells the table about it.
#include <ctime>

#include "contract/table.h"
#include "shim/shim.h"

namespace contract {
namespace {

// One clock for all processes of the machine.
std::string Now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::to_string(static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9);
}

// "1 3 dead": ranks by condition, or the rank of the cause where nobody has a report.
std::string Named(const Outcome& o) {
  std::string text;
  for (uint32_t c = CKPT_RANK_ALIVE_ELSEWHERE; c <= CKPT_RANK_LEFT; ++c) {
    if (o.RankSet(c).empty()) continue;
    if (!text.empty()) text += ", ";
    for (int rank : o.RankSet(c)) text += std::to_string(rank) + " ";
    text += ConditionName(c);
  }
  if (text.empty() && o.cause.rank >= 0) text = std::to_string(o.cause.rank);
  return text;
}

std::string Numbers(const std::set<int>& ranks) {
  std::string text;
  for (int rank : ranks) text += std::to_string(rank) + " ";
  return text;
}

}  // namespace

const char* ConditionName(uint32_t condition) {
  switch (condition) {
    case CKPT_RANK_ALIVE_ELSEWHERE:
      return "alive elsewhere";
    case CKPT_RANK_UNRESPONSIVE:
      return "unresponsive";
    case CKPT_RANK_DEAD:
      return "dead";
    case CKPT_RANK_DISAGREES:
      return "disagrees";
    case CKPT_RANK_FAILED:
      return "failed";
    case CKPT_RANK_UNKNOWN:
      return "unknown";
    case CKPT_RANK_LEFT:
      return "left";
    default:
      return "no condition";
  }
}

Player::Player(Rank& r, const Fault& fault, const Bootstrap& bootstrap, std::string at)
    : rank(r), root(std::move(at)), fault_(fault), bootstrap_(bootstrap) {}

CtxOptions Player::Options() const {
  CtxOptions o;
  o.root = root;
  o.config = "plan.min_run=4KiB\nio.block=1MiB\nio.stall_timeout_ms=2000";
  o.timeout_ms = fault_.deadline_ms;
  o.comm = bootstrap_.comm ? bootstrap_.comm(rank) : nullptr;
  o.on_event = [self = const_cast<Player*>(this)](const ckpt_event& e) { return self->OnEvent(e); };
  return o;
}

int Player::OnEvent(const ckpt_event& event) {
  const auto once = [](std::function<void()>* hook) {
    if (const auto call = std::exchange(*hook, {})) call();
  };
  if (event.kind == CKPT_EVENT_RANK_LATE) once(&when_late);
  if (event.kind == CKPT_EVENT_PROGRESS && event.step == kStep && event.bytes_done > 0) {
    once(&when_writing);
  }
  return 0;
}

Outcome Player::Witness(const std::function<Outcome()>& call) {
  const std::string called = Now();
  const Outcome o = call();
  const std::string returned = Now();
  rank.Put("called", called);
  rank.Put("returned", returned);
  rank.Put("code", ckpt_test::StatusName(o.status));
  rank.Put("named", Named(o));
  rank.Put("ranks",
           Numbers(o.ranks.empty() && o.cause.rank >= 0 ? std::set{o.cause.rank} : o.RankSet()));
  rank.Put("text", o.message);
  rank.Notify("verdict");
  return o;
}

Outcome Player::SaveAndWitness(int64_t step) {
  return Witness([&] { return trainer->Save(step); });
}

void Player::FaultNow() { rank.Put("fault", Now()); }

void Player::WaitForVerdicts(int ranks) {
  rank.WaitFor("verdict", ranks > 0 ? ranks : static_cast<int>(fault_.get.size()));
}

void Player::Break(const std::string& rules) const {
  shim_reset(("root " + root + "\n" + rules + "\n").c_str());
}

void Player::NextRounds() {
  std::string next;
  for (const int64_t step : {kStep + 200, kStep + 201}) {
    rank.Barrier("train");
    const Outcome o = trainer->Save(step);
    next += o.ok() ? "OK " : "failed: " + o.Verdict() + " ";
  }
  rank.Put("next", next);
}

}  // namespace contract
