// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The owner's record.  Two rules make it safe without locks: a record appears whole, by link, which
// never overwrites; and one is taken away by rename to a name of our own, looked at there, and put
// back if it is not the one that was judged.  Test: tests/unit/store/owner_test.cc
#include "store/owner_record.h"

#include <algorithm>

#include "store/json_in.h"
#include "store/names.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr char kOwnerFormat[] = "ckpt-owner";
constexpr uint64_t kMaxOwnerBytes = 64 << 10;
constexpr int kAttempts = 8;  // others may take and release between our steps

// Moves the dead record `judged` out of the way.  OK: gone, by us or by somebody else.
Status RemoveDead(const Dir& root, const Dir& ckpt_dir, const std::string& judged) {
  const std::string aside = Cat("owner-", NewId(), ".old");
  const Status moved = ckpt_dir.Rename(kOwnerFile, aside);
  if (moved.code() == Code::kNotFound) return Status();
  CKPT_RETURN_IF_ERROR(moved);
  auto text = ckpt_dir.ReadFile(aside, kMaxOwnerBytes);
  if (text.ok() && *text == judged) return ckpt_dir.Unlink(aside);
  // Somebody took over between our look and our rename: it is theirs.  If a third one has linked a
  // record meanwhile (EXISTS), the second finds out by its check before it commits.
  const Status back = ckpt_dir.Link(aside, kOwnerFile);
  if (back.ok() || back.code() == Code::kExists) {
    CKPT_RETURN_IF_ERROR(ckpt_dir.Unlink(aside));
  }
  return OwnedBy(root, text.ok() ? *text : std::string());
}

Status LinkOwn(const Dir& root, const Dir& ckpt_dir, const OwnerRecord& mine) {
  const std::string temp = Cat("owner-", mine.token, ".new");
  CKPT_RETURN_IF_ERROR(ckpt_dir.WriteFile(temp, EncodeOwner(mine)));
  const Status linked = ckpt_dir.Link(temp, kOwnerFile);
  const Status unlinked = ckpt_dir.Unlink(temp);
  // EXISTS: another was faster.  NOT_FOUND: and has tidied our file away (CleanOwnerDir).
  if (linked.code() == Code::kExists || linked.code() == Code::kNotFound) {
    auto text = ReadOwnerText(ckpt_dir);
    return OwnedBy(root, text.ok() ? *text : std::string());
  }
  CKPT_RETURN_IF_ERROR(linked);
  return unlinked;
}

}  // namespace

std::string EncodeOwner(const OwnerRecord& r) {
  const Json json = {{"format", kOwnerFormat},
                     {"version", 1},
                     {"job_id", r.job_id},
                     {"host", r.process.host},
                     {"machine_id", r.process.machine_id},
                     {"boot_id", r.process.boot_id},
                     {"pid_namespace", r.process.pid_namespace},
                     {"pid", r.process.pid},
                     {"start_time", r.process.start_time},
                     {"token", r.token},
                     {"lease", r.lease},
                     {"sequence", r.sequence}};
  return JsonText(json, 1) + "\n";
}

Result<OwnerRecord> DecodeOwner(std::string_view text) {
  CKPT_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(text));
  JsonFields fields(json, kOwnerFile);
  if (fields.Str("format") != kOwnerFormat) fields.Fail("not an owner's record");
  OwnerRecord r;
  r.job_id = fields.Str("job_id");
  r.process.host = fields.Str("host");
  r.process.machine_id = fields.Str("machine_id");
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
  std::string words = Cat("root ", root.path(), ": owned by job ", Printable(r->job_id), " (pid ",
                          r->process.pid, " on host ", Printable(r->process.host), ")");
  if (LifeOf(r->process, ThisProcess()) == Life::kUnknown) {
    words +=
        Cat("; whether it lives cannot be seen from this host or container: if it does not, "
            "remove ",
            file);
  }
  return Status(Code::kOwned, std::move(words), std::move(cause));
}

Status TakeOwnerRecord(const Dir& root, const Dir& ckpt_dir, const std::string& released,
                       OwnerRecord* mine) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto text = ReadOwnerText(ckpt_dir);
    if (text.status().code() == Code::kNotFound) return LinkOwn(root, ckpt_dir, *mine);
    if (!text.ok() && text.status().code() != Code::kLimit) return text.status();
    auto old = DecodeOwner(text.ok() ? *text : std::string());
    if (!old.ok()) return OwnedBy(root, {});
    const bool ours = !released.empty() && *text == released;
    if (!ours && LifeOf(old->process, mine->process) != Life::kDead) return OwnedBy(root, *text);
    mine->sequence = std::max(mine->sequence, old->sequence);
    CKPT_RETURN_IF_ERROR(RemoveDead(root, ckpt_dir, *text));
  }
  return Status(Code::kOwned, Cat("root ", root.path(), ": other processes are taking it"));
}

Status ReleaseOwnerRecord(const Dir& ckpt_dir, const std::string& text) {
  auto now = ReadOwnerText(ckpt_dir);
  if (!now.ok() || *now != text) return Status();
  return ckpt_dir.Unlink(kOwnerFile);
}

void CleanOwnerDir(const Dir& ckpt_dir) {
  auto entries = ckpt_dir.List();
  if (!entries.ok()) return;
  const ProcessId self = ThisProcess();
  for (const DirEntry& entry : *entries) {
    if (entry.is_dir || entry.name == kOwnerFile) continue;
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
