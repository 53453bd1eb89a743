// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows a commit: LATEST, the owner's record, retention, the removal of what was replaced.
// The step is durable before any of it, so whatever fails here is a warning, and the next save or
// the next owner tries again.  Test: tests/unit/store/retention_test.cc, commit_test.cc
#include "store/commit.h"
#include "store/intent.h"
#include "store/leftovers.h"
#include "store/names.h"
#include "store/registry.h"
#include "store/retention.h"
#include "util/text.h"

namespace ckpt {
namespace {

class Finisher {
 public:
  Finisher(Owner& owner, std::vector<std::string>* warnings) : owner_(owner), warnings_(warnings) {}

  bool Warn(const Status& status) {
    if (!status.ok()) warnings_->push_back(Cat("after the commit: ", status.message()));
    return status.ok();
  }

  // Moves the step's old folder to trash.
  void Retire(const Committed& committed) {
    if (committed.by_intent) {
      // A later save of the step may have an intent of its own.
      auto intent = ReadIntent(owner_.root(), committed.step);
      const bool ours = intent.ok() && intent->trash == committed.replaced;
      if (ours) Warn(owner_.root().Unlink(IntentFile(committed.step)));
    }
    if (!committed.replaced.starts_with(kStagingPrefix)) return;
    Warn(owner_.root().RenameNoReplace(committed.replaced, TrashFolder(NewId())));
  }

  void Prune(const StepTransaction::Options& options) {
    if (options.keep_last == 0) return;
    auto steps = ListSteps(owner_.root());
    if (!Warn(steps.status())) return;
    for (const std::string& victim : Victims(*steps, options.lineage, options.keep_last)) {
      if (IsInUse(owner_.root(), victim)) continue;
      // Each time: whoever took the root over meanwhile may count on this step.
      if (!Warn(owner_.Check())) return;
      const Status moved = owner_.root().RenameNoReplace(victim, TrashFolder(NewId()));
      if (moved.code() != Code::kNotFound) Warn(moved);  // gone already: as well
    }
  }

 private:
  Owner& owner_;
  std::vector<std::string>* const warnings_;
};

}  // namespace

void FinishStep(Owner& owner, const StepTransaction::Options& options, const Committed& committed,
                std::vector<std::string>* warnings) {
  const Dir& root = owner.root();
  Finisher finisher(owner, warnings);
  // Else the root is somebody else's now, and so is the tidying.
  if (!finisher.Warn(owner.Check())) return;
  std::vector<std::string> trash;
  {
    MutexLock lock(owner.commit_mu());
    // A newer commit, of another context, says so itself.  Not synced: a hint may be old.
    if (owner.IsNewest(committed.sequence)) {
      finisher.Warn(root.ReplaceFile(kLatestFile, committed.step_folder + "\n"));
    }
    finisher.Warn(owner.WriteSequence());
    finisher.Retire(committed);
    finisher.Prune(options);
    auto removable = SyncedTrash(root, owner.Kept());
    if (finisher.Warn(removable.status())) trash = *removable;
  }
  // Without the lock: big folders take their time, and nobody else wants these.
  for (const std::string& name : trash) finisher.Warn(root.RemoveTree(name));
}

}  // namespace ckpt
