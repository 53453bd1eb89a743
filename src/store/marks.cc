// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Marks of a step: empty files in its folder, outside the record, so that they go with the folder
// when the step is saved again.  Test: tests/unit/store/marks_test.cc
#include "store/existing.h"
#include "store/intent.h"
#include "store/names.h"
#include "store/owner.h"
#include "store/store.h"
#include "util/text.h"

namespace ckpt {
namespace {

// A damaged step can be marked too: bad, so that the newest good one is found.
Result<Dir> OpenStep(const Dir& root, int64_t step) {
  auto entry = FindStep(root, step);
  if (entry.ok()) return root.OpenDir(entry->folder);
  if (IsDamage(entry.status().code())) {
    CKPT_ASSIGN_OR_RETURN(const std::string folder, LocateStep(root, step));
    return root.OpenDir(folder);
  }
  return entry.status();
}

Status SetMark(const RootOwner& root_owner, int64_t step, const char* mark, bool on) {
  const auto* owner = dynamic_cast<const Owner*>(&root_owner);
  if (owner == nullptr) return Status(Code::kInternal, "a mark without ownership of its root");
  // Not while a commit replaces the folder: the mark would go to the old one or the new one.
  MutexLock lock(owner->commit_mu());
  CKPT_RETURN_IF_ERROR(owner->Check());
  CKPT_ASSIGN_OR_RETURN(const Dir dir, OpenStep(owner->root(), step));
  const Status set = on ? dir.WriteFile(mark, "") : dir.Unlink(mark);
  if (!set.ok() && set.code() != Code::kExists) return set;
  // For a power loss after we said OK: a mark that is believed must not vanish or come back.
  return dir.Sync();
}

}  // namespace

Status SetPinned(const RootOwner& owner, int64_t step, Pin pin) {
  return SetMark(owner, step, kPinnedMark, pin == Pin::kOn);
}

Status MarkBad(const RootOwner& owner, int64_t step) {
  return SetMark(owner, step, kBadMark, true);
}

}  // namespace ckpt
