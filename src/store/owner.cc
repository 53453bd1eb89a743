// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Taking, checking and releasing a root.  Test: tests/unit/store/owner_test.cc
#include "store/owner.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "store/intent.h"
#include "store/leftovers.h"
#include "store/names.h"
#include "util/text.h"

namespace ckpt {
namespace {

// While a record is judged it is away for a moment.
constexpr int kLooks = 5;
constexpr std::chrono::milliseconds kBetweenLooks(20);

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

Owner::Owner(Dir root, Dir ckpt_dir, File file, std::shared_ptr<RootSlot> slot, OwnerRecord record)
    : pid_(getpid()),
      root_(std::move(root)),
      ckpt_dir_(std::move(ckpt_dir)),
      file_(std::move(file)),
      slot_(std::move(slot)),
      record_(std::move(record)),
      token_(record_.token),
      committed_(record_.sequence) {}

Owner::~Owner() {
  // In a forked child the record is the parent's, the mutex may have been held when it forked, and
  // the thread is not there to be joined: what is left of it is leaked.
  if (!InThisProcess()) {
    (void)lease_.release();
    return;
  }
  std::unique_ptr<Ticker> lease;
  {
    MutexLock lock(slot_->mu);
    lease = std::move(lease_);
  }
  lease.reset();  // without the lock, which its thread may be waiting for
  MutexLock lock(slot_->mu);
  const Status released = ReleaseOwnerRecord(ckpt_dir_, token_);
  // On an error the record stays; the slot still knows it, so this process can take it back.
  if (released.ok() && slot_->token == token_) slot_->token.clear();
}

bool Owner::InThisProcess() const { return getpid() == pid_; }

Status Owner::CheckLocked() const {
  auto text = ReadOwnerText(ckpt_dir_);
  for (int look = 0; look < kLooks && text.status().code() == Code::kNotFound; ++look) {
    // Somebody who judged us too early is about to put it back.
    std::this_thread::sleep_for(kBetweenLooks);
    text = ReadOwnerText(ckpt_dir_);
  }
  if (text.ok() && TokenOf(*text) == token_) return Status();
  if (text.ok()) return OwnedBy(root_, *text);
  if (text.status().code() != Code::kNotFound) return text.status();
  Cause cause;
  cause.path = root_.path();
  return Status(Code::kOwned,
                Cat("root ", root_.path(), ": this job no longer owns it: its record is gone"),
                std::move(cause));
}

Status Owner::WriteLocked(const OwnerRecord& next) {
  const std::string text = EncodeOwner(next);
  CKPT_RETURN_IF_ERROR(file_.WriteAt(text.data(), text.size(), 0));
  CKPT_RETURN_IF_ERROR(file_.Sync());  // for other hosts: now, not when the kernel likes
  record_ = next;
  return Status();
}

void Owner::Renew() {
  MutexLock lock(slot_->mu);
  OwnerRecord next = record_;
  ++next.lease;
  // An error here is found by whoever needs the root, through Check.
  (void)WriteLocked(next).ok();
}

Status Owner::KeepLease(uint32_t period_ms) {
  MutexLock lock(slot_->mu);
  if (lease_ != nullptr) return Status();
  CKPT_ASSIGN_OR_RETURN(lease_, Ticker::Start("ckpt-lease", period_ms, [this] { Renew(); }));
  return Status();
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
  return WriteLocked(next);
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

namespace {

// One attempt, with the lock that all contexts of this process share.  `elsewhere` as in
// TakeOwnerRecord.
Result<std::shared_ptr<Owner>> TryTake(const std::string& root, const std::string& job_id,
                                       TakeRules rules, std::string* elsewhere, bool* fresh,
                                       std::vector<std::string>* warnings) {
  CKPT_ASSIGN_OR_RETURN(Dir dir, MakeRoot(root));
  CKPT_ASSIGN_OR_RETURN(const auto slot, SlotOf(dir));
  MutexLock lock(slot->mu);
  if (auto shared = slot->owner.lock()) return shared;
  CKPT_ASSIGN_OR_RETURN(Dir ckpt_dir, MakeOwnerDir(dir));
  OwnerRecord record;
  record.process = ThisProcess();
  record.job_id = job_id;
  record.token = NewId();
  rules.released = slot->token;
  CKPT_ASSIGN_OR_RETURN(File file, TakeOwnerRecord(dir, ckpt_dir, rules, &record, elsewhere));
  slot->token = record.token;
  CleanOwnerDir(ckpt_dir);
  *warnings = RollIntents(dir);
  // What an intent that could not be followed names is left alone.
  for (std::string& word : RetireLeftovers(dir, slot->kept)) warnings->push_back(std::move(word));
  *fresh = true;
  // Nothing may fail behind this line: the owner's end would wait for the lock that we hold.
  auto owner = std::make_shared<Owner>(std::move(dir), std::move(ckpt_dir), std::move(file), slot,
                                       std::move(record));
  slot->owner = owner;
  return owner;
}

// Watches the record `text` from another host.  Its text again: dead; "": it has gone meanwhile.
Result<std::string> Watch(const std::string& root, const std::string& text,
                          const OwnerOptions& options) {
  CKPT_ASSIGN_OR_RETURN(const Dir dir, MakeRoot(root));
  CKPT_ASSIGN_OR_RETURN(const Dir ckpt_dir, MakeOwnerDir(dir));
  return WatchLease(dir, ckpt_dir, text, options);
}

}  // namespace

Result<std::shared_ptr<RootOwner>> RootOwner::Take(const std::string& root,
                                                   const OwnerOptions& options,
                                                   std::vector<std::string>* warnings) {
  TakeRules rules;
  rules.force = options.force;
  for (;;) {
    std::string elsewhere;
    std::vector<std::string> words;
    bool fresh = false;  // not shared with another context
    auto owner = TryTake(root, options.job_id, rules, &elsewhere, &fresh, &words);
    if (owner.ok()) {
      CKPT_RETURN_IF_ERROR((*owner)->KeepLease(options.lease_period_ms));
      if (fresh) {
        // Terabytes may take minutes: the lease is kept meanwhile, and no lock.
        if (options.progress) options.progress("removing what earlier saves left");
        const auto undone = RemoveTrash((*owner)->root(), (*owner)->Kept());
        words.insert(words.end(), undone.begin(), undone.end());
      }
      if (warnings != nullptr) warnings->insert(warnings->end(), words.begin(), words.end());
      return std::shared_ptr<RootOwner>(std::move(*owner));
    }
    // A record that was watched and is another one now is of somebody who lives.
    if (elsewhere.empty() || !rules.dead.empty()) return owner.status();
    CKPT_ASSIGN_OR_RETURN(rules.dead, Watch(root, elsewhere, options));
  }
}

}  // namespace ckpt
