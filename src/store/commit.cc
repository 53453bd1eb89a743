// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The order of writes, fsyncs and renames of a commit: docs/format.md, "The commit",
// and the tidying after it.  Each sync says which crash it is for.
// Test: tests/unit/store/commit_test.cc, tests/unit/store/commit_fault_test.cc
#include "store/commit.h"

#include <cerrno>

#include "store/existing.h"
#include "store/names.h"
#include "util/text.h"

namespace ckpt {
namespace {

// How the step got its name, and so how that is undone and what is left behind.
enum class Rename { kPlain, kExchange };

Status OutcomeUnknown(const CommitPlan& plan, const Status& first, const Status& second) {
  Cause cause = first.cause();
  cause.path = Cat(plan.owner->root().path(), "/", plan.step_folder);
  return Status(Code::kOutcomeUnknown,
                Cat("commit of ", cause.path, ": neither confirmed (", first.message(),
                    ") nor undone (", second.message(), "); all folders are kept"),
                std::move(cause));
}

bool Abandoned(const CommitPlan& plan) { return (*plan.abandoned)(); }

Status ToldUnknown() {
  return Status(Code::kOutcomeUnknown, "all ranks were told meanwhile that it is unknown");
}

// 1.
Status WriteRecord(const CommitPlan& plan) {
  // WriteFile syncs each file.  For a power loss after the rename: the name of the step must never
  // lead to an index or a record that holds zeros.
  for (const auto& [name, content] : *plan.index_files) {
    CKPT_RETURN_IF_ERROR(plan.staging->WriteFile(name, content));
  }
  CKPT_RETURN_IF_ERROR(plan.staging->WriteFile(kRecordFile, plan.record_text));
  // For a power loss after the rename: the step must not lack a file, which was synced but whose
  // name in the folder was not.
  return plan.staging->Sync();
}

// Whether the step's name leads to our record: a network file system may do a rename and report an
// error.
Result<bool> IsPublished(const CommitPlan& plan) {
  auto step = plan.owner->root().OpenDir(plan.step_folder);
  const bool no_folder = step.status().cause().sys_errno == ENOTDIR;
  if (step.status().code() == Code::kNotFound || no_folder) return false;
  if (!step.ok()) return step.status();
  auto text = step->ReadFile(kRecordFile, plan.record_text.size());
  if (text.ok()) return *text == plan.record_text;
  const Code code = text.status().code();
  if (code == Code::kNotFound || code == Code::kLimit) return false;
  return text.status();
}

// A folder without a record goes to trash first where names cannot be exchanged: no step is lost if
// we crash in between.
Status MoveLeftoverAway(const CommitPlan& plan, std::string* replaced) {
  const Dir& root = plan.owner->root();
  const std::string trash = TrashFolder(NewId());
  CKPT_RETURN_IF_ERROR(root.Rename(plan.step_folder, trash));
  *replaced = trash;
  return root.RenameNoReplace(plan.staging_folder, plan.step_folder);
}

Status TryRename(const CommitPlan& plan, Existing existing, Rename* how, std::string* replaced) {
  const Dir& root = plan.owner->root();
  *how = Rename::kPlain;
  if (existing == Existing::kNone) {
    return root.RenameNoReplace(plan.staging_folder, plan.step_folder);
  }
  const Status exchanged = root.RenameExchange(plan.staging_folder, plan.step_folder);
  if (exchanged.code() == Code::kUnsupported && existing == Existing::kLeftover) {
    return MoveLeftoverAway(plan, replaced);
  }
  *how = Rename::kExchange;
  *replaced = plan.staging_folder;
  if (exchanged.code() != Code::kUnsupported) return exchanged;
  return exchanged.WithMessage(Cat(exchanged.message(), ": ", plan.step_folder,
                                   " exists, and replacing it without an exchange of names is not "
                                   "built yet"));
}

// 3.
Status Publish(const CommitPlan& plan, Existing existing, Rename* how, std::string* replaced) {
  const Status renamed = TryRename(plan, existing, how, replaced);
  if (renamed.ok() || renamed.code() == Code::kUnsupported) return renamed;
  auto published = IsPublished(plan);
  if (!published.ok()) return OutcomeUnknown(plan, renamed, published.status());
  return *published ? Status() : renamed;
}

Status Undo(const CommitPlan& plan, Rename how) {
  const Dir& root = plan.owner->root();
  const Status back = how == Rename::kExchange
                          ? root.RenameExchange(plan.step_folder, plan.staging_folder)
                          : root.RenameNoReplace(plan.step_folder, plan.staging_folder);
  CKPT_RETURN_IF_ERROR(back);
  // For a power loss after we said "failed": the step must not come back by itself.
  return root.Sync();
}

// 4.
Status Confirm(const CommitPlan& plan, Rename how) {
  // For a power loss after we said "committed": the new name must be there, and with an exchange
  // the old step must not be the one under it.
  const Status synced = plan.owner->root().Sync();
  if (synced.ok()) return synced;
  if (Abandoned(plan)) return OutcomeUnknown(plan, synced, ToldUnknown());
  const Status undone = Undo(plan, how);
  if (!undone.ok()) return OutcomeUnknown(plan, synced, undone);
  return Status(Code::kIo, Cat("commit of ", plan.step_folder, ", undone: ", synced.message()),
                synced.cause());
}

// 2 to 4, one commit of this process at a time.
Result<Committed> CommitLocked(const CommitPlan& plan) {
  // Again, and not only in Begin: another context may have committed this step since.
  CKPT_ASSIGN_OR_RETURN(const ExistingStep existing,
                        DecideExisting(plan.owner->root(), plan.options));
  CKPT_RETURN_IF_ERROR(plan.owner->Check());
  Committed committed{plan.step_folder, plan.sequence, {}, existing.loss};
  committed.kept = existing.what == Existing::kKept;
  Rename how = Rename::kPlain;
  // A round that is closed already (a cancel, a death) was closed with its own error, not with
  // "unknown": then nothing has begun, and the staging folder goes as after any failed save.
  CKPT_RETURN_IF_ERROR((*plan.enter_commit)());
  if (committed.kept) return committed;
  Status status = Publish(plan, existing.what, &how, &committed.replaced);
  if (status.ok()) status = Confirm(plan, how);
  if (status.ok()) {
    plan.owner->NoteCommitted(plan.sequence);
    return committed;
  }
  // Not published; but where all were told "unknown", the new files stay too.
  const bool known = status.code() != Code::kOutcomeUnknown;
  if (known && Abandoned(plan)) return OutcomeUnknown(plan, status, ToldUnknown());
  return status;
}

}  // namespace

Result<Committed> CommitStep(const CommitPlan& plan) {
  CKPT_RETURN_IF_ERROR(WriteRecord(plan));
  MutexLock lock(plan.owner->commit_mu());
  return CommitLocked(plan);
}

// 5.  Nothing here is synced: trash and LATEST may be as before after a power loss, and nobody is
// misled.  The exchange was synced, so the old files can go.
void FinishStep(Owner& owner, const Committed& committed, std::vector<std::string>* warnings) {
  const Dir& root = owner.root();
  const auto warn = [&](const Status& status) {
    if (!status.ok()) warnings->push_back(Cat("after the commit: ", status.message()));
    return status.ok();
  };
  if (!warn(owner.Check())) return;  // the root is somebody else's now, and so is the tidying
  {
    MutexLock lock(owner.commit_mu());
    // A newer commit, of another context, says so itself.
    if (owner.IsNewest(committed.sequence)) {
      warn(root.ReplaceFile(kLatestFile, committed.step_folder + "\n"));
    }
    warn(owner.WriteSequence());
  }
  std::string old = committed.replaced;
  if (old.starts_with(kStagingPrefix)) {
    const std::string trash = TrashFolder(NewId());
    if (!warn(root.RenameNoReplace(old, trash))) return;
    old = trash;
  }
  if (!old.empty()) warn(root.RemoveTree(old));
}

}  // namespace ckpt
