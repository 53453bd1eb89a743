// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean-up after dead owners.  Test: tests/unit/store/leftovers_test.cc
#include "store/leftovers.h"

#include "store/names.h"
#include "util/text.h"

namespace ckpt {
namespace {

std::string NotRemoved(const Dir& root, const std::string& name, const Status& why) {
  return Cat(root.path(), ": leftover ", name, " is not removed: ", why.message());
}

}  // namespace

std::vector<std::string> RemoveLeftovers(const Dir& root, const std::set<std::string>& kept) {
  std::vector<std::string> warnings, doomed;
  auto entries = root.List();
  if (!entries.ok()) return {Cat("leftovers are not removed: ", entries.status().message())};
  for (const DirEntry& entry : *entries) {
    if (kept.contains(entry.name)) continue;
    if (entry.name.starts_with(kTrashPrefix)) doomed.push_back(entry.name);
    if (!entry.name.starts_with(kStagingPrefix)) continue;
    const std::string trash = TrashFolder(NewId());
    const Status moved = root.RenameNoReplace(entry.name, trash);
    if (moved.ok()) {
      doomed.push_back(trash);
    } else if (moved.code() != Code::kNotFound) {
      warnings.push_back(NotRemoved(root, entry.name, moved));
    }
  }
  if (doomed.empty()) return warnings;
  // For a power loss: a dead owner's exchange may be in memory only, and what has a staging name
  // now may be the step after the next boot.  Nothing is deleted before the names are on disk.
  const Status synced = root.Sync();
  if (!synced.ok()) {
    warnings.push_back(NotRemoved(root, doomed.front(), synced));
    return warnings;
  }
  for (const std::string& name : doomed) {
    const Status removed = root.RemoveTree(name);
    if (!removed.ok()) warnings.push_back(NotRemoved(root, name, removed));
  }
  return warnings;
}

}  // namespace ckpt
