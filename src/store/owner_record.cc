// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The owner's record.  Two rules make it safe without locks: a record appears whole, by link, which
// never overwrites; and one is taken away by rename to a name of our own, looked at there, and put
// back if it is not the one that was judged.  What an owner changes later, it writes into its own
// file and never over the name.  Test: tests/unit/store/owner_test.cc
#include "store/owner_record.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "store/json_in.h"
#include "store/names.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr char kOwnerFormat[] = "ckpt-owner";
constexpr uint64_t kMaxOwnerBytes = 64 << 10;
constexpr int kAttempts = 8;  // others may take and release between our steps

// Moves the record away if `is_it` says so of its text.  OK: gone, by us or by somebody else.
Status TakeAway(const Dir& root, const Dir& ckpt_dir,
                const std::function<bool(const std::string&)>& is_it) {
  const std::string aside = Cat("owner-", NewId(), ".old");
  const Status moved = ckpt_dir.Rename(kOwnerFile, aside);
  if (moved.code() == Code::kNotFound) return Status();
  CKPT_RETURN_IF_ERROR(moved);
  auto text = ckpt_dir.ReadFile(aside, kMaxOwnerBytes);
  if (text.ok() && is_it(*text)) return ckpt_dir.Unlink(aside);
  // Somebody took over, or the lease was renewed, between our look and our rename: it is theirs.
  // If a third one has linked a record meanwhile (EXISTS), the second finds out by its check before
  // it commits.
  const Status back = ckpt_dir.Link(aside, kOwnerFile);
  if (back.ok() || back.code() == Code::kExists) {
    CKPT_RETURN_IF_ERROR(ckpt_dir.Unlink(aside));
  }
  return OwnedBy(root, text.ok() ? *text : std::string());
}

Result<File> LinkOwn(const Dir& root, const Dir& ckpt_dir, const OwnerRecord& mine) {
  const std::string temp = Cat("owner-", mine.token, ".new");
  CKPT_RETURN_IF_ERROR(ckpt_dir.WriteFile(temp, EncodeOwner(mine)));
  // Opened under the name that is ours alone: once linked, the other name may be anybody's.
  auto file = ckpt_dir.OpenFile(temp, FileMode::kReadWrite, DirectIo::kOff);
  const Status linked = file.ok() ? ckpt_dir.Link(temp, kOwnerFile) : file.status();
  const Status unlinked = ckpt_dir.Unlink(temp);
  // EXISTS: another was faster.  NOT_FOUND: and has tidied our file away (CleanOwnerDir).
  if (linked.code() == Code::kExists || linked.code() == Code::kNotFound) {
    auto text = ReadOwnerText(ckpt_dir);
    // A network file system may do a link and report that it was there already.
    if (text.ok() && file.ok() && TokenOf(*text) == mine.token) return file;
    return OwnedBy(root, text.ok() ? *text : std::string());
  }
  CKPT_RETURN_IF_ERROR(linked);
  CKPT_RETURN_IF_ERROR(unlinked);
  return file;
}

// `text` has "`key`": 0, as JSON does not spell it inside a string.
void Widen(std::string* text, const std::string& key, uint64_t value) {
  const std::string zero = Cat("\"", key, "\": 0");
  text->replace(text->find(zero), zero.size(), fmt::format("\"{}\": {:>20}", key, value));
}

bool MayTake(const TakeRules& rules, const OwnerRecord& old, const std::string& text, Life life) {
  if (!rules.released.empty() && old.token == rules.released) return true;
  if (life == Life::kUnknown) return rules.force || text == rules.dead;
  return life == Life::kDead;
}

}  // namespace

std::string EncodeOwner(const OwnerRecord& r) {
  const Json json = {{"format", kOwnerFormat},
                     {"version", 1},
                     {"job_id", r.job_id},
                     {"host", r.process.host},
                     {"boot_id", r.process.boot_id},
                     {"pid_namespace", r.process.pid_namespace},
                     {"pid", r.process.pid},
                     {"start_time", r.process.start_time},
                     {"token", r.token},
                     {"lease", 0},
                     {"sequence", 0}};
  std::string text = JsonText(json, 1) + "\n";
  Widen(&text, "lease", r.lease);
  Widen(&text, "sequence", r.sequence);
  return text;
}

Result<OwnerRecord> DecodeOwner(std::string_view text) {
  CKPT_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(text));
  JsonFields fields(json, kOwnerFile);
  if (fields.Str("format") != kOwnerFormat) fields.Fail("not an owner's record");
  OwnerRecord r;
  r.job_id = fields.Str("job_id");
  r.process.host = fields.Str("host");
  r.process.boot_id = fields.Str("boot_id");
  r.process.pid_namespace = fields.Str("pid_namespace");
  r.process.pid = fields.I64("pid", 1, INT32_MAX);
  r.process.start_time = fields.U64("start_time");
  r.token = fields.Str("token");
  r.lease = fields.U64("lease");
  r.sequence = fields.U64("sequence");
  CKPT_RETURN_IF_ERROR(fields.status());
  return r;
}

Result<std::string> ReadOwnerText(const Dir& ckpt_dir) {
  return ckpt_dir.ReadFile(kOwnerFile, kMaxOwnerBytes);
}

std::string TokenOf(std::string_view text) {
  auto record = DecodeOwner(text);
  return record.ok() ? record->token : std::string();
}

Status OwnedBy(const Dir& root, std::string_view text) {
  Cause cause;
  cause.path = root.path();
  const std::string file = Cat(root.path(), "/", kOwnerDir, "/", kOwnerFile);
  auto r = DecodeOwner(text);
  if (!r.ok()) {
    return Status(Code::kOwned,
                  Cat("root ", root.path(),
                      ": has an owner whose record cannot be read; if no job "
                      "writes there, remove ",
                      file),
                  std::move(cause));
  }
  return Status(Code::kOwned,
                Cat("root ", root.path(), ": owned by job ", Printable(r->job_id), " (pid ",
                    r->process.pid, " on host ", Printable(r->process.host), ")"),
                std::move(cause));
}

Result<File> TakeOwnerRecord(const Dir& root, const Dir& ckpt_dir, const TakeRules& rules,
                             OwnerRecord* mine, std::string* elsewhere) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto text = ReadOwnerText(ckpt_dir);
    if (text.status().code() == Code::kNotFound) return LinkOwn(root, ckpt_dir, *mine);
    if (!text.ok() && text.status().code() != Code::kLimit) return text.status();
    auto old = DecodeOwner(text.ok() ? *text : std::string());
    if (!old.ok()) return OwnedBy(root, {});
    const Life life = LifeOf(old->process, mine->process);
    if (!MayTake(rules, *old, *text, life)) {
      if (life == Life::kUnknown) *elsewhere = *text;
      return OwnedBy(root, *text);
    }
    mine->sequence = std::max(mine->sequence, old->sequence);
    CKPT_RETURN_IF_ERROR(
        TakeAway(root, ckpt_dir, [&](const std::string& found) { return found == *text; }));
  }
  return Status(Code::kOwned, Cat("root ", root.path(), ": other processes are taking it"));
}

Status ReleaseOwnerRecord(const Dir& ckpt_dir, const std::string& token) {
  const auto ours = [&](const std::string& text) { return TokenOf(text) == token; };
  auto now = ReadOwnerText(ckpt_dir);
  if (!now.ok() || !ours(*now)) return Status();
  const Status gone = TakeAway(ckpt_dir, ckpt_dir, ours);
  return gone.code() == Code::kOwned ? Status() : gone;
}

void CleanOwnerDir(const Dir& ckpt_dir) {
  auto entries = ckpt_dir.List();
  if (!entries.ok()) return;
  const ProcessId self = ThisProcess();
  for (const DirEntry& entry : *entries) {
    if (entry.is_dir || entry.name == kOwnerFile) continue;
    if (entry.name.starts_with(kProbePrefix)) {
      (void)ckpt_dir.Unlink(entry.name).ok();
      continue;
    }
    // A living process's file is a takeover in progress, even where it will fail.
    auto text = ckpt_dir.ReadFile(entry.name, kMaxOwnerBytes);
    if (!text.ok()) continue;
    auto record = DecodeOwner(*text);
    // Half written, by one that died, or that now finds the root taken.
    const bool half = !record.ok() && entry.name.starts_with("owner-");
    if (!half && (!record.ok() || LifeOf(record->process, self) != Life::kDead)) continue;
    (void)ckpt_dir.Unlink(entry.name).ok();  // the next owner tries again
  }
}

}  // namespace ckpt
