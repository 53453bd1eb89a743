// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Intents: written by commit.cc, followed by readers, ended here.
// Test: tests/unit/store/intent_test.cc
#include "store/intent.h"

#include "store/json_in.h"
#include "store/names.h"
#include "store/store.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr char kIntentFormat[] = "ckpt-replace";
constexpr uint64_t kMaxIntentBytes = 4096;
constexpr int kLooks = 4;  // the owner may be between two steps at each of ours

Result<Intent> DecodeIntent(std::string_view text, const std::string& where) {
  CKPT_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(text));
  JsonFields fields(json, where);
  if (fields.Str("format") != kIntentFormat) fields.Fail("not an intent");
  Intent intent;
  intent.step = fields.I64("step", 0, INT64_MAX);
  intent.staging = fields.Str("staging");
  intent.trash = fields.Str("trash");
  // Names from a file: they must not lead anywhere else.
  if (!intent.staging.starts_with(kStagingPrefix) || !intent.trash.starts_with(kTrashPrefix)) {
    fields.Fail("names other folders than staging and trash");
  }
  CKPT_RETURN_IF_ERROR(fields.status());
  return intent;
}

// All that a commit would have published.
bool IsWhole(const Dir& root, const std::string& staging, int64_t step) {
  auto dir = root.OpenDir(staging);
  if (!dir.ok()) return false;
  auto catalog = ReadCatalog(*dir);
  return catalog.ok() && catalog->record.step == step;
}

// The step's name is free: gives it to the new folder, else to the old one.
Status Restore(const Dir& root, const Intent& intent) {
  const std::string folder = StepFolder(intent.step);
  if (IsWhole(root, intent.staging, intent.step)) {
    return root.RenameNoReplace(intent.staging, folder);
  }
  const Status back = root.RenameNoReplace(intent.trash, folder);
  return back.code() == Code::kNotFound ? Status() : back;  // neither is there
}

}  // namespace

std::string EncodeIntent(const Intent& intent) {
  const Json json = {{"format", kIntentFormat},
                     {"step", intent.step},
                     {"staging", intent.staging},
                     {"trash", intent.trash}};
  return JsonText(json, 1) + "\n";
}

Result<Intent> ReadIntent(const Dir& root, int64_t step) {
  const std::string file = IntentFile(step);
  auto text = root.ReadFile(file, kMaxIntentBytes);
  if (!text.ok() && text.status().code() != Code::kLimit) return text.status();
  auto intent = DecodeIntent(text.ok() ? *text : std::string(), file);
  if (intent.ok() && intent->step == step) return intent;
  Cause cause;
  cause.path = Cat(root.path(), "/", file);
  const std::string why = intent.ok() ? "of another step" : intent.status().message();
  const std::string words = Cat("intent ", cause.path, ": ", why);
  return Status(Code::kCorrupt, words, std::move(cause));
}

Status RollIntent(const Dir& root, int64_t step) {
  auto intent = ReadIntent(root, step);
  if (intent.status().code() == Code::kNotFound) return Status();
  CKPT_ASSIGN_OR_RETURN(const bool there, root.Exists(StepFolder(step)));
  if (!there) {
    if (!intent.ok()) return intent.status();
    CKPT_RETURN_IF_ERROR(Restore(root, *intent));
  }
  // For a power loss: while the step's name may not be on disk, its intent must be.
  CKPT_RETURN_IF_ERROR(root.Sync());
  return root.Unlink(IntentFile(step));
}

std::vector<std::string> RollIntents(const Dir& root) {
  auto entries = root.List();
  if (!entries.ok()) return {Cat("intents are not followed: ", entries.status().message())};
  std::vector<std::string> warnings;
  for (const DirEntry& entry : *entries) {
    const auto step = ParseIntentFile(entry.name);
    if (!step) continue;
    const Status rolled = RollIntent(root, *step);
    if (!rolled.ok()) {
      warnings.push_back(Cat(root.path(), "/", entry.name, " stays: ", rolled.message()));
    }
  }
  return warnings;
}

Result<std::set<std::string>> NamedByIntents(const Dir& root,
                                             const std::vector<DirEntry>& entries) {
  std::set<std::string> names;
  for (const DirEntry& entry : entries) {
    const auto step = ParseIntentFile(entry.name);
    if (!step) continue;
    auto intent = ReadIntent(root, *step);
    if (intent.status().code() == Code::kNotFound) continue;
    if (!intent.ok()) return intent.status();
    names.insert({intent->staging, intent->trash});
  }
  return names;
}

Result<std::string> LocateStep(const Dir& root, int64_t step) {
  std::string folder = StepFolder(step);
  Status problem(Code::kNotFound, Cat(root.path(), ": no step ", step));
  for (int look = 0; look < kLooks; ++look) {
    CKPT_ASSIGN_OR_RETURN(const bool there, root.Exists(folder));
    if (there) return folder;
    auto intent = ReadIntent(root, step);
    if (intent.ok()) {
      CKPT_ASSIGN_OR_RETURN(const bool old, root.Exists(intent->trash));
      if (old) return intent->trash;
    } else if (intent.status().code() == Code::kNotFound) {
      // The replacement may have ended between our two looks: then the step is there.
      CKPT_ASSIGN_OR_RETURN(const bool ended, root.Exists(folder));
      if (ended) return folder;
      return intent.status().WithMessage(problem.message());
    } else {
      problem = intent.status();
    }
  }
  return problem;
}

}  // namespace ckpt
