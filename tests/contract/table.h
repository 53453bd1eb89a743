// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The contract's table: fault x bootstrap -> time to verdict, ranks named, next round. A Fault is
// what 4 real ranks do and what each of them must get; a Bootstrap is how they find each other. A
// row is one of each. Another bootstrap is one line of Bootstraps(), another fault one entry of a
// faults_*.cc. Run and checked by contract_table_test.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "process/process.h"

namespace contract {

using ckpt_test::CtxOptions;
using ckpt_test::Outcome;
using ckpt_test::Rank;
using ckpt_test::Trainer;

inline constexpr int kRanks = 4;
inline constexpr int64_t kStep = 100;  // of the call that goes wrong

// What a process says that it is. `launch`: 1 is the job, 0 an earlier one (a stale worker).
struct Claim {
  int rank = 0;
  int launch = 1;
};

struct Bootstrap {
  std::string name;
  bool every_fault;  // else those that are marked `everywhere`
  // For a process that claims this; an empty value unsets. `job` differs from row to row.
  std::function<launch::Env(const Claim&, const std::string& job)> env;
  // What goes into ckpt_init, in the rank's process; null: AUTO, by the environment.
  std::function<const ckpt_comm*(Rank&)> comm = {};
};
std::vector<Bootstrap> Bootstraps();

enum class Ends {
  kAtOnce,      // within 1 s of the fault, or of the last call that it takes
  kByDeadline,  // within the deadline and 1 s of the first call
};
enum class Next {
  kSameJob,  // the next joint save works, the second at the latest
  kNewJob,   // the job cannot go on; a new one of all ranks works in the same root
};

class Player;
struct Fault {
  std::string name;
  std::function<void(Player&)> body;  // in each rank
  Ends ends = Ends::kAtOnce;
  ckpt_status code = CKPT_OK;
  std::set<int> named = {};          // by the rank reports; where there are none, by the cause
  uint32_t condition = 0;            // CKPT_RANK_* of each rank named; 0: not looked at
  std::set<int> get = {0, 1, 2, 3};  // who gets the verdict, all alike in code and text
  std::string says = {};             // part of the text
  Next next = Next::kSameJob;
  uint64_t deadline_ms = 8000;  // of every call; io.stall_timeout_ms is 2000
  bool everywhere = false;      // over every bootstrap
  bool either_side = false;     // the reports are of those two that met first: not pinned
  bool joined = true;           // all have a context before the body begins
  std::vector<launch::Action> plan = {};
  std::vector<Claim> claims = {{0}, {1}, {2}, {3}};
};
std::vector<Fault> GateFaults();
std::vector<Fault> ArgumentFaults();
std::vector<Fault> InitFaults();
std::vector<Fault> DataFaults();
std::vector<Fault> Faults();  // all of them

const char* ConditionName(uint32_t condition);  // "dead"

// One rank of a row.
class Player {
 public:
  Player(Rank& r, const Fault& fault, const Bootstrap& bootstrap, std::string at);

  bool is(int i) const { return rank.is(i); }
  CtxOptions Options() const;
  void Join() { trainer = std::make_unique<Trainer>(rank, Options()); }
  ckpt_test::Ctx& ctx() { return trainer->ctx; }

  // The call that goes wrong. Its outcome is what the row is about.
  Outcome Witness(const std::function<Outcome()>& call);
  Outcome SaveAndWitness(int64_t step = kStep);
  // Where the fault is not the call itself: when it happens.
  void FaultNow();
  // Until all `ranks` (default: those of Fault::get) have their verdict.
  void WaitForVerdicts(int ranks = 0);
  // The rules of tests/shim for this rank's file calls in the row's root.
  void Break(const std::string& rules) const;
  // At half of the deadline of a call that lacks someone (RANK_LATE), and not before.
  std::function<void()> when_late = {};
  // When bytes of `kStep` have been written on this rank, once.
  std::function<void()> when_writing = {};
  // Two joint saves.
  void NextRounds();

  Rank& rank;
  const std::string root;
  std::unique_ptr<Trainer> trainer;

 private:
  int OnEvent(const ckpt_event& event);
  const Fault& fault_;
  const Bootstrap& bootstrap_;
};

struct Row {
  std::string fault, bootstrap;
  double seconds = -1;  // to the last verdict; -1: none
  double limit = 0;
  std::string code = {}, named = {}, next = {}, text = {};
  bool slow = false;                    // nothing is wrong but the time
  std::vector<std::string> wrong = {};  // empty: as it must be
};
// In the calling process, which must have one thread.
Row RunRow(const Bootstrap& bootstrap, const Fault& fault);
// All rows of a bootstrap, `at_once` side by side, in processes of their own. A row whose process
// dies comes back as wrong. One that was only too slow is run once more by itself, for the others'
// load is not the library's.
std::vector<Row> RunAll(const Bootstrap& bootstrap, const std::vector<Fault>& faults, int at_once);
std::string Table(const std::vector<Row>& rows);

}  // namespace contract
