// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Process tests: runs N ranks as forked children in one process group of their own and says what
// became of each. Offers Run (a lambda per rank), RunCommand (a program per rank), Scratch (a
// folder that goes away). Nothing here sleeps: ranks meet through the launcher. Covered by
// launch_test.cc.
//
//   TEST(Contract, LoneSaveNamesTheMissingRanks) {
//     launch::Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [](launch::Rank& rank) {
//       if (rank.id() == 0) rank.Notify("called");
//       rank.Barrier("end");
//     });
//     EXPECT_TRUE(r.ok()) << r.report();
//   }
#pragma once

#include <csignal>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace launch {

inline constexpr int kAllRanks = -1;
inline constexpr int kCaller = -2;
inline constexpr int kHangCode = 124;

using Env = std::map<std::string, std::string>;

// What the launcher does when a rank reports an event (Rank::Event): sends `signal` to `target`
// before the reporting rank goes on. `at_count`: only at the n-th report of that event.
struct Action {
  std::string event = {};
  int target = kAllRanks;  // a rank, kAllRanks or kCaller
  int signal = SIGKILL;
  int at_count = 1;
};
inline Action KillAllAt(std::string event) { return {std::move(event), kAllRanks, SIGKILL, 1}; }
inline Action KillAt(std::string event, int rank, int signal = SIGKILL, int at_count = 1) {
  return {std::move(event), rank, signal, at_count};
}
inline Action StopAt(std::string event, int rank) { return {std::move(event), rank, SIGSTOP, 1}; }
inline Action ContinueAt(std::string event, int rank) {
  return {std::move(event), rank, SIGCONT, 1};
}

struct Options {
  int ranks = 1;
  double deadline_s = 30;          // after it the whole group is killed and the result is a hang
  Env env = {};                    // for all ranks; wins over the launcher's own variables
  std::vector<Env> rank_env = {};  // for rank i; wins over `env`. An empty value unsets.
  std::vector<Action> plan = {};
};

// Barrier with a rank that has exited, a wait past its deadline, or a lost launcher.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The launcher as a rank sees it. Every call waits for the launcher's answer. Any thread may
// call; calls of one rank are one at a time.
class Rank {
 public:
  Rank(int id, int size, int fd, std::string folder, std::string job_id)
      : id_(id), size_(size), fd_(fd), folder_(std::move(folder)), job_id_(std::move(job_id)) {}
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  int id() const { return id_; }
  int size() const { return size_; }
  bool is(int rank) const { return id_ == rank; }
  const std::string& folder() const { return folder_; }  // shared by the ranks of this run
  const std::string& job_id() const { return job_id_; }

  // Returns when all `members` (default: all ranks) are in the barrier of that name. Throws
  // Broken if a member has exited. A name may be used again once everybody has left it.
  void Barrier(const std::string& name, const std::vector<int>& members = {});

  // Reports an event: counted, wakes WaitFor, starts the plan's actions. Returns after the
  // signals were sent.
  void Event(const std::string& name);
  void Notify(const std::string& name) { Event(name); }

  // Returns once `name` was reported `count` times, by whichever ranks. `seconds` <= 0: the run's
  // own deadline only.
  void WaitFor(const std::string& name, int count = 1, double seconds = 0);

  void Signal(int rank, int signal);                           // by way of the launcher
  void Put(const std::string& key, const std::string& value);  // Result::get; at most 60 KiB

  // A check that failed is printed to the rank's log and makes the rank exit with 1.
  bool Check(bool good, const std::string& what, const char* file = nullptr, int line = 0);
  int failures() const { return failures_; }

 private:
  std::string Ask(char kind, const std::string& a, const std::string& b, double seconds = 0);

  const int id_;
  const int size_;
  const int fd_;
  const std::string folder_;
  const std::string job_id_;
  std::mutex mu_;
  int failures_ = 0;
};

#define RANK_CHECK(rank, expression) \
  (rank).Check(static_cast<bool>(expression), #expression, __FILE__, __LINE__)

struct RankResult {
  bool exited = false;
  int exit_code = -1;    // when it exited
  int signal = 0;        // when it was killed by one
  bool by_plan = false;  // killed by an action of the plan or by Rank::Signal
  bool hung = false;     // still there at the deadline
  std::string waiting;   // at its end: "barrier \"x\"", "event \"y\"", or nothing
  std::string log;       // stdout and stderr
  std::map<std::string, std::string> values;

  bool good() const { return (exited && exit_code == 0) || (signal != 0 && by_plan && !hung); }
};

class Result {
 public:
  // Every rank returned with 0 or was killed as planned, before the deadline.
  bool ok() const { return code() == 0; }
  int code() const;  // 0, kHangCode, or 1
  bool hang() const;
  const RankResult& rank(int i) const { return ranks_.at(i); }
  int size() const { return static_cast<int>(ranks_.size()); }
  std::string get(int rank, const std::string& key) const;  // "" when there is no such value
  const std::string& log(int rank) const { return ranks_.at(rank).log; }
  const std::string& folder() const { return folder_; }  // removed by now
  double seconds() const { return seconds_; }
  std::string summary() const;  // one line: which rank ended how
  std::string report() const;   // summary and every rank's log

 private:
  friend class Launcher;
  std::vector<RankResult> ranks_;
  std::string folder_;
  double seconds_ = 0;
  double deadline_s_ = 0;
};

// Forks the ranks and runs `body` in each; its return value is the rank's exit code. The calling
// process must be single-threaded.
Result Launch(const Options& options, const std::function<int(Rank&)>& body);

// The same with googletest: EXPECT_* and ASSERT_* that fail inside a rank, failed Checks and
// exceptions give exit code 1.
Result Run(const Options& options, const std::function<void(Rank&)>& body);

// argv[0] is looked up in PATH. A program that cannot be started exits with 127.
Result RunCommand(const Options& options, const std::vector<std::string>& argv);

// A folder of a test, removed with its contents at the end of the scope.
class Scratch {
 public:
  explicit Scratch(const std::string& stem = "ckpt-test");
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace launch
