// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Model check of the contract (src/comm/rounds.h): ranks run every script of a few stray calls, and
// every interleaving of their calls with the passing of time, a lost rank and local errors is
// explored on the real class.  Afterwards all ranks are in step for two joint saves.  Claims:
//   - nobody is stuck: whoever waits, a timer is armed for it;
//   - every call gets one verdict, and the ranks of a round get the same;
//   - whatever happened before, the second joint save succeeds on all.
// CKPT_MODEL_LONG=1 explores larger worlds (minutes).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "comm/rounds.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr Millis kUnit{1000};  // the heartbeat; a grace is two

struct Step {
  Op op;
  int64_t step;
  bool fails = false;  // the rank brings a local error
};
using Script = std::vector<Step>;

struct Options {
  int32_t ranks = 2;
  size_t strays = 2;  // at most, for each rank
  bool local_errors = false;
  bool loss = false;  // one rank may lose its connection at any time
  int retries = 0;    // of every failed call
  int deadline = 2;   // units
  int probe = 0;      // units
};

const Step kFirstJoint{Op::kSave, 8}, kLastJoint{Op::kSave, 9};

struct Caller {
  size_t pos = 0;
  int tried = 0;
  bool pending = false, lost = false, last_ok = false;
  uint64_t call_id = 0;
};

struct Node {
  Rounds rounds;
  std::vector<Caller> callers;
  TimePoint now;
  bool loss_used = false;
  std::string path;

  Node Clone() const { return {rounds.Clone(), callers, now, loss_used, path}; }
};

class Explorer {
 public:
  Explorer(const Options& options, std::vector<Script> scripts)
      : options_(options), scripts_(std::move(scripts)) {
    for (Script& script : scripts_) script.insert(script.end(), {kFirstJoint, kLastJoint});
  }

  // The number of states; `failure` gets the path to a state that breaks a claim.
  size_t Run(std::string* failure) {
    RoundsOptions o;
    o.size = options_.ranks;
    o.heartbeat = kUnit;
    o.unresponsive = 3 * kUnit;
    o.probe = options_.probe * kUnit;
    Node root{Rounds(o), std::vector<Caller>(scripts_.size()), TimePoint{} + kUnit, false, ""};
    root.rounds.Tick(root.now);
    Visit(std::move(root));
    while (!todo_.empty() && failure_.empty()) {
      Node node = std::move(todo_.back());
      todo_.pop_back();
      Expand(node);
    }
    *failure = failure_;
    return seen_.size();
  }

 private:
  bool Done(const Node& node, size_t r) const {
    return node.callers[r].lost || node.callers[r].pos == scripts_[r].size();
  }
  bool AtLast(const Node& node, size_t r) const {
    return node.callers[r].lost || node.callers[r].pos + 1 >= scripts_[r].size();
  }

  void Expand(const Node& node) {
    bool all_done = true, all_at_last = true;
    for (size_t r = 0; r < scripts_.size(); ++r) {
      all_done = all_done && Done(node, r);
      all_at_last = all_at_last && AtLast(node, r);
    }
    if (all_done) return CheckEnd(node);
    bool may_call = false;
    for (size_t r = 0; r < scripts_.size(); ++r) {
      if (Done(node, r) || node.callers[r].pending) continue;
      // The trainer's own collectives keep the ranks together between the joint saves.
      if (AtLast(node, r) && !all_at_last) continue;
      may_call = true;
      Try(node, Cat("call", r), [&](Node& n) { MakeCall(n, r); });
    }
    if (options_.loss && !node.loss_used) {
      for (size_t r = 1; r < scripts_.size(); ++r) {
        Try(node, Cat("lose", r), [&](Node& n) { Lose(n, r); });
      }
    }
    // The last joint call is prompt.
    if (all_at_last && may_call) return;
    Try(node, "wait", [&](Node& n) {
      n.now += kUnit;
      n.rounds.Tick(n.now);
    });
  }

  void MakeCall(Node& n, size_t r) {
    Caller& caller = n.callers[r];
    const Step& step = scripts_[r][caller.pos];
    caller.pending = true;
    ++caller.call_id;
    Call call;
    call.op = step.op;
    call.step = step.step;
    call.timeout_ms = static_cast<uint64_t>((options_.deadline * kUnit).count());
    n.rounds.Arrive(n.now, static_cast<int32_t>(r), caller.call_id, call,
                    step.fails ? Status(Code::kNoMemory, "local") : Status());
  }

  void Lose(Node& n, size_t r) {
    n.loss_used = true;
    n.callers[r].lost = true;
    n.callers[r].pending = false;
    n.rounds.Closed(n.now, static_cast<int32_t>(r));
  }

  void Try(const Node& from, const std::string& name, const std::function<void(Node&)>& event) {
    Node node = from.Clone();
    node.path += Cat(" ", name);
    const std::string before = from.rounds.Fingerprint();
    event(node);
    Deliver(node, before);
    Visit(std::move(node));
  }

  // The letter that tells where a rank was: i(dle), w(aiting in grace), g(ate), p(hases).
  static char WhereWas(const std::string& fingerprint, size_t rank) {
    size_t at = 0;
    for (size_t r = 0; r < rank; ++r) at = fingerprint.find(' ', at) + 1;
    return fingerprint[at];
  }

  void Deliver(Node& node, const std::string& before) {
    std::vector<Outgoing> verdicts;
    for (Outgoing& out : node.rounds.TakeOutgoing()) {
      if (out.kind == Outgoing::Kind::kVerdict) verdicts.push_back(std::move(out));
    }
    size_t ok = 0;
    const Status* error = nullptr;
    for (const Outgoing& v : verdicts) {
      const size_t r = static_cast<size_t>(v.rank);
      Caller& caller = node.callers[r];
      if (!caller.pending || caller.call_id != v.call_id) return Fail(node, "verdict for no call");
      caller.pending = false;
      if (v.status.ok()) ++ok;
      if (v.status.ok() && v.round != verdicts[0].round && ok > 1) Fail(node, "two rounds at once");
      // Who waits out a grace gets the verdict of an earlier round.
      if (!v.status.ok() && WhereWas(before, r) == 'g') {
        if (error && error->message() != v.status.message()) Fail(node, "verdicts differ");
        error = &v.status;
      }
      Finish(node, r, v.status.ok());
    }
    if (ok != 0 && ok != scripts_.size()) Fail(node, "OK on some");
    if (ok != 0) EndPhases(node, verdicts.back().round);
    CheckTimer(node);
  }

  void Finish(Node& node, size_t r, bool ok) {
    Caller& caller = node.callers[r];
    if (!ok && caller.tried < options_.retries) {
      ++caller.tried;
      return;
    }
    caller.last_ok = ok;
    caller.tried = 0;
    ++caller.pos;
  }

  void EndPhases(Node& node, uint64_t round) {
    for (size_t r = 0; r < scripts_.size(); ++r) {
      node.rounds.Contribute(node.now, static_cast<int32_t>(r), round, 1, Status(), "");
    }
    node.rounds.Publish(node.now, round, 1, Status(), {}, /*last=*/true);
    size_t results = 0;
    for (const Outgoing& out : node.rounds.TakeOutgoing()) {
      if (out.kind == Outgoing::Kind::kPhase && out.status.ok()) ++results;
    }
    if (results != scripts_.size()) Fail(node, "phase result missing");
  }

  void CheckTimer(const Node& node) {
    for (const Caller& caller : node.callers) {
      const auto next = node.rounds.NextDeadline();
      if (caller.pending && !next) Fail(node, "STUCK");
      if (caller.pending && next && *next <= node.now) Fail(node, "timer in the past");
    }
  }

  void CheckEnd(const Node& node) {
    for (const Caller& caller : node.callers) {
      if (!caller.lost && caller.last_ok == node.loss_used) {
        Fail(node, node.loss_used ? "OK with a lost rank" : "the last joint save failed");
      }
    }
    const std::string state = node.rounds.Fingerprint();
    if (state.find_first_of("GP") != std::string::npos) Fail(node, "a round is left");
  }

  void Visit(Node node) {
    std::string key = node.rounds.Fingerprint(node.now);
    for (const Caller& c : node.callers) {
      key +=
          Cat(",", c.pos, c.pending ? "p" : "", c.lost ? "x" : "", c.last_ok ? "k" : "", c.tried);
    }
    if (seen_.insert(std::hash<std::string>()(key)).second) todo_.push_back(std::move(node));
  }

  void Fail(const Node& node, const std::string& why) {
    if (!failure_.empty()) return;
    failure_ = Cat(why, ":", node.path, " | ", node.rounds.Fingerprint(node.now), "\n scripts:");
    for (const Script& script : scripts_) {
      failure_ += " [";
      for (const Step& s : script) {
        failure_ += Cat(" ", static_cast<uint32_t>(s.op), ".", s.step, s.fails ? "!" : "");
      }
      failure_ += " ]";
    }
  }

  const Options options_;
  std::vector<Script> scripts_;
  std::vector<Node> todo_;
  std::unordered_set<size_t> seen_;
  std::string failure_;
};

// All scripts of at most `n` calls.
std::vector<Script> Scripts(size_t n, bool local_errors) {
  std::vector<Step> alphabet = {{Op::kSave, 1}, {Op::kSave, 2}, {Op::kLoad, -1}};
  if (local_errors) alphabet.insert(alphabet.end(), {{Op::kSave, 1, true}, {Op::kLoad, -1, true}});
  std::vector<Script> all = {{}};
  for (size_t from = 0, length = 0; length < n; ++length) {
    const size_t to = all.size();
    for (; from < to; ++from) {
      for (const Step& step : alphabet) {
        Script longer = all[from];
        longer.push_back(step);
        all.push_back(std::move(longer));
      }
    }
  }
  return all;
}

// The ranks are alike, so that every multiset of scripts is tried once; rank 0 is never lost, which
// makes a difference only there.
void Explore(const char* name, const Options& options) {
  const std::vector<Script> scripts = Scripts(options.strays, options.local_errors);
  const auto began = Clock::now();
  size_t states = 0, worlds = 0;
  std::vector<size_t> pick(static_cast<size_t>(options.ranks));
  std::function<void(size_t)> choose = [&](size_t r) {
    if (::testing::Test::HasFailure()) return;
    if (r == pick.size()) {
      std::vector<Script> chosen;
      for (size_t i : pick) chosen.push_back(scripts[i]);
      std::string failure;
      states += Explorer(options, std::move(chosen)).Run(&failure);
      ++worlds;
      EXPECT_EQ(failure, "");
      return;
    }
    const bool ordered = r > (options.loss ? 1u : 0u);
    for (pick[r] = ordered ? pick[r - 1] : 0; pick[r] < scripts.size(); ++pick[r]) choose(r + 1);
  };
  choose(0);
  std::printf("%-40s %8zu worlds %9zu states %6.1f s\n", name, worlds, states,
              std::chrono::duration<double>(Clock::now() - began).count());
}

bool Long() { return std::getenv("CKPT_MODEL_LONG") != nullptr; }

TEST(RoundsModel, TwoRanksWithStrayCallsAreBackInStepAtTheSecondJointSave) {
  Explore("2 ranks, deadline after grace", {.strays = Long() ? 3u : 2u, .deadline = 4});
  Explore("2 ranks, deadline with grace", {.strays = 2, .deadline = 2, .probe = 1});
  Explore("2 ranks, deadline before grace", {.strays = 2, .deadline = 1});
}

TEST(RoundsModel, ThreeRanksWithStrayCallsAreBackInStepAtTheSecondJointSave) {
  Explore("3 ranks, deadline after grace", {.ranks = 3, .strays = Long() ? 2u : 1u, .deadline = 3});
  Explore("3 ranks, deadline before grace", {.ranks = 3, .strays = 1, .deadline = 1});
}

TEST(RoundsModel, LocalErrorsPoisonNoLaterJointSave) {
  Explore("2 ranks, local errors", {.strays = 2, .local_errors = true, .deadline = 3});
  Explore("2 ranks, local errors, quick deadline",
          {.strays = Long() ? 2u : 1u, .local_errors = true, .deadline = 1, .probe = 1});
  Explore("2 ranks, local errors, slow deadline",
          {.strays = Long() ? 2u : 1u, .local_errors = true, .deadline = 5});
  Explore("3 ranks, local errors", {.ranks = 3, .strays = 1, .local_errors = true, .deadline = 2});
}

TEST(RoundsModel, ALostRankLeavesNobodyStuck) {
  Explore("2 ranks, one lost", {.strays = 2, .loss = true, .deadline = 3});
  Explore("3 ranks, one lost", {.ranks = 3, .strays = 1, .loss = true, .deadline = 2});
}

TEST(RoundsModel, OneRetryOfEveryFailedCallStillEndsInStep) {
  Explore("2 ranks, one retry", {.strays = 2, .retries = 1, .deadline = 3});
  Explore("3 ranks, one retry",
          {.ranks = 3, .strays = Long() ? 1u : 0u, .retries = 1, .deadline = 3});
}

}  // namespace
}  // namespace ckpt
