// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs rows, holds them against what the fault must give, and prints them.
#include "contract/table.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace contract {
namespace {

constexpr double kAtOnce = 1, kSlack = 1;  // seconds
constexpr double kPatience = 40;           // of a row's job, far above any row's limit

struct Run {
  launch::Result result;
  const Fault& fault;

  std::string Get(int rank, const std::string& key) const { return result.get(rank, key); }
  double Time(int rank, const std::string& key) const {
    const std::string text = Get(rank, key);
    return text.empty() ? -1 : std::stod(text);
  }
};

launch::Options LaunchOptions(const Bootstrap& bootstrap, const Fault& fault,
                              const std::string& job) {
  launch::Options o;
  o.ranks = static_cast<int>(fault.claims.size());
  o.deadline_s = kPatience;
  o.plan = fault.plan;
  for (const Claim& claim : fault.claims) o.rank_env.push_back(bootstrap.env(claim, job));
  return o;
}

launch::Result RunJob(const Bootstrap& bootstrap, const Fault& fault, const std::string& root,
                      const std::string& job) {
  return launch::Run(LaunchOptions(bootstrap, fault, job), [&](Rank& rank) {
    Player p(rank, fault, bootstrap, root);
    if (fault.joined) {
      p.Join();
      rank.Barrier("joined");
    }
    fault.body(p);
    if (fault.next != Next::kSameJob) {
      // A context that goes meanwhile would be another fault.
      if (fault.get.count(rank.id()) > 0) p.WaitForVerdicts();
      return;
    }
    rank.Barrier("all have their verdict");
    if (!fault.joined) p.Join();
    p.NextRounds();
  });
}

// A new job of all ranks in the same root.
std::string RunNextJob(const Bootstrap& bootstrap, const std::string& root,
                       const std::string& job) {
  const Fault none{.name = "next", .body = [](Player&) {}};  // and two joint saves
  const launch::Result r = RunJob(bootstrap, none, root, job + "-next");
  return r.ok() ? r.get(0, "next") : "failed: " + r.report();
}

// From the fault, or else from the first call (of those that wait for a deadline) or the last.
double Seconds(const Run& run) {
  double fault = -1, first = -1, last = -1, end = -1;
  for (int i = 0; i < run.result.size(); ++i) {
    fault = std::max(fault, run.Time(i, "fault"));
    const double called = run.Time(i, "called");
    if (called < 0) continue;
    first = first < 0 ? called : std::min(first, called);
    last = std::max(last, called);
    end = std::max(end, run.Time(i, "returned"));
  }
  if (end < 0) return -1;
  if (fault >= 0) return end - fault;
  return end - (run.fault.ends == Ends::kByDeadline ? first : last);
}

std::string Text(const std::set<int>& ranks) {
  std::string text;
  for (int rank : ranks) text += std::to_string(rank) + " ";
  return text;
}

bool Worked(const std::string& next) { return next == "OK OK "; }
// The second joint call has to work; that the first did too is the rule.
bool WorkedAtLast(const std::string& next) {
  return next.size() >= 3 && next.compare(next.size() - 3, 3, "OK ") == 0;
}

void CheckVerdicts(const Run& run, Row* row) {
  const auto wrong = [row](const std::string& text) { row->wrong.push_back(text); };
  const Fault& fault = run.fault;
  const int first = *fault.get.begin();
  row->code = run.Get(first, "code");
  row->named = run.Get(first, "named");
  row->text = run.Get(first, "text");
  for (int i = 0; i < run.result.size(); ++i) {
    const bool has = !run.Get(i, "code").empty();
    if (has != (fault.get.count(i) > 0)) {
      wrong("rank " + std::to_string(i) + (has ? " has a verdict" : " has no verdict"));
    }
  }
  for (int i : fault.get) {
    for (const char* key : {"code", "ranks", "text"}) {
      if (run.Get(i, key) == run.Get(first, key)) continue;
      wrong("rank " + std::to_string(i) + " has another " + key + " than rank " +
            std::to_string(first) + ": " + run.Get(i, key));
    }
  }
  if (row->code != ckpt_test::StatusName(fault.code)) {
    wrong(std::string("want ") + ckpt_test::StatusName(fault.code));
  }
  const std::string named = run.Get(first, "ranks");
  if (!fault.either_side && named != Text(fault.named))
    wrong("want rank " + Text(fault.named) + "named");
  if (fault.either_side && row->named.empty()) wrong("nobody is named");
  if (fault.condition != 0 && row->named != Text(fault.named) + ConditionName(fault.condition)) {
    wrong("want " + Text(fault.named) + ConditionName(fault.condition));
  }
  if (row->text.find(fault.says) == std::string::npos) wrong("want the text: " + fault.says);
}

void CheckNext(const std::string& next, Row* row) {
  row->next = Worked(next) ? "OK" : WorkedAtLast(next) ? "OK at the second call" : "failed";
  if (!WorkedAtLast(next)) row->wrong.push_back("next round " + next);
}

std::string JobName(const Bootstrap& bootstrap, const Fault& fault) {
  std::string name = bootstrap.name + "-" + fault.name + "-" + std::to_string(getpid());
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '-';
  return name;
}

std::string ToText(const Row& row) {
  return nlohmann::json{{"fault", row.fault},     {"bootstrap", row.bootstrap},
                        {"seconds", row.seconds}, {"limit", row.limit},
                        {"code", row.code},       {"named", row.named},
                        {"next", row.next},       {"text", row.text},
                        {"slow", row.slow},       {"wrong", row.wrong}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Row FromText(const std::string& text) {
  const auto j = nlohmann::json::parse(text);
  Row row{j.at("fault"), j.at("bootstrap"), j.at("seconds"), j.at("limit"), j.at("code"),
          j.at("named"), j.at("next"),      j.at("text"),    j.at("slow"),  j.at("wrong")};
  return row;
}

// A row in a process of its own, which Launch wants to have to itself.
struct Worker {
  size_t row = 0;
  pid_t pid = -1;
  int fd = -1;
  std::string said = {};
};

Worker StartWorker(size_t i, const Bootstrap& bootstrap, const Fault& fault) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    close(ends[0]);
    std::string text;
    try {
      text = ToText(RunRow(bootstrap, fault));
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: %s\n", fault.name.c_str(), e.what());
    }
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = write(ends[1], text.data() + at, text.size() - at);
      if (n <= 0) _exit(1);
      at += static_cast<size_t>(n);
    }
    _exit(text.empty() ? 1 : 0);
  }
  close(ends[1]);
  return {i, pid, ends[0]};
}

// Reads what has come; true at its end.
bool Hear(Worker* worker) {
  char part[4096];
  const ssize_t n = read(worker->fd, part, sizeof part);
  if (n > 0) worker->said.append(part, static_cast<size_t>(n));
  return n <= 0;
}

Row Finished(const Worker& worker, const Bootstrap& bootstrap, const Fault& fault) {
  close(worker.fd);
  int status = 0;
  waitpid(worker.pid, &status, 0);
  if (status == 0 && !worker.said.empty()) return FromText(worker.said);
  Row row{fault.name, bootstrap.name};
  row.wrong = {"the row's own process ended with " + std::to_string(status)};
  return row;
}

}  // namespace

Row RunRow(const Bootstrap& bootstrap, const Fault& fault) {
  const launch::Scratch scratch("contract");
  const std::string root = scratch / "root", job = JobName(bootstrap, fault);
  const Run run{RunJob(bootstrap, fault, root, job), fault};
  Row row{fault.name, bootstrap.name};
  row.seconds = Seconds(run);
  row.limit = fault.ends == Ends::kAtOnce ? kAtOnce
                                          : static_cast<double>(fault.deadline_ms) / 1000 + kSlack;
  CheckVerdicts(run, &row);
  if (!run.result.ok()) row.wrong.push_back(run.result.report());
  const bool same_job = fault.next == Next::kSameJob;
  std::string next = same_job ? run.Get(0, "next") : RunNextJob(bootstrap, root, job);
  for (int i = 0; same_job && i < run.result.size(); ++i)
    if (!WorkedAtLast(run.Get(i, "next"))) next = run.Get(i, "next");
  CheckNext(next, &row);
  if (!same_job) row.next += ", new job";
  row.slow = row.wrong.empty() && row.seconds > row.limit;
  if (row.slow) row.wrong.push_back("too late");
  return row;
}

std::vector<Row> RunAll(const Bootstrap& bootstrap, const std::vector<Fault>& faults, int at_once) {
  bootstrap.env({}, "");  // what it asks a launcher for, it asks once for all workers
  std::vector<Row> rows(faults.size());
  std::vector<Worker> running;
  for (size_t next = 0; next < faults.size() || !running.empty();) {
    while (next < faults.size() && running.size() < static_cast<size_t>(at_once)) {
      running.push_back(StartWorker(next, bootstrap, faults[next]));
      ++next;
    }
    std::vector<pollfd> polls;
    for (const Worker& w : running) polls.push_back({w.fd, POLLIN, 0});
    poll(polls.data(), polls.size(), -1);  // each worker's job has a deadline
    for (size_t i = running.size(); i-- > 0;) {
      if (polls[i].revents == 0 || !Hear(&running[i])) continue;
      rows[running[i].row] = Finished(running[i], bootstrap, faults[running[i].row]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (size_t i = 0; i < faults.size(); ++i)
    if (rows[i].slow && at_once > 1) rows[i] = RunAll(bootstrap, {faults[i]}, 1).at(0);
  return rows;
}

std::string Table(const std::vector<Row>& rows) {
  std::string text;
  char line[512];
  std::snprintf(line, sizeof line, "%-17s | %-56s | %6s | %5s | %-26s | %-28s | %s\n", "bootstrap",
                "fault", "s", "limit", "code", "ranks named", "next round");
  text += line;
  for (const Row& row : rows) {
    std::snprintf(line, sizeof line, "%-17s | %-56s | %6.2f | %5.1f | %-26s | %-28s | %s%s\n",
                  row.bootstrap.c_str(), row.fault.c_str(), row.seconds, row.limit,
                  row.code.c_str(), row.named.c_str(), row.next.c_str(),
                  row.wrong.empty() ? "" : "  WRONG");
    text += line;
  }
  return text;
}

}  // namespace contract
