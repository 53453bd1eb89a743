// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Process-wide for the same reason as context numbers: a port belongs to a process.
// Test: tests/unit/comm/shared_port_test.cc
#include "comm/shared_port.h"

#include <fcntl.h>
#include <unistd.h>

namespace ckpt {
namespace {

struct Registry {
  Mutex mu;
  // A child of fork() has its parent's entries, whose loops do not run in it.
  std::map<std::pair<pid_t, std::string>, std::weak_ptr<SharedPort>> ports CKPT_GUARDED_BY(mu);
};

// Never destroyed: contexts may be freed by exit handlers.
Registry& TheRegistry() {
  static Registry& registry = *std::make_unique<Registry>().release();
  return registry;
}

}  // namespace

Result<std::shared_ptr<SharedPort>> SharedPort::Open(const std::string& place,
                                                     const std::function<Result<Fd>()>& listen) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  std::erase_if(registry.ports, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = registry.ports[{::getpid(), place}];
  if (auto port = entry.lock()) return port;
  CKPT_ASSIGN_OR_RETURN(Fd listening, listen());
  auto port = std::make_shared<SharedPort>(std::move(listening));
  entry = port;
  return port;
}

Fd SharedPort::Duplicate() const { return Fd(::fcntl(listening_.get(), F_DUPFD_CLOEXEC, 0)); }

uint64_t SharedPort::Add(const std::string& tag, OnGreeting on_greeting) {
  MutexLock lock(mu_);
  takers_[next_] = {tag, std::move(on_greeting)};
  return next_++;
}

void SharedPort::Remove(uint64_t number) {
  MutexLock lock(mu_);
  takers_.erase(number);
}

bool SharedPort::Hand(const std::string& tag, const std::function<Fd()>& connection,
                      Bytes greeting) {
  MutexLock lock(mu_);
  for (const auto& [number, taker] : takers_) {
    if (taker.tag != tag) continue;
    taker.on_greeting(connection(), std::move(greeting));
    return true;
  }
  return false;
}

}  // namespace ckpt
