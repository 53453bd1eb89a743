// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Policies for a step that exists.  Test: tests/unit/store/existing_test.cc
#include "store/existing.h"

#include <utility>

#include "store/names.h"
#include "store/steps.h"
#include "util/text.h"

namespace ckpt {
namespace {

Status Refuse(Code code, const Dir& root, const std::string& folder, std::string_view why) {
  Cause cause;
  cause.path = Cat(root.path(), "/", folder);
  const std::string words = Cat("step folder ", cause.path, " ", why);
  return Status(code, words, std::move(cause));
}

Result<Existing> DecideValid(const Dir& root, const StepTransaction::Options& options,
                             const CommitRecord& record) {
  const std::string folder = StepFolder(options.step);
  const bool own = record.lineage == options.lineage;
  const std::string what =
      Cat("exists: committed ", TimeText(record.created_unix_ns), " by ",
          own ? "this lineage, " : "another lineage, ", Printable(record.lineage));
  switch (options.on_existing) {
    case OnExisting::kAuto:
      if (own) return Existing::kReplace;
      return Refuse(Code::kExists, root, folder, what);
    case OnExisting::kReplace:
      if (own) return Existing::kReplace;
      return Refuse(Code::kUnsupported, root, folder,
                    Cat(what, "; replacing another lineage's step is not built yet"));
    case OnExisting::kRefuse:
    case OnExisting::kKeep:
      break;
  }
  return Refuse(Code::kExists, root, folder, what);
}

Status RefuseDamaged(const Dir& root, const StepTransaction::Options& options,
                     const Status& problem) {
  const bool replace = options.on_existing == OnExisting::kReplace;
  const std::string why =
      Cat("exists, and its record cannot be used (", CodeName(problem.code()), ": ",
          problem.message(), ")",
          replace ? "; replacing such a step is not built yet" : "; it is never replaced silently");
  return Refuse(replace ? Code::kUnsupported : Code::kExists, root, StepFolder(options.step), why);
}

}  // namespace

Result<Existing> DecideExisting(const Dir& root, const StepTransaction::Options& options) {
  const std::string folder = StepFolder(options.step);
  if (options.on_existing > OnExisting::kReplace) {
    return Status(Code::kUnsupported, Cat("step ", options.step, ": KEEP is not built yet"));
  }
  CKPT_ASSIGN_OR_RETURN(const bool there, root.Exists(folder));
  if (!there) return Existing::kNone;
  auto entry = FindStep(root, options.step);
  if (entry.ok()) return DecideValid(root, options, *entry->record);
  const Code code = entry.status().code();
  if (code == Code::kCorrupt || code == Code::kUnsupported || code == Code::kLimit) {
    return RefuseDamaged(root, options, entry.status());
  }
  if (code != Code::kNotFound) return entry.status();
  auto dir = root.OpenDir(folder);
  if (dir.ok()) return Existing::kLeftover;
  return Refuse(Code::kExists, root, folder, "is in the way: it is no folder");
}

}  // namespace ckpt
