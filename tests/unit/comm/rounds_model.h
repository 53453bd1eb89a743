// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Model check of the contract: a few ranks run scripts of calls against the real class Rounds, and
// every interleaving of what they, the network, the recipe and time may do is explored.  States
// that are equal but for the way to them are explored once.
//
// What a rank sends is met by the coordinator in any order with what the others send; what the
// coordinator sends can lie undelivered for any time (Options::delays), so that ranks act on old
// news.  Rank 0 is the coordinator's own process: its loss is no matter of Rounds.
//
// Invariants, each checked in every state (kInvariants has them as printed).
#ifndef CKPT_TESTS_UNIT_COMM_ROUNDS_MODEL_H_
#define CKPT_TESTS_UNIT_COMM_ROUNDS_MODEL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "comm/rounds.h"

namespace ckpt::model {

inline constexpr const char* kInvariants =
    "invariants of the model check, in every state:\n"
    "  1 nobody waits past its deadline: a timer ahead is armed for whoever waits, a call has its\n"
    "    verdict within grace + deadline + probe, a phase its result within the stall limit\n"
    "  2 one verdict per call and per round, equal on all ranks of the round; nothing after it\n"
    "  3 OK only if all N have arrived, none gone or failed, with equal operation, step, content\n"
    "  4 no commit after an error was told; a rank's error before it ends the round; once it has\n"
    "    begun only its own result or OUTCOME_UNKNOWN ends it\n"
    "  5 after any finite number of faulty calls the second call that all make equally succeeds\n"
    "    at the latest, unless a rank is dead or gone; then none does\n";

struct Step {
  Op op;
  int64_t step;
  bool fails = false;        // the rank brings a local error
  const char* content = "";  // what must be equal
};
using Script = std::vector<Step>;

struct Options {
  int32_t ranks = 2;
  size_t strays = 2;  // at most, for each rank
  bool local_errors = false;
  bool contents = false;  // strays may differ in content
  int retries = 0;        // of every failed call
  // In units:
  int deadline = 2, probe = 0, stall = 3;

  int faults = 0;       // at most, of the kinds that follow
  bool loss = false;    // a rank >= 1 dies
  bool leave = false;   // a rank >= 1 frees its context
  bool votes = false;   // a rank votes an error, or has one after its vote; the recipe fails
  bool stop = false;    // a rank >= 1 stands still (no heartbeats, no calls), for any time
  bool pause = false;   // the coordinator stands still for 3 units
  bool phases = false;  // two phases, the second with a commit; otherwise they pass at once
  bool delays = false;  // messages lie undelivered

  // Without the trainer's collectives that bring the ranks together before the last call: all are
  // prompt, and all calls from index `settled` on must succeed.
  bool prompt = false;
  int late_rank = -1;             // may start late, at most until the others' first call has failed
  std::vector<size_t> settled{};  // of each rank's script
};

struct Totals {
  size_t worlds = 0, states = 0, steps = 0;  // steps: events tried in all states
};

class Explorer {
 public:
  // `scripts`: one per rank, the joint calls included; they end alike.
  Explorer(const Options& options, std::vector<Script> scripts)
      : options_(options), scripts_(std::move(scripts)) {}

  // Adds to `totals`.  Empty, or the invariant that broke and a way to it.
  std::string Run(Totals* totals);

 private:
  enum class At { kIdle, kGate, kVoting, kVoted };
  struct Mail {
    bool phase_result = false, ok = false, last = false;
    uint64_t round = 0;
  };
  struct Caller {
    size_t pos = 0;
    int tried = 0, waited = 0, silent = 0;
    At at = At::kIdle;
    bool answered = false, started = false;
    bool gone = false, stopped = false, last_ok = false;
    uint64_t call_id = 0, round = 0;
    uint32_t phase = 0;
    std::deque<Mail> mail;
  };
  enum class Recipe { kNone, kCollected, kCommitting };
  struct Facts {  // all of a state but the class under test
    std::vector<Caller> callers;
    TimePoint now{};
    int faults = 0;
    bool lost = false;
    Recipe recipe = Recipe::kNone;
    uint64_t recipe_round = 0;
    uint32_t recipe_phase = 0;
    // The round that passed its gate last.
    uint64_t round = 0;
    int age = 0;  // units since its phase, or the recipe's turn, began
    bool open = false;
    Code told = Code::kOk;  // the error that its ranks got
    std::string path;
  };
  struct Node : Facts {
    Node(Facts facts, Rounds r) : Facts(std::move(facts)), rounds(std::move(r)) {}
    Node Clone() const { return {*this, rounds.Clone()}; }
    Rounds rounds;
  };
  using Event = std::function<void(Node&)>;

  bool Done(const Node& n, size_t r) const {
    return n.callers[r].gone || n.callers[r].pos == scripts_[r].size();
  }
  bool AtLast(const Node& n, size_t r) const {
    return n.callers[r].gone || n.callers[r].pos + 1 >= scripts_[r].size();
  }
  bool All(const Node& n, bool (Explorer::*what)(const Node&, size_t) const) const;

  // --- rounds_model.cc: what may happen
  void Expand(const Node& node);
  bool RankEvents(const Node& node, size_t r, bool all_at_last);
  void FaultEvents(const Node& node, size_t r, bool all_at_last);
  bool RecipeEvents(const Node& node, bool all_at_last);
  void TimeEvents(const Node& node, bool all_at_last, bool busy);
  bool MayCall(const Node& node, size_t r, bool all_at_last) const;
  void Try(const Node& from, const char* name, size_t r, const Event& event);
  void MakeCall(Node& n, size_t r);
  void Vote(Node& n, size_t r, const Status& local);
  void Commit(Node& n);
  void Publish(Node& n, const Status& status, bool last);
  void Go(Node& n, size_t r, Condition how);
  void Wait(Node& n, int units);

  // --- rounds_model_check.cc: what came out of it
  void Deliver(Node& n, const std::string& before, bool last_phase);
  void TakeVerdicts(Node& n, const std::vector<Outgoing>& out, const std::string& before);
  void CheckOk(Node& n, const std::vector<Outgoing>& out);
  void TakeResults(Node& n, const std::vector<Outgoing>& out, bool last_phase);
  void Read(Node& n, size_t r);
  void Finish(Node& n, size_t r, bool ok);
  void PassPhases(Node& n);
  void CheckTimers(const Node& n);
  void CheckEnd(const Node& n);
  void Visit(Node n);
  void Fail(const Node& n, const std::string& why);

  const Options options_;
  const std::vector<Script> scripts_;
  std::string fingerprint_;  // without times, of the node that is expanded
  std::vector<Node> todo_;
  std::unordered_set<size_t> seen_;
  size_t steps_ = 0;
  bool publishing_last_ = false, must_close_ = false;
  std::string failure_;
};

}  // namespace ckpt::model

#endif  // CKPT_TESTS_UNIT_COMM_ROUNDS_MODEL_H_
