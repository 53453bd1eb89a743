// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The rank's side of the launcher and the messages themselves. Covered by launch_test.cc.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cmath>
#include <cstdio>

#include "launch/launch.h"
#include "launch/wire.h"

namespace launch {

bool Send(int fd, const Message& message) {
  std::string bytes(1, message.kind);
  bytes += message.a + '\0' + message.b;
  ssize_t n;
  do n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(bytes.size());
}

std::optional<Message> Receive(int fd, bool wait) {
  std::string bytes(kMaxMessage, '\0');
  ssize_t n;
  do n = recv(fd, bytes.data(), bytes.size(), wait ? 0 : MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n <= 0) return std::nullopt;
  bytes.resize(n);
  const size_t cut = bytes.find('\0', 1);
  if (cut == std::string::npos) return std::nullopt;
  return Message{bytes[0], bytes.substr(1, cut - 1), bytes.substr(cut + 1)};
}

std::string Rank::Ask(char kind, const std::string& a, const std::string& b, double seconds) {
  std::lock_guard lock(mu_);
  const std::string what = std::string(1, kind) + " \"" + a + "\"";
  if (1 + a.size() + 1 + b.size() > kMaxMessage) throw Broken(what + ": message too long");
  if (!Send(fd_, {kind, a, b})) throw Broken(what + ": the launcher is gone");
  if (seconds > 0) {
    pollfd p{fd_, POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(std::ceil(seconds * 1000))) == 0)
      throw Broken(what + ": waited in vain for " + std::to_string(seconds) + " s");
  }
  const std::optional<Message> answer = Receive(fd_, true);
  if (!answer) throw Broken(what + ": the launcher is gone");
  if (answer->kind == kBroken) throw Broken(answer->a);
  return answer->a;
}

void Rank::Barrier(const std::string& name, const std::vector<int>& members) {
  std::string list;
  for (int m : members) list += std::to_string(m) + ",";
  Ask(kBarrier, name, list);
}

void Rank::Event(const std::string& name) { Ask(kEvent, name, ""); }

void Rank::WaitFor(const std::string& name, int count, double seconds) {
  Ask(kWaitFor, name, std::to_string(count), seconds);
}

void Rank::Signal(int rank, int signal) {
  Ask(kSignal, std::to_string(rank), std::to_string(signal));
}

void Rank::Put(const std::string& key, const std::string& value) { Ask(kPut, key, value); }

bool Rank::Check(bool good, const std::string& what, const char* file, int line) {
  if (good) return true;
  ++failures_;
  std::printf("%s:%d: check failed: %s\n", file ? file : "?", line, what.c_str());
  return false;
}

}  // namespace launch
