// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The registry of roots.  Test: tests/unit/store/owner_test.cc
#include "store/registry.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "store/store.h"

namespace ckpt {
namespace {

using FileKey = std::pair<dev_t, ino_t>;

struct Registry {
  const pid_t pid = getpid();
  Registry* const parents;  // reachable for leak checkers; never touched: its mutex may be held
  Mutex mu;
  std::map<FileKey, std::shared_ptr<RootSlot>> slots CKPT_GUARDED_BY(mu);
  std::multiset<FileKey> in_use CKPT_GUARDED_BY(mu);

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

StepInUse::StepInUse(const Dir& step) {
  struct stat st;
  if (fstat(step.fd(), &st) != 0) return;  // then nothing can be read there either
  pid_ = getpid();
  device_ = st.st_dev;
  inode_ = st.st_ino;
  Registry& registry = OfThisProcess();
  MutexLock lock(registry.mu);
  registry.in_use.insert({device_, inode_});
}

StepInUse::~StepInUse() {
  if (pid_ != getpid()) return;  // a forked child's copy, or none
  Registry& registry = OfThisProcess();
  MutexLock lock(registry.mu);
  const auto it = registry.in_use.find({device_, inode_});
  if (it != registry.in_use.end()) registry.in_use.erase(it);
}

bool IsInUse(const Dir& root, const std::string& folder) {
  struct stat st;
  if (fstatat(root.fd(), folder.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
  Registry& registry = OfThisProcess();
  MutexLock lock(registry.mu);
  return registry.in_use.contains({st.st_dev, st.st_ino});
}

}  // namespace ckpt
