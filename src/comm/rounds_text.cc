// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What people read when a round fails: which ranks, what they say, what they are doing.  The words
// fit a terminal for any number of ranks; the rank reports of a Status are complete.
// Test: tests/unit/comm/rounds_test.cc, rounds_failures_test.cc
#include <algorithm>

#include "comm/rounds_impl.h"
#include "util/text.h"

namespace ckpt {

using namespace rounds;  // NOLINT: the private half of this class

namespace {

constexpr size_t kSpelledOut = 3;  // ranks of one condition told in full
constexpr size_t kMaxSides = 4;
constexpr size_t kMaxCites = 400;  // bytes

std::string Seconds(Clock::duration d) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(d).count());
}

std::string OnHost(const Peer& peer, const std::string& home) {
  return peer.info.host == home ? "" : Cat(" on host ", Printable(peer.info.host, 64));
}

const char* Words(Condition condition) {
  switch (condition) {
    case Condition::kAliveElsewhere:
      return "alive elsewhere";
    case Condition::kUnresponsive:
      return "unresponsive";
    case Condition::kDead:
      return "dead";
    case Condition::kDisagrees:
      return "disagrees";
    case Condition::kFailed:
      return "failed";
    case Condition::kUnknown:
      return "unknown";
    case Condition::kLeft:
      return "left";
  }
  return "unknown";
}

// The worst first: it is most likely the cause of the others.
int Severity(Condition condition) {
  switch (condition) {
    case Condition::kDead:
      return 0;
    case Condition::kLeft:
      return 1;
    case Condition::kUnresponsive:
      return 2;
    default:
      return 3;
  }
}

void SortBySeverity(std::vector<RankReport>& reports) {
  std::stable_sort(reports.begin(), reports.end(), [](const RankReport& a, const RankReport& b) {
    return Severity(a.condition) < Severity(b.condition);
  });
}

Cause CauseAt(int32_t rank, std::string field = "") {
  Cause cause;
  cause.rank = rank;
  cause.field = std::move(field);
  return cause;
}

}  // namespace

std::string Describe(const Call& call) {
  switch (call.op) {
    case Op::kSave:
      return Cat("save(step=", call.step, ")");
    case Op::kAdvise:
      return Cat("advise(step=", call.step, ")");
    case Op::kFinalize:
      return "finalize()";
    case Op::kLoad:
      for (const Field& f : call.fields) {
        if (f.name == "step") return Cat("load(step=", Printable(f.value, 40), ")");
      }
      return "load()";
  }
  return Cat("operation ", static_cast<uint32_t>(call.op));
}

Condition Rounds::Impl::Life(int32_t rank) const {
  if (at(rank).gone) return *at(rank).gone;
  return Silent(rank) ? Condition::kUnresponsive : Condition::kAliveElsewhere;
}

RankReport Rounds::Impl::Report(int32_t rank, Condition condition) const {
  const Peer& peer = at(rank);
  RankReport out;
  out.rank = rank;
  out.condition = condition;
  out.heartbeat_age_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - peer.heard).count());
  out.host = peer.info.host;
  out.phase = peer.info.phase;
  out.phase_step = peer.info.phase_step;
  out.doing = peer.info.doing;
  out.last_call = peer.info.last_call;
  return out;
}

std::string Rounds::Impl::Detail(const RankReport& report) const {
  const Peer& peer = at(report.rank);
  std::string out = Cat("rank ", report.rank, OnHost(peer, at(0).info.host), ": ");
  switch (report.condition) {
    case Condition::kDead:
      out += Cat("dead, connection lost ", Seconds(now - peer.gone_at), " ago");
      break;
    case Condition::kLeft:
      out += Cat("left, context freed or finalized ", Seconds(now - peer.gone_at), " ago");
      break;
    case Condition::kUnresponsive:
      out += Cat("unresponsive, silent for ", Seconds(now - peer.heard));
      break;
    default:
      out += Words(report.condition);
  }
  if (!report.phase.empty()) {
    out += Cat(", phase \"", Printable(report.phase, 64), "\"");
    if (report.phase_step >= 0) out += Cat(" step ", report.phase_step);
  }
  if (!report.doing.empty()) out += Cat(", ", Printable(report.doing, 120));
  if (!report.last_call.empty()) out += Cat(", last call ", Printable(report.last_call, 100));
  return out;
}

// REQUIRES: `reports` are grouped by condition.
std::string Rounds::Impl::Details(const std::vector<RankReport>& reports) const {
  std::string out;
  auto add = [&out](const std::string& text) { out += out.empty() ? text : Cat("; ", text); };
  for (size_t i = 0; i < reports.size();) {
    const Condition condition = reports[i].condition;
    size_t end = i;
    while (end < reports.size() && reports[end].condition == condition) ++end;
    // One more is spelled out rather than announced.
    const size_t spelled = end - i <= kSpelledOut + 1 ? end - i : kSpelledOut;
    for (size_t j = 0; j < spelled; ++j) add(Detail(reports[i + j]));
    std::vector<int32_t> rest;
    for (size_t j = i + spelled; j < end; ++j) rest.push_back(reports[j].rank);
    if (!rest.empty()) add(Cat(RankSet(rest), ": ", Words(condition)));
    i = end;
  }
  return out;
}

Status Rounds::Impl::AtDeadline(const Gate& g) const {
  std::vector<RankReport> reports;
  for (int32_t r : Missing(g.arrived)) reports.push_back(Report(r, Life(r)));
  SortBySeverity(reports);
  std::string text = Cat(Describe(g.call), ": ", g.arrived.size(), " of ", options.size,
                         " ranks arrived in ", Seconds(now - g.opened), " (", RankSet(g.arrived),
                         "); missing: ", Details(reports), Printable(g.cites, kMaxCites));
  const Cause cause = CauseAt(reports.front().rank);
  return Status(Code::kParticipants, std::move(text), cause).WithRanks(std::move(reports));
}

Status Rounds::Impl::GoneStatus(const Call& call) const {
  std::vector<RankReport> reports;
  for (int32_t r = 0; r < options.size; ++r) {
    if (at(r).gone) reports.push_back(Report(r, *at(r).gone));
  }
  SortBySeverity(reports);
  const Cause cause = CauseAt(reports.front().rank);
  return Status(Code::kParticipants, Cat(Describe(call), ": ", Details(reports)), cause)
      .WithRanks(std::move(reports));
}

// `sides` in order of their first arrival.  The fewest are taken for the ones in error; of two
// equally few, the later.
Status Rounds::Impl::Disagree(std::string text, std::string field,
                              const std::vector<Side>& sides) const {
  auto fewer = [](const Side& a, const Side& b) { return a.ranks.size() < b.ranks.size(); };
  const auto most = std::max_element(sides.begin(), sides.end(), fewer);
  const auto fewest = std::min_element(sides.rbegin(), sides.rend(), fewer);
  std::vector<int32_t> ranks;
  for (auto side = sides.begin(); side != sides.end(); ++side) {
    if (side != most) ranks.insert(ranks.end(), side->ranks.begin(), side->ranks.end());
  }
  std::sort(ranks.begin(), ranks.end());
  std::vector<RankReport> reports;
  for (int32_t r : ranks) reports.push_back(Report(r, Condition::kDisagrees));
  const Cause cause = CauseAt(fewest->ranks.front(), std::move(field));
  return Status(Code::kMismatch, std::move(text), cause).WithRanks(std::move(reports));
}

Status Rounds::Impl::FieldMismatch(const Gate& g) const {
  for (size_t i = 0;; ++i) {
    std::vector<Side> sides;
    std::string name;
    for (int32_t r : g.arrived) {
      const Field field = FieldAt(at(r).call, i);
      if (name.empty()) name = field.name;
      // Ranks that do not even name the same argument disagree on it.
      const std::string value = field.name == name   ? Cat("\"", Printable(field.value, 80), "\"")
                                : field.name.empty() ? std::string("(not given)")
                                                     : Cat("(", Printable(field.name, 40), ")");
      auto side = std::find_if(sides.begin(), sides.end(), [&](const Side& s) {
        return s.value == value && FieldAt(at(s.ranks[0]).call, i).value == field.value;
      });
      if (side == sides.end()) side = sides.insert(sides.end(), Side{value, {}});
      side->ranks.push_back(r);
    }
    if (sides.size() < 2) continue;
    std::string text = Cat(Describe(g.call), ": ", Printable(name, 80), " differs: ");
    for (size_t s = 0; s < std::min(sides.size(), kMaxSides); ++s) {
      text += Cat(s > 0 ? ", " : "", sides[s].value, " on ", RankSet(sides[s].ranks));
    }
    if (sides.size() > kMaxSides) text += Cat(" and ", sides.size() - kMaxSides, " more values");
    return Disagree(std::move(text), name, sides);
  }
}

Status Rounds::Impl::Behind(const Gate& lower, const Gate& higher, bool lower_first) const {
  const Side low{"", lower.arrived}, high{"", higher.arrived};
  return Disagree(Cat(Describe(lower.call), " on ", RankSet(lower.arrived), " is behind ",
                      Describe(higher.call), " on ", RankSet(higher.arrived),
                      Printable(lower.cites, kMaxCites)),
                  "step",
                  lower_first ? std::vector<Side>{low, high} : std::vector<Side>{high, low});
}

Status Rounds::Impl::OtherOperation(const Gate& first, const Gate& second) const {
  return Disagree(
      Cat("different operations: ", Describe(first.call), " on ", RankSet(first.arrived), ", ",
          Describe(second.call), " on ", RankSet(second.arrived)),
      "operation", {{"", first.arrived}, {"", second.arrived}});
}

// An error that `rank` brings, as everybody gets it.
Status Rounds::Impl::Failed(int32_t rank, const Status& local) const {
  const std::string& host = at(rank).info.host;
  std::string text = local.message();
  if (local.cause().rank < 0) {
    text += Cat(" (rank ", rank, host.empty() ? "" : Cat(" on host ", Printable(host, 64)), ")");
  }
  Status out = local.WithMessage(std::move(text)).WithRank(rank);
  if (!out.ranks().empty()) return out;
  return out.WithRanks({Report(rank, Condition::kFailed)});
}

// REQUIRES: `ranks` is not empty, the longest stalled first.
Status Rounds::Impl::Stalled(const std::vector<int32_t>& ranks) const {
  std::vector<RankReport> reports;
  std::string text = Cat(Describe(phases->call), ": ");
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int32_t r = ranks[i];
    const Condition life = Life(r);
    reports.push_back(Report(r, life == Condition::kAliveElsewhere ? Condition::kFailed : life));
    if (i > kSpelledOut) continue;
    const auto& track = phases->tracks[static_cast<size_t>(r)];
    text += Cat(i > 0 ? "; " : "", "rank ", r, ": ",
                track.activity.empty() ? "no progress" : Printable(track.activity, 200), " for ",
                Seconds(now - track.progress), life == Condition::kUnresponsive ? ", silent" : "");
  }
  if (ranks.size() > kSpelledOut + 1) {
    text += Cat("; ", ranks.size() - kSpelledOut - 1, " more ranks without progress");
  }
  Code code = Code::kIo;
  if (phases->stage == Phases::Stage::kCommitting) {
    code = Code::kOutcomeUnknown;
    text += "; the checkpoint may or may not have been committed";
  }
  return Status(code, std::move(text), CauseAt(ranks.front())).WithRanks(std::move(reports));
}

Status Rounds::Impl::CommitRefused(const std::vector<int32_t>& silent) const {
  std::vector<RankReport> reports;
  for (int32_t r : silent) reports.push_back(Report(r, Condition::kUnresponsive));
  const std::string why = silent.front() == 0 ? Cat("rank 0 stood still for ", Seconds(phases->gap),
                                                    " since the last vote")
                                              : Details(reports);
  return Status(Code::kParticipants, Cat(Describe(phases->call), ": not committed: ", why),
                CauseAt(silent.front()))
      .WithRanks(std::move(reports));
}

std::string Rounds::Impl::LateText(const Gate& g) const {
  return Cat(Describe(g.call), ": waiting for ", RankSet(Missing(g.arrived)), " since ",
             Seconds(now - g.opened), " (", g.arrived.size(), " of ", options.size, " arrived)");
}

}  // namespace ckpt
