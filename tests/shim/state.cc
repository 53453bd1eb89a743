// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts events, writes the log and carries out the plan.
#include "shim/state.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>

#include "shim/plan.h"
#include "shim/shim.h"

namespace shim {
namespace {

struct State {
  std::mutex mu;
  Plan plan;
  uint64_t events = 0;
  int log = -1;
  std::minstd_rand random;
  std::set<int> written;
};

std::atomic<bool> active{false}, active_for_reads{false};

// Never destroyed: calls come until the very end of the process.
State& Shared() {
  static State* state = new State;
  return *state;
}

// The real calls: what the shim does itself is no event.
int OpenLog(const std::string& path) {
  static const auto next = Next<int (*)(const char*, int, ...)>("open");
  return next(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}
void WriteLog(int fd, const std::string& text) {
  static const auto next = Next<ssize_t (*)(int, const void*, size_t)>("write");
  if (fd >= 0 && next(fd, text.data(), text.size()) < 0) abort();
}
void CloseLog(int fd) {
  static const auto next = Next<int (*)(int)>("close");
  if (fd >= 0) next(fd);
}

void Sleep(int ms) {
  timespec left{ms / 1000, ms % 1000 * 1000000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

std::string Line(const Event& event, const Rule* rule) {
  std::string line = std::to_string(event.number) + " " + event.op + " " + event.path;
  if (!event.to.empty()) line += " -> " + event.to;
  if (rule == nullptr) return line + "\n";
  if (rule->action == Action::kFail) return line + " !fail " + strerrorname_np(rule->error) + "\n";
  if (rule->action == Action::kShort) return line + " !short\n";
  return line + " !kill\n";
}

// The rule that decides about an event, and how long it waits. Every rule sees every event.
const Rule* Decide(State& state, const Event& event, int* delay_ms) {
  const Rule* chosen = nullptr;
  for (Rule& rule : state.plan.rules) {
    if (!rule.Hits(event)) continue;
    if (rule.action == Action::kDelay) {
      std::uniform_int_distribution<int> ms(rule.min_ms, rule.max_ms);
      *delay_ms += ms(state.random);
    } else if (chosen == nullptr) {
      chosen = &rule;
    }
  }
  return chosen;
}

}  // namespace

bool Active() { return active.load(std::memory_order_acquire); }
bool ActiveForReads() { return active_for_reads.load(std::memory_order_acquire); }

Order Before(const char* op, const std::string& path, const std::string& to) {
  State& state = Shared();
  std::unique_lock lock(state.mu);
  if (!state.plan.Covers(path) && (to.empty() || !state.plan.Covers(to))) return {};
  const Event event{++state.events, op, path, to};
  int delay_ms = 0;
  const Rule* rule = Decide(state, event, &delay_ms);
  WriteLog(state.log, Line(event, rule));
  Order order;
  if (rule != nullptr) {
    // Under the lock: no event of another thread is begun after this one.
    if (rule->action == Action::kKill) kill(getpid(), SIGKILL);
    if (rule->action == Action::kKillAll) kill(0, SIGKILL);
    if (rule->action == Action::kFail) order.error = rule->error;
    if (rule->action == Action::kShort) order.limit = rule->bytes;
  }
  lock.unlock();
  if (delay_ms > 0) Sleep(delay_ms);
  return order;
}

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = readlink(link.c_str(), path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : std::string();
}

std::string PathAt(int at, const char* name) {
  if (name == nullptr) return {};
  if (name[0] == '/') return name;
  if (at != AT_FDCWD) return PathOf(at) + "/" + name;
  char cwd[PATH_MAX];
  return getcwd(cwd, sizeof cwd) != nullptr ? std::string(cwd) + "/" + name : std::string();
}

void NoteWritten(int fd) {
  State& state = Shared();
  const std::lock_guard lock(state.mu);
  state.written.insert(fd);
}

bool ForgetWritten(int fd) {
  State& state = Shared();
  const std::lock_guard lock(state.mu);
  return state.written.erase(fd) > 0;
}

}  // namespace shim

void shim_reset(const char* text) {
  using shim::State;
  State& state = shim::Shared();
  const std::lock_guard lock(state.mu);
  shim::active = shim::active_for_reads = false;
  shim::CloseLog(state.log);
  state.log = -1;
  state.events = 0;
  state.written.clear();
  state.plan = {};
  if (text == nullptr || *text == '\0') return;
  try {
    state.plan = shim::ParsePlan(text);
    if (!state.plan.log.empty()) state.log = shim::OpenLog(state.plan.log);
    if (!state.plan.log.empty() && state.log < 0) throw std::runtime_error("shim: no log");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    _exit(125);
  }
  state.random.seed(state.plan.seed);
  shim::active_for_reads = state.plan.Names("read");
  shim::active = true;
}

uint64_t shim_events(void) {
  shim::State& state = shim::Shared();
  const std::lock_guard lock(state.mu);
  return state.events;
}

namespace {
// For LD_PRELOAD.
__attribute__((constructor)) void FromEnvironment() { shim_reset(std::getenv("SHIM_PLAN")); }
}  // namespace
