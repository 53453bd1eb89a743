// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The one piece of process-wide state of this module: nothing smaller than the process knows which
// contexts there are.  Test: tests/unit/comm/parts_test.cc
#include "comm/context_number.h"

#include <map>
#include <memory>
#include <set>

#include "util/sync.h"

namespace ckpt {
namespace {

struct Registry {
  Mutex mu;
  std::map<std::string, std::set<uint32_t>> used CKPT_GUARDED_BY(mu);
};

// Never destroyed: contexts may be freed by exit handlers.
Registry& TheRegistry() {
  static Registry& registry = *std::make_unique<Registry>().release();
  return registry;
}

}  // namespace

ContextNumber::ContextNumber(std::string name) : name_(std::move(name)) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  std::set<uint32_t>& used = registry.used[name_];
  while (used.count(value_) > 0) ++value_;
  used.insert(value_);
}

ContextNumber::~ContextNumber() {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  const auto it = registry.used.find(name_);
  it->second.erase(value_);
  if (it->second.empty()) registry.used.erase(it);
}

}  // namespace ckpt
