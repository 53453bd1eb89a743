// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Taking, checking and releasing a root.  Test: tests/unit/store/owner_test.cc
#include "store/owner.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "store/intent.h"
#include "store/leftovers.h"
#include "store/names.h"
#include "util/text.h"

namespace ckpt {
namespace {

// NOT_FOUND would read as "there is no checkpoint": a saver's root is made, and this one cannot be.
Result<Dir> MakeRoot(const std::string& root) {
  auto dir = Dir::Make(root);
  if (dir.status().code() != Code::kNotFound) return dir;
  return Status(Code::kIo, Cat("root ", root, " cannot be made: ", dir.status().message()),
                dir.status().cause());
}

// Links are not followed: .ckpt must be a folder of this root.
Result<Dir> MakeOwnerDir(const Dir& root) {
  const Status made = root.MakeDir(kOwnerDir);
  if (!made.ok() && made.code() != Code::kExists) return made;
  return root.OpenDir(kOwnerDir);
}

}  // namespace

Owner::Owner(Dir root, Dir ckpt_dir, std::shared_ptr<RootSlot> slot, OwnerRecord record)
    : pid_(getpid()),
      root_(std::move(root)),
      ckpt_dir_(std::move(ckpt_dir)),
      slot_(std::move(slot)),
      record_(std::move(record)),
      text_(EncodeOwner(record_)),
      committed_(record_.sequence) {}

Owner::~Owner() {
  // In a forked child the record is the parent's, and the mutex may have been held when it forked.
  if (!InThisProcess()) return;
  MutexLock lock(slot_->mu);
  const Status released = ReleaseOwnerRecord(ckpt_dir_, text_);
  // On an error the record stays; the slot still knows it, so this process can take it back.
  if (released.ok() && slot_->record == text_) slot_->record.clear();
}

bool Owner::InThisProcess() const { return getpid() == pid_; }

Status Owner::CheckLocked() const {
  auto text = ReadOwnerText(ckpt_dir_);
  if (text.ok() && *text == text_) return Status();
  if (text.ok()) return OwnedBy(root_, *text);
  if (text.status().code() != Code::kNotFound) return text.status();
  Cause cause;
  cause.path = root_.path();
  return Status(Code::kOwned,
                Cat("root ", root_.path(), ": this job no longer owns it: its record is gone"),
                std::move(cause));
}

Status Owner::Check() const {
  if (!InThisProcess()) {
    return Status(Code::kForked, Cat("root ", root_.path(), ": owned by the parent process"));
  }
  MutexLock lock(slot_->mu);
  return CheckLocked();
}

Result<uint64_t> Owner::ReserveSequence(uint64_t seen) {
  MutexLock lock(slot_->mu);
  const uint64_t highest = std::max({seen, committed_, reserved_});
  if (highest == UINT64_MAX) {
    return Status(Code::kLimit, Cat("root ", root_.path(), ": no sequence number is left"));
  }
  reserved_ = highest + 1;
  return reserved_;
}

void Owner::ReturnSequence(uint64_t sequence) {
  MutexLock lock(slot_->mu);
  if (reserved_ == sequence) reserved_ = sequence - 1;
}

void Owner::NoteCommitted(uint64_t sequence) {
  MutexLock lock(slot_->mu);
  committed_ = std::max(committed_, sequence);
}

bool Owner::IsNewest(uint64_t sequence) const {
  MutexLock lock(slot_->mu);
  return sequence >= committed_;
}

Status Owner::WriteSequence() {
  MutexLock lock(slot_->mu);
  if (committed_ <= record_.sequence) return Status();
  CKPT_RETURN_IF_ERROR(CheckLocked());
  OwnerRecord next = record_;
  next.sequence = committed_;
  const std::string text = EncodeOwner(next);
  CKPT_RETURN_IF_ERROR(ckpt_dir_.ReplaceFile(kOwnerFile, text));
  record_ = std::move(next);
  text_ = text;
  slot_->record = text;
  return Status();
}

void Owner::Keep(const std::string& folder) {
  MutexLock lock(slot_->mu);
  slot_->kept.insert(folder);
}

void Owner::Unkeep(const std::string& folder) {
  MutexLock lock(slot_->mu);
  slot_->kept.erase(folder);
}

std::set<std::string> Owner::Kept() const {
  MutexLock lock(slot_->mu);
  return slot_->kept;
}

Result<std::shared_ptr<RootOwner>> RootOwner::Take(const std::string& root, const OwnerOptions& who,
                                                   std::vector<std::string>* warnings) {
  CKPT_ASSIGN_OR_RETURN(Dir dir, MakeRoot(root));
  CKPT_ASSIGN_OR_RETURN(const auto slot, SlotOf(dir));
  MutexLock lock(slot->mu);
  if (auto shared = slot->owner.lock()) return std::shared_ptr<RootOwner>(std::move(shared));
  CKPT_ASSIGN_OR_RETURN(Dir ckpt_dir, MakeOwnerDir(dir));
  OwnerRecord record;
  record.process = ThisProcess();
  record.job_id = who.job_id;
  record.token = NewId();
  CKPT_RETURN_IF_ERROR(TakeOwnerRecord(dir, ckpt_dir, slot->record, &record));
  slot->record = EncodeOwner(record);
  CleanOwnerDir(ckpt_dir);
  std::vector<std::string> words = RollIntents(dir);
  // What an intent that could not be followed names is left alone.
  for (std::string& word : RemoveLeftovers(dir, slot->kept)) words.push_back(std::move(word));
  if (warnings != nullptr) warnings->insert(warnings->end(), words.begin(), words.end());
  // Nothing may fail behind this line: the owner's end would wait for the lock that we hold.
  auto owner = std::make_shared<Owner>(std::move(dir), std::move(ckpt_dir), slot, record);
  slot->owner = owner;
  return std::shared_ptr<RootOwner>(std::move(owner));
}

}  // namespace ckpt
