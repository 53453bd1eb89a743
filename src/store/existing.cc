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

Result<ExistingStep> DecideValid(const Dir& root, const StepTransaction::Options& options,
                                 const CommitRecord& record) {
  const std::string folder = StepFolder(options.step);
  const bool own = record.lineage == options.lineage;
  const std::string by =
      Cat("committed ", TimeText(record.created_unix_ns), " by ",
          own ? "this lineage, " : "another lineage, ", Printable(record.lineage));
  switch (options.on_existing) {
    case OnExisting::kKeep:
      return ExistingStep{Existing::kKept, {}};
    case OnExisting::kAuto:
      if (own) return ExistingStep{Existing::kReplace, {}};
      break;
    case OnExisting::kReplace:
      return ExistingStep{Existing::kReplace, own ? std::string() : Cat(folder, " was ", by)};
    case OnExisting::kRefuse:
      break;
  }
  return Refuse(Code::kExists, root, folder, Cat("exists: ", by));
}

Result<ExistingStep> DecideDamaged(const Dir& root, const StepTransaction::Options& options,
                                   const Status& problem) {
  const std::string folder = StepFolder(options.step);
  const std::string damage = Cat(CodeName(problem.code()), ": ", problem.message());
  switch (options.on_existing) {
    case OnExisting::kKeep:
      return problem;  // there is no step to keep, and none may be made in its place
    case OnExisting::kReplace:
      return ExistingStep{Existing::kReplace,
                          Cat(folder, " had a record that could not be used (", damage, ")")};
    case OnExisting::kAuto:
    case OnExisting::kRefuse:
      break;
  }
  return Refuse(
      Code::kExists, root, folder,
      Cat("exists, and its record cannot be used (", damage, "); it is never replaced silently"));
}

}  // namespace

bool IsDamage(Code code) {
  return code == Code::kCorrupt || code == Code::kUnsupported || code == Code::kLimit;
}

Result<ExistingStep> DecideExisting(const Dir& root, const StepTransaction::Options& options) {
  const std::string folder = StepFolder(options.step);
  if (options.on_existing > OnExisting::kKeep) {
    return Status(Code::kInvalidArgument, Cat("step ", options.step, ": no such policy"));
  }
  auto entry = FindStep(root, options.step);
  if (entry.ok()) return DecideValid(root, options, *entry->record);
  if (IsDamage(entry.status().code())) return DecideDamaged(root, options, entry.status());
  if (entry.status().code() != Code::kNotFound) return entry.status();
  CKPT_ASSIGN_OR_RETURN(const bool there, root.Exists(folder));
  if (!there) return ExistingStep();
  auto dir = root.OpenDir(folder);
  if (dir.ok()) return ExistingStep{Existing::kLeftover, {}};
  return Refuse(Code::kExists, root, folder, "is in the way: it is no folder");
}

}  // namespace ckpt
