// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The order of writes, fsyncs and renames of a commit: docs/format.md, "The commit, step by step",
// numbers 5 to 8.  Each sync says which crash it is for.
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

// 5.
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
Status MoveLeftoverAway(const CommitPlan& plan) {
  const Dir& root = plan.owner->root();
  const std::string trash = TrashFolder(NewId());
  CKPT_RETURN_IF_ERROR(root.Rename(plan.step_folder, trash));
  const Status renamed = root.RenameNoReplace(plan.staging_folder, plan.step_folder);
  if (renamed.ok()) (void)root.RemoveTree(trash).ok();  // else the next owner does it
  return renamed;
}

Status TryRename(const CommitPlan& plan, Existing existing, Rename* how) {
  const Dir& root = plan.owner->root();
  *how = Rename::kPlain;
  if (existing == Existing::kNone) {
    return root.RenameNoReplace(plan.staging_folder, plan.step_folder);
  }
  const Status exchanged = root.RenameExchange(plan.staging_folder, plan.step_folder);
  if (exchanged.code() == Code::kUnsupported && existing == Existing::kLeftover) {
    return MoveLeftoverAway(plan);
  }
  *how = Rename::kExchange;
  if (exchanged.code() != Code::kUnsupported) return exchanged;
  return exchanged.WithMessage(Cat(exchanged.message(), ": ", plan.step_folder,
                                   " exists, and replacing it without an exchange of names is not "
                                   "built yet"));
}

// 6.
Status Publish(const CommitPlan& plan, Existing existing, Rename* how) {
  const Status renamed = TryRename(plan, existing, how);
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

// 7.
Status Confirm(const CommitPlan& plan, Rename how) {
  // For a power loss after we said "committed": the new name must be there, and with an exchange
  // the old step must not be the one under it.
  const Status synced = plan.owner->root().Sync();
  if (synced.ok()) return synced;
  const Status undone = Undo(plan, how);
  if (!undone.ok()) return OutcomeUnknown(plan, synced, undone);
  return Status(Code::kIo, Cat("commit of ", plan.step_folder, ", undone: ", synced.message()),
                synced.cause());
}

// 8, and the old step.  Nothing here is synced: trash and LATEST may be as before after a power
// loss, and nobody is misled.  The exchange was synced, so the old files can go.
void TidyUp(const CommitPlan& plan, Rename how, std::string* trash,
            std::vector<std::string>* warnings) {
  const Dir& root = plan.owner->root();
  const auto warn = [&](const Status& status) {
    if (!status.ok()) warnings->push_back(Cat("after the commit: ", status.message()));
    return status.ok();
  };
  const std::string name = TrashFolder(NewId());
  if (how == Rename::kExchange && warn(root.RenameNoReplace(plan.staging_folder, name))) {
    *trash = name;
  }
  warn(root.ReplaceFile(kLatestFile, plan.step_folder + "\n"));
  warn(plan.owner->NoteCommitted(plan.sequence));
}

// 6 and 7, one commit of this process at a time.
Status CommitLocked(const CommitPlan& plan, std::string* trash,
                    std::vector<std::string>* warnings) {
  // Again, and not only in Begin: another context may have committed this step since.
  CKPT_ASSIGN_OR_RETURN(const Existing existing, DecideExisting(plan.owner->root(), plan.options));
  CKPT_RETURN_IF_ERROR(plan.owner->Check());
  CKPT_RETURN_IF_ERROR((*plan.enter_commit)());
  Rename how = Rename::kPlain;
  CKPT_RETURN_IF_ERROR(Publish(plan, existing, &how));
  CKPT_RETURN_IF_ERROR(Confirm(plan, how));
  TidyUp(plan, how, trash, warnings);
  return Status();
}

}  // namespace

Status CommitStep(const CommitPlan& plan, std::vector<std::string>* warnings) {
  CKPT_RETURN_IF_ERROR(WriteRecord(plan));
  std::string trash;
  {
    MutexLock lock(plan.owner->commit_mu());
    CKPT_RETURN_IF_ERROR(CommitLocked(plan, &trash, warnings));
  }
  if (trash.empty()) return Status();
  const Status removed = plan.owner->root().RemoveTree(trash);
  if (!removed.ok()) warnings->push_back(Cat("after the commit: ", removed.message()));
  return Status();
}

}  // namespace ckpt
