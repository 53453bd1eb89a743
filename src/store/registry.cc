// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The registry of roots.  Test: tests/unit/store/owner_test.cc
#include "store/registry.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <utility>

namespace ckpt {
namespace {

struct Registry {
  const pid_t pid = getpid();
  Registry* const parents;  // reachable for leak checkers; never touched: its mutex may be held
  Mutex mu;
  std::map<std::pair<dev_t, ino_t>, std::shared_ptr<RootSlot>> slots CKPT_GUARDED_BY(mu);

  explicit Registry(Registry* before) : parents(before) {}
};

// Never destroyed: owners may be released while static objects go.
Registry& OfThisProcess() {
  static std::atomic<Registry*> current{nullptr};
  Registry* seen = current.load();
  while (seen == nullptr || seen->pid != getpid()) {
    auto fresh = std::make_unique<Registry>(seen);
    if (current.compare_exchange_strong(seen, fresh.get())) return *fresh.release();
  }
  return *seen;
}

}  // namespace

Result<std::shared_ptr<RootSlot>> SlotOf(const Dir& root) {
  struct stat st;
  if (fstat(root.fd(), &st) != 0) return ErrnoStatus(errno, "stat", root.path());
  Registry& registry = OfThisProcess();
  MutexLock lock(registry.mu);
  std::shared_ptr<RootSlot>& slot = registry.slots[{st.st_dev, st.st_ino}];
  if (!slot) slot = std::make_shared<RootSlot>();
  return slot;
}

}  // namespace ckpt
