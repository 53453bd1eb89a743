// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The first performance goal: a synchronous save by 4 ranks against one process that writes as many
// bytes with write(2) and fsync, in interleaved rounds on the same file system.  Started by
// tools/bench --first; docs in --help.  Exit 0 good, 1 goal missed (with --check), 2 could not run.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/first_rank.h"

namespace bench {
namespace {

constexpr double kGoalRatio = 1.05;
constexpr uint64_t kGoalExtra = 64 << 20;
constexpr int kDeadlineMs = 300'000;  // a rank that is silent for so long ends the run

struct Options {
  std::string library, dir = "/tmp", layout = "both", config;
  uint64_t mib = 512;
  int ranks = 4, rounds = 7;
  bool check = false, baseline_only = false;
};

class Ranks {
 public:
  explicit Ranks(const Job& job) : job_(job) {
    for (int rank = 0; rank < job.ranks; ++rank) Fork(rank);
    Collect();
  }
  ~Ranks() {
    for (const Child& child : children_) ::kill(child.pid, SIGKILL);
    for (const Child& child : children_) ::waitpid(child.pid, nullptr, 0);
    for (const Child& child : children_) ::close(child.socket);
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  std::vector<Answer> Save(int64_t step) {
    Tell(step);
    return Collect();
  }

  void Finish() {
    Tell(-1);
    for (Child& child : children_) {
      int status = 0;
      ::waitpid(child.pid, &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Fail("a rank did not end well");
    }
    for (const Child& child : children_) ::close(child.socket);
    children_.clear();
  }

 private:
  struct Child {
    pid_t pid;
    int socket;
  };

  void Fork(int rank) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) Fail("socketpair");
    const pid_t pid = ::fork();
    if (pid < 0) Fail("fork");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      for (const Child& child : children_) ::close(child.socket);
      ServeRank(job_, rank, ends[1]);
    }
    ::close(ends[1]);
    children_.push_back({pid, ends[0]});
  }

  void Tell(int64_t step) {
    const Order order = {step};
    for (const Child& child : children_) {
      if (::send(child.socket, &order, sizeof order, MSG_NOSIGNAL) != sizeof order) Lost();
    }
  }

  std::vector<Answer> Collect() {
    std::vector<Answer> answers(children_.size());
    for (size_t i = 0; i < children_.size(); ++i) {
      pollfd wait = {children_[i].socket, POLLIN, 0};
      if (::poll(&wait, 1, kDeadlineMs) != 1) Lost();
      const ssize_t got = ::recv(children_[i].socket, &answers[i], sizeof(Answer), MSG_WAITALL);
      if (got != sizeof(Answer)) Lost();
    }
    return answers;
  }

  [[noreturn]] void Lost() {
    for (const Child& child : children_) ::kill(child.pid, SIGKILL);
    errno = 0;
    Fail("a rank has ended or is silent; its own words are above");
  }

  const Job job_;
  std::vector<Child> children_;
};

struct Round {
  double plain, save;
  uint64_t extra;
};

double Seconds(const std::vector<Answer>& answers) {
  double start = answers[0].start, end = answers[0].end;
  for (const Answer& a : answers) start = std::min(start, a.start), end = std::max(end, a.end);
  return end - start;
}

uint64_t Extra(const std::vector<Answer>& answers) {
  uint64_t extra = 0;
  for (const Answer& a : answers) extra = std::max(extra, a.extra_bytes);
  return extra;
}

// Both sides start with nothing left to write: neither pays for the other's removal.
void Settle(const std::string& root) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    const std::string name = entry.path().filename();
    if (name.rfind("step-", 0) == 0) std::filesystem::remove_all(entry.path());
  }
  ::sync();
}

void PrintRound(int number, const Round& r, const std::vector<Answer>& answers, uint64_t bytes) {
  double snapshot = 0, io = 0, commit = 0;
  for (const Answer& a : answers) {
    snapshot = std::max(snapshot, static_cast<double>(a.snapshot_ns) * 1e-9);
    io = std::max(io, static_cast<double>(a.io_ns) * 1e-9);
    commit = std::max(commit, static_cast<double>(a.commit_ns) * 1e-9);
  }
  const auto n = static_cast<double>(bytes) * 1e-9;
  std::printf(
      "  round %d: write %.3f s (%.2f GB/s), save %.3f s (%.2f GB/s; slowest rank: snapshot %.3f, "
      "io %.3f, commit %.3f), ratio %.3f, extra memory %.1f MiB\n",
      number, r.plain, n / r.plain, r.save, n / r.save, snapshot, io, commit, r.save / r.plain,
      static_cast<double>(r.extra) / (1 << 20));
  std::fflush(stdout);
}

// True when the goals are met.
bool Report(const std::string& layout, const std::vector<Round>& rounds, uint64_t first_extra) {
  std::vector<double> ratios, plain, save;
  uint64_t extra = first_extra;
  for (const Round& r : rounds) {
    ratios.push_back(r.save / r.plain);
    plain.push_back(r.plain);
    save.push_back(r.save);
    extra = std::max(extra, r.extra);
  }
  const Range ratio = Summarize(ratios), p = Summarize(plain), s = Summarize(save);
  std::printf(
      "%s: save / write %.3f [%.3f..%.3f] (goal %.2f), write %.3f s [%.3f..%.3f], save %.3f s "
      "[%.3f..%.3f], extra memory per rank at most %.1f MiB (goal %d)\n",
      layout.c_str(), ratio.median, ratio.min, ratio.max, kGoalRatio, p.median, p.min, p.max,
      s.median, s.min, s.max, static_cast<double>(extra) / (1 << 20),
      static_cast<int>(kGoalExtra >> 20));
  return ratio.median <= kGoalRatio && extra <= kGoalExtra;
}

bool RunLayout(const Options& options, const std::string& dir, const std::string& layout) {
  Job job;
  job.library = options.library;
  job.root = dir + "/" + layout;
  job.config = options.config;
  job.id = "bench-" + layout + "-" + std::to_string(::getpid());
  job.layout = layout == "zero" ? Layout::kZero : Layout::kSharded;
  job.bytes = options.mib << 20;
  job.ranks = options.ranks;
  Ranks ranks(job);  // before the driver's own memory, so that ranks do not inherit it
  const char* source = WarmBytes(job.bytes, 0);
  const std::string file = dir + "/plain";
  int64_t step = 0;
  // Untimed: caches, and the plan that the first save of a layout makes.
  PlainWrite(file, source, job.bytes);
  const auto first = ranks.Save(step++);
  std::printf("%s, library %s: first save %.3f s (not counted)\n", layout.c_str(), first[0].version,
              Seconds(first));
  std::vector<Round> rounds;
  for (int i = 0; i < options.rounds; ++i) {
    Round round = {};
    std::vector<Answer> answers;
    for (const bool save : {i % 2 != 0, i % 2 == 0}) {  // who goes first alternates
      Settle(job.root);
      if (!save) round.plain = PlainWrite(file, source, job.bytes);
      if (save) answers = ranks.Save(step++);
    }
    round.save = Seconds(answers);
    round.extra = Extra(answers);
    rounds.push_back(round);
    PrintRound(i + 1, round, answers, job.bytes);
  }
  ranks.Finish();
  Settle(job.root);
  return Report(layout, rounds, Extra(first));
}

void RunBaseline(const Options& options, const std::string& dir) {
  const uint64_t bytes = options.mib << 20;
  const char* source = WarmBytes(bytes, 0);
  std::vector<double> seconds;
  for (int i = 0; i <= options.rounds; ++i) {
    Settle(dir);
    const double s = PlainWrite(dir + "/plain", source, bytes);
    if (i > 0) seconds.push_back(s);
  }
  const Range r = Summarize(seconds);
  std::printf("write alone: %.3f s [%.3f..%.3f], %.2f GB/s\n", r.median, r.min, r.max,
              static_cast<double>(bytes) * 1e-9 / r.median);
}

int Usage(int code) {
  std::fputs(
      "first_save [--lib PATH] [--dir DIR] [--layout sharded|zero|both] [--mib N] [--ranks N]\n"
      "           [--rounds N] [--config key=value] [--check] [--baseline-only]\n"
      "Saves N MiB by N ranks through the library ($CKPT_LIB) and writes as many from one process, "
      "in\n"
      "turn. --dir decides which disk is measured. --check: exit 1 unless the goals are met.\n",
      code == 0 ? stdout : stderr);
  return code;
}

bool Parse(int argc, char** argv, Options* o) {
  if (const char* lib = std::getenv("CKPT_LIB")) o->library = lib;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--check") {
      o->check = true;
      continue;
    }
    if (key == "--baseline-only") {
      o->baseline_only = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string value = argv[i];
    if (key == "--lib")
      o->library = value;
    else if (key == "--dir")
      o->dir = value;
    else if (key == "--layout")
      o->layout = value;
    else if (key == "--config")
      o->config += value + "\n";
    else if (key == "--mib")
      o->mib = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--ranks")
      o->ranks = std::atoi(value.c_str());
    else if (key == "--rounds")
      o->rounds = std::atoi(value.c_str());
    else
      return false;
  }
  const bool known = o->layout == "both" || o->layout == "sharded" || o->layout == "zero";
  return known && o->mib > 0 && o->ranks > 0 && o->rounds > 0 &&
         (o->baseline_only || !o->library.empty());
}

// Removes its folder at the end; on Fail the folder stays and its path was printed.
int Run(const Options& options) {
  std::string dir = options.dir + "/ckpt-bench-XXXXXX";
  if (::mkdtemp(dir.data()) == nullptr) Fail("mkdtemp in " + options.dir);
  std::printf("%s; %s; %llu MiB, %d ranks, %d rounds\n", Today().c_str(), Machine(dir).c_str(),
              static_cast<unsigned long long>(options.mib), options.ranks, options.rounds);
  std::fflush(stdout);
  bool good = true;
  if (options.baseline_only) RunBaseline(options, dir);
  for (const std::string layout : {"sharded", "zero"}) {
    if (options.baseline_only || (options.layout != "both" && options.layout != layout)) continue;
    good = RunLayout(options, dir, layout) && good;
  }
  std::filesystem::remove_all(dir);
  if (options.check) std::printf("goals %s\n", good ? "met" : "MISSED");
  return options.check && !good ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) return bench::Usage(0);
  if (!bench::Parse(argc, argv, &options)) return bench::Usage(2);
  return bench::Run(options);
}
