// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Which steps a root holds, and which is newest: by the sequence in their records, never by step
// number, file time or LATEST.  Test: tests/unit/store/steps_test.cc
#include "store/steps.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>
#include <utility>

#include "store/intent.h"
#include "store/names.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;  // 4 bytes per MiB: some 200 TB
constexpr uint64_t kMaxLatestBytes = 256;
constexpr int kLooks = 4;  // the owner may move a step between two looks of a reader
constexpr uint64_t kMaxHint = uint64_t{1} << 62;  // above: damage in the number itself

Status WithPath(const Dir& step, const Status& status) {
  Cause cause = status.cause();
  cause.path = Cat(step.path(), "/", kRecordFile);
  return Status(status.code(), Cat(step.path(), "/", status.message()), std::move(cause));
}

Status ReadMarks(const Dir& step, StepEntry* entry) {
  CKPT_ASSIGN_OR_RETURN(entry->pinned, step.Exists(kPinnedMark));
  CKPT_ASSIGN_OR_RETURN(entry->bad, step.Exists(kBadMark));
  return Status();
}

// What is in `folder`, which is the step's own or, while it is replaced, the old one's; nullopt: no
// record, or gone meanwhile.
std::optional<StepEntry> ReadEntry(const Dir& root, const std::string& folder, int64_t number) {
  StepEntry entry;
  entry.step = number;
  entry.folder = folder;
  auto step = root.OpenDir(folder);
  if (step.status().code() == Code::kNotFound) return std::nullopt;
  if (!step.ok()) {
    entry.problem = step.status();
    return entry;
  }
  auto text = ReadRecordText(*step);
  if (text.status().code() == Code::kNotFound) return std::nullopt;
  entry.problem = text.ok() ? ReadMarks(*step, &entry) : text.status();
  if (!entry.problem.ok()) return entry;
  auto record = DecodeRecordOf(*step, *text, number);
  if (record.ok()) {
    entry.record = std::move(record).value();
  } else {
    entry.problem = record.status();
    entry.sequence_hint = SequenceHint(*text);
  }
  return entry;
}

// nullopt: not a step.
std::optional<StepEntry> ReadStep(const Dir& root, int64_t number) {
  for (int look = 0; look < kLooks; ++look) {
    auto folder = LocateStep(root, number);
    if (folder.status().code() == Code::kNotFound) return std::nullopt;
    if (!folder.ok()) {
      StepEntry entry;
      entry.step = number;
      entry.folder = StepFolder(number);
      entry.problem = folder.status();
      return entry;
    }
    auto entry = ReadEntry(root, *folder, number);
    if (entry) return entry;
    // No step; or moved, or replaced and emptied, between our two looks.
  }
  return std::nullopt;
}

// Numbers of all that may be a step: folders with a step's name, and steps being replaced.
Result<std::set<int64_t>> ListNumbers(const Dir& root) {
  CKPT_ASSIGN_OR_RETURN(const auto entries, root.List());
  std::set<int64_t> numbers;
  for (const DirEntry& entry : entries) {
    const auto folder = entry.is_dir ? ParseStepFolder(entry.name) : std::nullopt;
    if (folder) numbers.insert(*folder);
    const auto intent = ParseIntentFile(entry.name);
    if (intent) numbers.insert(*intent);
  }
  return numbers;
}

bool Newer(const StepEntry& a, const StepEntry& b) {
  if (a.record.has_value() != b.record.has_value()) return a.record.has_value();
  if (a.record && a.record->sequence != b.record->sequence) {
    return a.record->sequence > b.record->sequence;
  }
  return a.step > b.step;
}

// A commit that still knew the folder came after it.
bool ProvenOlder(const StepEntry& damaged, const std::vector<StepEntry>& steps,
                 const std::string& latest) {
  const std::string folder = StepFolder(damaged.step);
  // It does not say when it was written, and may have been saved again since the others knew it.
  if (damaged.sequence_hint == 0 && folder == latest) return false;
  return std::any_of(steps.begin(), steps.end(), [&](const StepEntry& s) {
    // A step replaced after the other's commit is newer than what the other knew under its name.
    if (!s.record || damaged.sequence_hint > s.record->sequence) return false;
    const auto& known = s.record->known;
    return std::any_of(known.begin(), known.end(),
                       [&](const auto& k) { return k.second == folder; });
  });
}

// The step's folder that LATEST names; "": none.  A hint, never trusted.
std::string LatestHint(const Dir& root) {
  auto text = root.ReadFile(kLatestFile, kMaxLatestBytes);
  if (!text.ok()) return {};
  const std::string name = text->substr(0, text->find_last_not_of(" \r\n") + 1);
  return ParseStepFolder(name) ? name : std::string();
}

void CheckLatest(const Dir& root, const std::string& name, const std::vector<StepEntry>& steps,
                 std::vector<std::string>* warnings) {
  if (name.empty()) return;
  const bool there = std::any_of(steps.begin(), steps.end(),
                                 [&](const StepEntry& s) { return StepFolder(s.step) == name; });
  if (there) return;
  warnings->push_back(Cat(root.path(), ": ", kLatestFile, " names ", name,
                          ", which is no step there; it is only a hint"));
}

}  // namespace

Result<std::string> ReadRecordText(const Dir& step) {
  auto text = step.ReadFile(kRecordFile, kMaxRecordBytes);
  Cause cause = text.status().cause();
  // A link in its place is not a passing error of the storage.
  if (cause.sys_errno == ELOOP) return Status(Code::kCorrupt, text.status().message(), cause);
  if (text.status().code() != Code::kNotFound) return text;
  cause.path = step.path();
  return Status(Code::kNotFound, Cat(step.path(), ": the folder has no ", kRecordFile),
                std::move(cause));
}

Result<CommitRecord> DecodeRecordOf(const Dir& step, std::string_view text,
                                    std::optional<int64_t> number) {
  auto record = DecodeRecord(text);
  if (!record.ok()) return WithPath(step, record.status());
  if (!number) number = ParseStepFolder(BaseName(step.path()));
  if (number && *number != record->step) {
    return WithPath(step,
                    Status(Code::kCorrupt, Cat(kRecordFile, ": the record of step ", record->step,
                                               ", in the folder of ", *number)));
  }
  return record;
}

uint64_t SequenceHint(std::string_view text) {
  constexpr std::string_view kKey = "\"sequence\": ";
  const size_t at =
      text.find(kKey);  // the keys before it hold no such text: no space follows a colon
  if (at == std::string_view::npos) return 0;
  uint64_t value = 0;
  for (char c : text.substr(at + kKey.size())) {
    if (c < '0' || c > '9') break;
    value = value * 10 + static_cast<uint64_t>(c - '0');
    if (value > kMaxHint) return 0;
  }
  return value;
}

std::string TimeText(int64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / 1'000'000'000);
  struct tm utc {};
  if (gmtime_r(&seconds, &utc) == nullptr) return Cat(unix_ns, " ns after 1970");
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

Result<std::vector<StepEntry>> ListSteps(const Dir& root) {
  CKPT_ASSIGN_OR_RETURN(std::set<int64_t> numbers, ListNumbers(root));
  // A listing is not atomic: while a step is replaced by two renames, one may pass over its folder
  // and its intent.  So two must agree.
  for (int look = 0; look < kLooks; ++look) {
    CKPT_ASSIGN_OR_RETURN(std::set<int64_t> again, ListNumbers(root));
    if (again == numbers) break;
    numbers = std::move(again);
  }
  std::vector<StepEntry> steps;
  for (const int64_t number : numbers) {
    auto step = ReadStep(root, number);
    if (step) steps.push_back(std::move(*step));
  }
  std::sort(steps.begin(), steps.end(), Newer);
  return steps;
}

namespace {

// All valid steps that are not bad, newest first, never empty.
Result<std::vector<StepEntry>> Choose(const Dir& root, OnDamage on_damage,
                                      std::vector<std::string>* warnings) {
  const Status none(Code::kNoCheckpoint, Cat(root.path(), ": no committed step"));
  if (!root.valid()) return none;
  CKPT_ASSIGN_OR_RETURN(auto steps, ListSteps(root));
  const std::string latest = LatestHint(root);
  std::vector<std::string> words;
  std::optional<Status> damage;
  for (const StepEntry& step : steps) {
    if (step.record) continue;
    const bool older = ProvenOlder(step, steps, latest);
    if (!step.bad && !damage) damage = step.problem;
    if (!step.bad && !older && on_damage == OnDamage::kFail) return step.problem;
    words.push_back(Cat("passed over ", step.folder,
                        step.bad ? ", which is marked bad: "
                        : older  ? ", which is older: "
                                 : ", which may be the newest, for an older one: ",
                        step.problem.message()));
  }
  CheckLatest(root, latest, steps, &words);
  if (warnings != nullptr) warnings->insert(warnings->end(), words.begin(), words.end());
  const bool bad = std::any_of(steps.begin(), steps.end(), [](const auto& s) { return s.bad; });
  std::erase_if(steps, [](const StepEntry& s) { return !s.record || s.bad; });
  if (!steps.empty()) return steps;
  if (damage) return *damage;  // unreadable is not the same as none
  return bad ? none.WithMessage(Cat(none.message(), " that is not marked bad")) : none;
}

}  // namespace

Result<StepEntry> NewestStep(const Dir& root, std::vector<std::string>* warnings,
                             OnDamage on_damage) {
  CKPT_ASSIGN_OR_RETURN(auto steps, Choose(root, on_damage, warnings));
  return std::move(steps.front());
}

Result<std::vector<StepEntry>> StepsForFallback(const Dir& root,
                                                std::vector<std::string>* warnings) {
  return Choose(root, OnDamage::kFallBack, warnings);
}

namespace {

Result<StepEntry> FindIn(const Dir& root, const std::string& folder, int64_t step,
                         const Status& none) {
  auto dir = root.OpenDir(folder);
  if (dir.status().cause().sys_errno == ENOTDIR) {
    return none.WithMessage(
        Cat(none.message(), ": ", folder, " is no folder (links are not followed)"));
  }
  if (!dir.ok()) return dir.status();
  CKPT_ASSIGN_OR_RETURN(const std::string text, ReadRecordText(*dir));
  StepEntry entry;
  entry.step = step;
  entry.folder = folder;
  CKPT_ASSIGN_OR_RETURN(entry.record, DecodeRecordOf(*dir, text, step));
  CKPT_RETURN_IF_ERROR(ReadMarks(*dir, &entry));
  return entry;
}

}  // namespace

Result<StepEntry> FindStep(const Dir& root, int64_t step) {
  Cause cause;
  cause.path = root.path();
  const Status none(Code::kNotFound, Cat(root.path(), ": no step ", step), cause);
  if (step < 0 || !root.valid()) return none;
  Status last = none;
  for (int look = 0; look < kLooks; ++look) {
    auto folder = LocateStep(root, step);
    if (folder.status().code() == Code::kNotFound) return none;
    if (!folder.ok()) return folder.status();
    auto entry = FindIn(root, *folder, step, none);
    if (entry.status().code() != Code::kNotFound) return entry;
    // No step; or moved, or replaced and emptied, between our two looks.
    last = entry.status();
  }
  return last;
}

}  // namespace ckpt
