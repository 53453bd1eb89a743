// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Several hosts on one machine: network namespaces joined by veth pairs through a bridge, each with
// a host name of its own (UTS namespace). A namespace has no name: it lives by the descriptors of
// this process and of the ranks in it, so that the kernel removes it, its links and its rules
// whichever way they end, SIGKILL included. Needs root and iproute2; nft for Lose. One thread.
#pragma once

#include <string>
#include <vector>

#include "launch/launch.h"

namespace ckpt_test {

class Hosts {
 public:
  // Hosts with the addresses 10.77.0.1, fd00:77::1 and so on, on their interface eth0.
  explicit Hosts(int count);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // Empty, or why there are no hosts on this machine: then nothing else may be called.
  const std::string& lacking() const { return lacking_; }

  // Moves this rank, which must be single-threaded still, to that host.
  void Enter(int host) const;

  static std::string Name(int host);
  static std::string Address(int host) { return "10.77.0." + std::to_string(host + 1); }
  static std::string Address6(int host) { return "fd00:77::" + std::to_string(host + 1); }

  // By whichever process, at any time. Empty, or what the command said when it failed.
  std::string Cut(int host) const;                // the cable is pulled at the bridge
  std::string Restore(int host) const;            // and put back
  std::string Lose(int host, int percent) const;  // of the packets that come in
  std::string Throttle(int host, const std::string& rate) const;  // both directions: "8mbit"
  std::string Delay(int host, int ms) const;
  // "IFACE ADDRESS/BITS": one more cable of the host, to the same bridge.
  std::string AddInterface(int host, const std::string& name, const std::string& address) const;

  // A job of `per_host` ranks on each of `count` hosts that meet at `master` (default: the first
  // host's address), on a port that is free, for the network is this job's own.
  static std::vector<launch::Env> Job(int count, int per_host, const std::string& master = "");

 private:
  std::string Build(int count);
  std::string Run(int space, const std::vector<std::string>& command) const;

  std::vector<int> spaces_;  // descriptors: the bridge's, then the hosts'
  std::string lacking_;      // after what Build fills
};

}  // namespace ckpt_test

// Says by name, with the reason, that a test was not run.
#define NEED_HOSTS(hosts) \
  if (!(hosts).lacking().empty()) GTEST_SKIP() << "NOT RUN: " << (hosts).lacking()
