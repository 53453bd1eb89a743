// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Namespaces by unshare and setns; links, addresses and faults by ip, tc and nft.
#include "hosts/hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace ckpt_test {
namespace {

constexpr int kBridge = 0;  // its place in spaces_; host i has i + 1
constexpr const char* kPort = "4711";

std::string Why(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

std::string Port(int host, const std::string& interface = "eth0") {
  return "p" + std::to_string(host) + interface;
}

// A new network namespace; this process stays where it is. -1: errno says why.
int NewSpace() {
  const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (home < 0) return -1;
  int space = -1;
  if (unshare(CLONE_NEWNET) == 0) {
    space = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (setns(home, CLONE_NEWNET) != 0) throw std::runtime_error(Why("setns"));
  }
  const int error = errno;
  close(home);
  errno = error;
  return space;
}

}  // namespace

Hosts::Hosts(int count) : lacking_(Build(count)) {}

Hosts::~Hosts() {
  for (const int space : spaces_) close(space);
}

std::string Hosts::Name(int host) { return "host" + std::to_string(host); }

std::string Hosts::Build(int count) {
  if (geteuid() != 0) return "hosts in network namespaces need root";
  for (int i = 0; i <= count; ++i) {
    const int space = NewSpace();
    if (space < 0) return Why("no network namespaces here: unshare");
    spaces_.push_back(space);
  }
  std::string error = Run(kBridge, {"ip", "link", "add", "br0", "type", "bridge"});
  if (error.empty()) error = Run(kBridge, {"ip", "link", "set", "br0", "up"});
  for (int host = 0; host < count && error.empty(); ++host) {
    error = Run(host + 1, {"ip", "link", "set", "lo", "up"});
    if (error.empty()) error = AddInterface(host, "eth0", Address(host) + "/24");
    if (error.empty())
      error = Run(host + 1, {"ip", "addr", "add", Address6(host) + "/64", "dev", "eth0", "nodad"});
  }
  return error;
}

std::string Hosts::AddInterface(int host, const std::string& name,
                                const std::string& address) const {
  const std::string port = Port(host, name);
  // The bridge's namespace by way of this process's number for it.
  const std::string bridge =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(spaces_[kBridge]);
  const std::vector<std::pair<int, std::vector<std::string>>> steps = {
      {host + 1,
       {"ip", "link", "add", name, "type", "veth", "peer", "name", port, "netns", bridge}},
      {host + 1, {"ip", "addr", "add", address, "dev", name, "nodad"}},
      {host + 1, {"ip", "link", "set", name, "up"}},
      {kBridge, {"ip", "link", "set", port, "master", "br0"}},
      {kBridge, {"ip", "link", "set", port, "up"}}};
  for (const auto& [space, command] : steps)
    if (std::string error = Run(space, command); !error.empty()) return error;
  return "";
}

void Hosts::Enter(int host) const {
  const std::string name = Name(host);
  if (setns(spaces_.at(host + 1), CLONE_NEWNET) != 0 || unshare(CLONE_NEWUTS) != 0 ||
      sethostname(name.data(), name.size()) != 0)
    throw std::runtime_error(Why("entering a host"));
}

std::string Hosts::Run(int space, const std::vector<std::string>& command) const {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Why("pipe2");
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {  // only async-signal-safe calls: the caller may have threads
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    if (setns(spaces_[space], CLONE_NEWNET) == 0) execvp(argv[0], argv.data());
    const char* why = std::strerror(errno);
    if (write(2, why, std::strlen(why)) < 0) _exit(126);
    _exit(127);
  }
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) != 0;) {
    if (n > 0) said.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  std::string text;
  for (const std::string& word : command) text += word + " ";
  return text + "failed: " + said;
}

std::string Hosts::Cut(int host) const {
  return Run(kBridge, {"ip", "link", "set", Port(host), "down"});
}

std::string Hosts::Restore(int host) const {
  return Run(kBridge, {"ip", "link", "set", Port(host), "up"});
}

std::string Hosts::Lose(int host, int percent) const {
  return Run(host + 1, {"nft",
                        "table inet loss { chain in { type filter hook input priority 0; "
                        "iifname \"eth0\" numgen random mod 100 < " +
                            std::to_string(percent) + " drop; }; }"});
}

std::string Hosts::Throttle(int host, const std::string& rate) const {
  for (const auto& [space, port] : {std::pair(kBridge, Port(host)), {host + 1, "eth0"}}) {
    std::string error = Run(space, {"tc", "qdisc", "add", "dev", port, "root", "tbf", "rate", rate,
                                    "burst", "32kbit", "latency", "400ms"});
    if (!error.empty()) return error;
  }
  return "";
}

std::string Hosts::Delay(int host, int ms) const {
  return Run(host + 1, {"tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay",
                        std::to_string(ms) + "ms"});
}

std::vector<launch::Env> Hosts::Job(int count, int per_host, const std::string& master) {
  std::vector<launch::Env> out;
  for (int rank = 0; rank < count * per_host; ++rank)
    out.push_back({{"LOCAL_RANK", std::to_string(rank % per_host)},
                   {"LOCAL_WORLD_SIZE", std::to_string(per_host)},
                   {"MASTER_ADDR", master.empty() ? Address(0) : master},
                   {"CKPT_PORT", kPort},
                   {"CKPT_TOKEN", "a secret of the job"}});
  return out;
}

}  // namespace ckpt_test
