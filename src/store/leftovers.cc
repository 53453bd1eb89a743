// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean-up after saves and after dead owners.  Test: tests/unit/store/leftovers_test.cc
#include "store/leftovers.h"

#include "store/intent.h"
#include "store/names.h"
#include "store/registry.h"
#include "util/text.h"

namespace ckpt {
namespace {

std::string NotRemoved(const Dir& root, const std::string& name, const Status& why) {
  return Cat(root.path(), ": leftover ", name, " is not removed: ", why.message());
}

// Names that stay, whatever they look like.
Result<std::set<std::string>> Untouchable(const Dir& root, const std::vector<DirEntry>& entries,
                                          const std::set<std::string>& kept) {
  CKPT_ASSIGN_OR_RETURN(std::set<std::string> names, NamedByIntents(root, entries));
  names.insert(kept.begin(), kept.end());
  return names;
}

}  // namespace

Result<std::vector<std::string>> SyncedTrash(const Dir& root, const std::set<std::string>& kept) {
  CKPT_ASSIGN_OR_RETURN(const auto entries, root.List());
  CKPT_ASSIGN_OR_RETURN(const auto stay, Untouchable(root, entries, kept));
  std::vector<std::string> trash;
  for (const DirEntry& entry : entries) {
    if (!entry.name.starts_with(kTrashPrefix) || stay.contains(entry.name)) continue;
    if (!IsInUse(root, entry.name)) trash.push_back(entry.name);
  }
  if (trash.empty()) return trash;
  // For a power loss: renames, of ours or of a dead owner, may be in memory only, and what has a
  // trash name now may be the step after the next boot.  Nothing is deleted before the names are
  // on disk.
  CKPT_RETURN_IF_ERROR(root.Sync());
  return trash;
}

std::vector<std::string> RetireLeftovers(const Dir& root, const std::set<std::string>& kept) {
  std::vector<std::string> warnings;
  const auto all = [&](const Status& why) {
    return std::vector<std::string>{Cat("leftovers are not removed: ", why.message())};
  };
  auto entries = root.List();
  if (!entries.ok()) return all(entries.status());
  auto stay = Untouchable(root, *entries, kept);
  if (!stay.ok()) return all(stay.status());
  for (const DirEntry& entry : *entries) {
    if (!entry.name.starts_with(kStagingPrefix) || stay->contains(entry.name)) continue;
    const Status moved = root.RenameNoReplace(entry.name, TrashFolder(NewId()));
    if (!moved.ok() && moved.code() != Code::kNotFound) {
      warnings.push_back(NotRemoved(root, entry.name, moved));
    }
  }
  return warnings;
}

std::vector<std::string> RemoveTrash(const Dir& root, const std::set<std::string>& kept) {
  auto trash = SyncedTrash(root, kept);
  if (!trash.ok()) return {Cat("leftovers are not removed: ", trash.status().message())};
  std::vector<std::string> warnings;
  for (const std::string& name : *trash) {
    const Status removed = root.RemoveTree(name);
    if (!removed.ok()) warnings.push_back(NotRemoved(root, name, removed));
  }
  return warnings;
}

}  // namespace ckpt
