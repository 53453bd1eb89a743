// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The launcher's side: fork, answer, kill, collect. The group's leader is a keeper process, so
// that the group's number stays ours until the end however the ranks die, and so that the group
// goes when this process is killed. Covered by launch_test.cc.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "launch/launch.h"
#include "launch/wire.h"

extern char** environ;

namespace launch {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Variables of another launcher that the library's AUTO would look at.
void ClearForeignEnvironment() {
  std::vector<std::string> names;
  for (char** e = environ; *e; ++e) {
    const std::string entry(*e);
    const std::string name = entry.substr(0, entry.find('='));
    for (const char* prefix : {"OMPI_", "PMI_", "PMIX_", "MPI_", "SLURM_", "TORCHELASTIC_",
                               "MASTER_", "CKPT_PORT", "CKPT_TOKEN", "CKPT_JOB_ID"})
      if (name.rfind(prefix, 0) == 0) names.push_back(name);
  }
  for (const std::string& n : names) unsetenv(n.c_str());
}

void Apply(const Env& env) {
  for (const auto& [name, value] : env)
    value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
}

void RedirectOutput(const std::string& log) {
  const int in = open("/dev/null", O_RDONLY);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (in < 0 || out < 0) _exit(126);
  dup2(in, 0);
  dup2(out, 1);
  dup2(out, 2);
  close(in);
  close(out);
}

}  // namespace

class Launcher {
 public:
  Launcher(const Options& options, const std::function<int(Rank&)>& body)
      : options_(options), body_(body), scratch_("launch"), procs_(options.ranks) {
    static int launches = 0;
    job_id_ = "launch-" + std::to_string(getpid()) + "-" + std::to_string(++launches) + "-" +
              scratch_.path().substr(scratch_.path().size() - 6);
    mkdir((scratch_ / "tmp").c_str(), 0700);
    mkdir((scratch_ / "run").c_str(), 0700);
  }

  Result Go() {
    int was_subreaper = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of ranks come to us and are reaped below
    std::fflush(nullptr);
    std::cout.flush();
    StartKeeper();
    for (int i = 0; i < options_.ranks; ++i) Start(i);
    for (Proc& p : procs_) Send(p.fd, {kGo});
    Serve();
    End();
    prctl(PR_SET_CHILD_SUBREAPER, was_subreaper);
    return Collect();
  }

 private:
  struct Proc {
    pid_t pid = -1;
    int fd = -1;
    int pidfd = -1;
    Message waiting = {};  // an unanswered request; kind 0: none
    RankResult result = {};
    bool alive() const { return pidfd >= 0; }
  };

  std::string LogPath(int rank) const {
    return scratch_ / ("rank" + std::to_string(rank) + ".log");
  }

  void StartKeeper() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    keeper_ = fork();
    if (keeper_ < 0) throw std::runtime_error("fork");
    if (keeper_ == 0) {
      setpgid(0, 0);
      close(ends[1]);
      char byte;
      while (read(ends[0], &byte, 1) < 0) {
      }
      kill(0, SIGKILL);  // the launcher is gone
      _exit(0);
    }
    setpgid(keeper_, keeper_);
    close(ends[0]);
    keeper_pipe_ = ends[1];
  }

  void Start(int i) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("socketpair");
    Proc& p = procs_[i];
    p.pid = fork();
    if (p.pid < 0) throw std::runtime_error("fork");
    if (p.pid == 0) {
      close(ends[0]);
      RankMain(i, ends[1]);
    }
    close(ends[1]);
    setpgid(p.pid, keeper_);
    p.fd = ends[0];
    p.pidfd = static_cast<int>(syscall(SYS_pidfd_open, p.pid, 0));
    if (p.pidfd < 0) throw std::runtime_error("pidfd_open");
  }

  [[noreturn]] void RankMain(int i, int fd) {
    setpgid(0, keeper_);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(keeper_pipe_);
    for (const Proc& p : procs_) {
      if (p.fd >= 0) close(p.fd);
      if (p.pidfd >= 0) close(p.pidfd);
    }
    RedirectOutput(LogPath(i));
    SetEnvironment(i);
    Rank rank(i, options_.ranks, fd, scratch_.path(), job_id_);
    int code = 1;
    if (Receive(fd, true)) {
      try {
        code = body_(rank);
      } catch (const std::exception& e) {
        std::printf("rank %d: exception: %s\n", i, e.what());
      } catch (...) {
        std::printf("rank %d: unknown exception\n", i);
      }
    }
    if (code == 0 && rank.failures() > 0) code = 1;
    std::cout.flush();
    std::fflush(nullptr);
    _exit(code);
  }

  void SetEnvironment(int i) {
    const std::string size = std::to_string(options_.ranks), id = std::to_string(i);
    ClearForeignEnvironment();
    Apply({{"RANK", id},
           {"WORLD_SIZE", size},
           {"LOCAL_RANK", id},
           {"LOCAL_WORLD_SIZE", size},
           {"CKPT_JOB_ID", job_id_},
           {"TMPDIR", scratch_ / "tmp"},
           {"XDG_RUNTIME_DIR", scratch_ / "run"}});
    Apply(options_.env);
    if (i < static_cast<int>(options_.rank_env.size())) Apply(options_.rank_env[i]);
  }

  // Until all ranks have ended or the deadline has passed.
  void Serve() {
    for (;;) {
      std::vector<pollfd> polls;
      std::vector<int> owner;
      for (int i = 0; i < options_.ranks; ++i) {
        if (!procs_[i].alive()) continue;
        polls.push_back({procs_[i].pidfd, POLLIN, 0});
        owner.push_back(i);
        if (procs_[i].fd < 0) continue;
        polls.push_back({procs_[i].fd, POLLIN, 0});
        owner.push_back(i);
      }
      if (polls.empty()) return;
      const double left = options_.deadline_s - Since(start_);
      if (left <= 0) return MarkHung();
      poll(polls.data(), polls.size(), static_cast<int>(std::ceil(left * 1000)));
      for (size_t k = 0; k < polls.size(); ++k) {
        if (polls[k].revents == 0) continue;
        Proc& p = procs_[owner[k]];
        if (polls[k].fd == p.pidfd)
          Reap(owner[k]);
        else if (polls[k].fd == p.fd)
          Answer(owner[k]);
      }
      ReleaseWaiting();
    }
  }

  void Answer(int i) {
    Proc& p = procs_[i];
    const std::optional<Message> m = Receive(p.fd, false);
    if (!m) {  // a program that was started by exec has no socket; its end is seen by its pidfd
      close(p.fd);
      p.fd = -1;
      return;
    }
    p.waiting = *m;
    switch (m->kind) {
      case kEvent:
        OnEvent(i, m->a);
        break;
      case kSignal:
        SendSignal(std::stoi(m->a), std::stoi(m->b), i);
        break;
      case kPut:
        p.result.values[m->a] = m->b;
        break;
      default:
        return;  // kBarrier, kWaitFor: answered by ReleaseWaiting
    }
    Reply(i, {kGo});
  }

  void Reply(int i, const Message& message) {
    procs_[i].waiting = {};
    if (procs_[i].fd >= 0) Send(procs_[i].fd, message);
  }

  void OnEvent(int caller, const std::string& name) {
    const int count = ++events_[name];
    for (const Action& a : options_.plan)
      if (a.event == name && a.at_count == count) SendSignal(a.target, a.signal, caller);
  }

  void SendSignal(int target, int signal, int caller) {
    if (target == kCaller) target = caller;
    for (int i = 0; i < options_.ranks; ++i) {
      if (!procs_[i].alive() || (target != kAllRanks && target != i)) continue;
      if (signal != SIGCONT && signal != SIGSTOP) procs_[i].result.by_plan = true;
      kill(procs_[i].pid, signal);
    }
  }

  std::set<int> Members(const std::string& list) const {
    std::set<int> members;
    std::istringstream in(list);
    for (std::string one; std::getline(in, one, ',');) members.insert(std::stoi(one));
    if (members.empty())
      for (int i = 0; i < options_.ranks; ++i) members.insert(i);
    return members;
  }

  void ReleaseWaiting() {
    for (int i = 0; i < options_.ranks; ++i) {
      const Message m = procs_[i].waiting;
      if (m.kind == kWaitFor && events_[m.a] >= std::stoi(m.b)) Reply(i, {kGo});
      if (m.kind == kBarrier) TryBarrier(m);
    }
  }

  void TryBarrier(const Message& barrier) {
    const std::set<int> members = Members(barrier.b);
    std::string gone;
    bool all = true;
    for (int k : members) {
      const Proc& p = procs_.at(k);
      const bool here =
          p.waiting.kind == kBarrier && p.waiting.a == barrier.a && p.waiting.b == barrier.b;
      all = all && here;
      if (!p.alive()) gone += " " + std::to_string(k);
    }
    if (!all && gone.empty()) return;
    const std::string why = "barrier \"" + barrier.a + "\": gone rank" + gone;
    for (int k : members)
      if (procs_[k].waiting.kind == kBarrier && procs_[k].waiting.a == barrier.a)
        Reply(k, all ? Message{kGo} : Message{kBroken, why});
  }

  void Reap(int i) {
    Proc& p = procs_[i];
    while (p.fd >= 0) {  // what it said before its end
      const int before = p.fd;
      Answer(i);
      if (p.fd == before && p.waiting.kind != 0) break;
    }
    NoteWaiting(p);
    p.waiting = {};
    int status = 0;
    if (waitpid(p.pid, &status, 0) == p.pid) {
      p.result.exited = WIFEXITED(status);
      if (WIFEXITED(status)) p.result.exit_code = WEXITSTATUS(status);
      if (WIFSIGNALED(status)) p.result.signal = WTERMSIG(status);
    }
    close(p.pidfd);
    p.pidfd = -1;
  }

  static void NoteWaiting(Proc& p) {
    if (p.waiting.kind == kBarrier) p.result.waiting = "barrier \"" + p.waiting.a + "\"";
    if (p.waiting.kind == kWaitFor) p.result.waiting = "wait for \"" + p.waiting.a + "\"";
  }

  void MarkHung() {
    for (Proc& p : procs_)
      if (p.alive()) p.result.hung = true;
  }

  void End() {
    seconds_ = Since(start_);
    kill(-keeper_, SIGKILL);
    for (int i = 0; i < options_.ranks; ++i)
      if (procs_[i].alive()) Reap(i);
    while (waitpid(-keeper_, nullptr, 0) > 0) {  // the keeper and what the ranks left behind
    }
    close(keeper_pipe_);
    for (Proc& p : procs_)
      if (p.fd >= 0) close(p.fd);
  }

  Result Collect() {
    Result r;
    r.folder_ = scratch_.path();
    r.seconds_ = seconds_;
    r.deadline_s_ = options_.deadline_s;
    for (int i = 0; i < options_.ranks; ++i) {
      procs_[i].result.log = ReadAll(LogPath(i));
      r.ranks_.push_back(procs_[i].result);
    }
    return r;
  }

  const Options options_;
  const std::function<int(Rank&)>& body_;
  const Scratch scratch_;
  const Clock::time_point start_ = Clock::now();
  std::string job_id_;
  std::vector<Proc> procs_;
  std::map<std::string, int> events_;
  pid_t keeper_ = -1;
  int keeper_pipe_ = -1;
  double seconds_ = 0;
};

Result Launch(const Options& options, const std::function<int(Rank&)>& body) {
  return Launcher(options, body).Go();
}

Result RunCommand(const Options& options, const std::vector<std::string>& argv) {
  return Launch(options, [&](Rank&) {
    std::vector<char*> args;
    for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
    args.push_back(nullptr);
    execvp(args[0], args.data());
    std::perror(args[0]);
    return 127;
  });
}

}  // namespace launch
