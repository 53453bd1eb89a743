// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The order of writes, fsyncs and renames of a commit: docs/format.md, "The commit".  Each sync
// says which crash it is for.  What follows a commit is in finish.cc.
// Test: tests/unit/store/commit_test.cc, tests/unit/store/commit_fault_test.cc
#include "store/commit.h"

#include <cerrno>

#include "store/existing.h"
#include "store/intent.h"
#include "store/names.h"
#include "util/text.h"

namespace ckpt {
namespace {

// How the step got its name, and so how that is undone and what is left behind.
enum class Rename { kPlain, kExchange, kIntent };

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

// Gives the old step its name back after the second rename failed.
Status PutBack(const CommitPlan& plan, const std::string& trash) {
  const Dir& root = plan.owner->root();
  CKPT_RETURN_IF_ERROR(root.RenameNoReplace(trash, plan.step_folder));
  // For a power loss: the intent must not go before the old step's name is on disk.
  return root.Sync();
}

// The intent has served, or was never needed.  One that stays is harmless while the step is there.
void DropIntent(const CommitPlan& plan, const std::string& trash) {
  (void)plan.owner->root().Unlink(IntentFile(plan.options.step)).ok();
  plan.owner->Unkeep(trash);
}

Status WriteIntent(const CommitPlan& plan, const std::string& trash, bool* there) {
  const Dir& root = plan.owner->root();
  const std::string file = IntentFile(plan.options.step);
  const Status written =
      root.WriteFile(file, EncodeIntent({plan.options.step, plan.staging_folder, trash}));
  *there = written.code() != Code::kExists;
  CKPT_RETURN_IF_ERROR(written);
  // For a crash between the renames: whoever misses the step must find the intent.
  return root.Sync();
}

// Two renames where two names cannot be exchanged; in between the intent says where the step is.
Status PublishByIntent(const CommitPlan& plan, std::string* replaced) {
  const Dir& root = plan.owner->root();
  const std::string trash = *replaced = TrashFolder(NewId());
  plan.owner->Keep(trash);
  bool intent = false;  // there may be one of ours
  Status status = WriteIntent(plan, trash, &intent);
  // Again, right before an old step's name is touched: a stopped process may be a late one.
  if (status.ok()) status = plan.owner->Check();
  if (status.ok()) status = root.RenameNoReplace(plan.step_folder, trash);
  if (!status.ok()) {
    // A network file system may do a rename and report an error.
    auto moved = root.Exists(trash);
    if (!moved.ok()) return OutcomeUnknown(plan, status, moved.status());
    if (!*moved) {
      // Else it may be another's.
      if (intent && status.code() != Code::kOwned) DropIntent(plan, trash);
      plan.owner->Unkeep(trash);
      return status;
    }
  }
  const Status renamed = root.RenameNoReplace(plan.staging_folder, plan.step_folder);
  if (renamed.ok()) return renamed;
  auto published = IsPublished(plan);
  if (!published.ok()) return OutcomeUnknown(plan, renamed, published.status());
  if (*published) return Status();
  if (Abandoned(plan)) return OutcomeUnknown(plan, renamed, ToldUnknown());
  const Status back = PutBack(plan, trash);
  if (!back.ok()) return OutcomeUnknown(plan, renamed, back);
  DropIntent(plan, trash);
  return renamed;
}

// 3.
Status Publish(const CommitPlan& plan, Existing existing, Rename* how, std::string* replaced) {
  const Dir& root = plan.owner->root();
  Status renamed;
  if (existing == Existing::kNone) {
    *how = Rename::kPlain;
    renamed = root.RenameNoReplace(plan.staging_folder, plan.step_folder);
  } else {
    *how = Rename::kExchange;
    *replaced = plan.staging_folder;
    renamed = root.RenameExchange(plan.staging_folder, plan.step_folder);
    if (renamed.code() == Code::kUnsupported) {
      *how = Rename::kIntent;
      return PublishByIntent(plan, replaced);
    }
  }
  if (renamed.ok()) return renamed;
  auto published = IsPublished(plan);
  if (!published.ok()) return OutcomeUnknown(plan, renamed, published.status());
  return *published ? Status() : renamed;
}

Status Undo(const CommitPlan& plan, Rename how, const std::string& replaced) {
  const Dir& root = plan.owner->root();
  if (how == Rename::kExchange) {
    CKPT_RETURN_IF_ERROR(root.RenameExchange(plan.step_folder, plan.staging_folder));
  } else {
    CKPT_RETURN_IF_ERROR(root.RenameNoReplace(plan.step_folder, plan.staging_folder));
  }
  if (how == Rename::kIntent) {
    CKPT_RETURN_IF_ERROR(PutBack(plan, replaced));
    DropIntent(plan, replaced);
    return Status();
  }
  // For a power loss after we said "failed": the step must not come back by itself.
  return root.Sync();
}

Status StillOurs(const CommitPlan& plan) {
  CKPT_RETURN_IF_ERROR(plan.owner->Check());
  CKPT_ASSIGN_OR_RETURN(const bool published, IsPublished(plan));
  return published ? Status() : Status(Code::kOwned, "another step has the name now");
}

// 4.
Status Confirm(const CommitPlan& plan, Rename how, const std::string& replaced) {
  // For a power loss after we said "committed": the new name must be there, and with an exchange
  // the old step must not be the one under it.
  const Status synced = plan.owner->root().Sync();
  if (synced.ok()) return synced;
  if (Abandoned(plan)) return OutcomeUnknown(plan, synced, ToldUnknown());
  // The storage may have stood still for so long that the root is another's now: then what has the
  // step's name is its to judge, and may be its own.
  const Status ours = StillOurs(plan);
  if (!ours.ok()) return OutcomeUnknown(plan, synced, ours);
  const Status undone = Undo(plan, how, replaced);
  if (!undone.ok()) return OutcomeUnknown(plan, synced, undone);
  return Status(Code::kIo, Cat("commit of ", plan.step_folder, ", undone: ", synced.message()),
                synced.cause());
}

// 2 to 4, one commit of this process at a time.
Result<Committed> CommitLocked(const CommitPlan& plan) {
  // One that an unknown outcome left: this commit needs to know where the step is.
  CKPT_RETURN_IF_ERROR(plan.owner->Check());
  CKPT_RETURN_IF_ERROR(RollIntent(plan.owner->root(), plan.options.step));
  // Again, and not only in Begin: another context may have committed this step since.
  CKPT_ASSIGN_OR_RETURN(const ExistingStep existing,
                        DecideExisting(plan.owner->root(), plan.options));
  CKPT_RETURN_IF_ERROR(plan.owner->Check());
  Committed committed;
  committed.step = plan.options.step;
  committed.step_folder = plan.step_folder;
  committed.sequence = plan.sequence;
  committed.loss = existing.loss;
  committed.kept = existing.what == Existing::kKept;
  Rename how = Rename::kPlain;
  // A round that is closed already (a cancel, a death) was closed with its own error, not with
  // "unknown": then nothing has begun, and the staging folder goes as after any failed save.
  CKPT_RETURN_IF_ERROR((*plan.enter_commit)());
  if (committed.kept) return committed;
  Status status = Publish(plan, existing.what, &how, &committed.replaced);
  if (status.ok()) status = Confirm(plan, how, committed.replaced);
  if (status.ok()) {
    plan.owner->NoteCommitted(plan.sequence);
    committed.by_intent = how == Rename::kIntent;
    if (committed.by_intent) plan.owner->Unkeep(committed.replaced);  // an intent names it still
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

}  // namespace ckpt
