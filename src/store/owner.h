// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The RootOwner of store.h with what a transaction needs of it.  Private to src/store.
// Test: tests/unit/store/owner_test.cc
#ifndef CKPT_STORE_OWNER_H_
#define CKPT_STORE_OWNER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "store/lease.h"
#include "store/owner_record.h"
#include "store/registry.h"
#include "store/store.h"

namespace ckpt {

// Any thread.
class Owner : public RootOwner {
 public:
  Owner(Dir root, Dir ckpt_dir, File file, std::shared_ptr<RootSlot> slot, OwnerRecord record);
  ~Owner() override;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  const Dir& root() const override { return root_; }
  Status Check() const override;

  // Renews the lease every `period_ms` from now on; again: no change.  LIMIT: no thread.
  Status KeepLease(uint32_t period_ms);

  // False in a forked child, which must change nothing on disk.
  bool InThisProcess() const;

  // A number above `seen` and above every other that was given out; LIMIT.
  Result<uint64_t> ReserveSequence(uint64_t seen);
  // Its save failed: the number may be given out again, if no later one was.
  void ReturnSequence(uint64_t sequence);
  // In memory: no later save gets a sequence below.
  void NoteCommitted(uint64_t sequence);
  bool IsNewest(uint64_t sequence) const;  // no higher one was committed
  // Writes the highest committed sequence to the record, if it is not there.
  Status WriteSequence();

  // From now on neither this owner nor a later one of this process removes that folder, until
  // Unkeep.
  void Keep(const std::string& folder);
  void Unkeep(const std::string& folder);
  std::set<std::string> Kept() const;

  // Held from the last look at an existing step to the end of the commit, and while LATEST or a
  // mark is written: contexts that share the root do so one after the other.
  Mutex& commit_mu() const CKPT_TSA(lock_returned(commit_mu_)) { return commit_mu_; }

 private:
  Status CheckLocked() const CKPT_REQUIRES(slot_->mu);
  Status WriteLocked(const OwnerRecord& next) CKPT_REQUIRES(slot_->mu);
  void Renew();

  const pid_t pid_;
  const Dir root_, ckpt_dir_;
  const File file_;  // the record's, whatever the name owner.json leads to by now
  const std::shared_ptr<RootSlot> slot_;
  OwnerRecord record_ CKPT_GUARDED_BY(slot_->mu);
  const std::string token_;  // the record's: what makes it ours
  uint64_t reserved_ CKPT_GUARDED_BY(slot_->mu) = 0;
  uint64_t committed_ CKPT_GUARDED_BY(slot_->mu);  // highest; record_ follows it
  mutable Mutex commit_mu_;
  std::unique_ptr<Ticker> lease_ CKPT_GUARDED_BY(slot_->mu);
};

}  // namespace ckpt

#endif  // CKPT_STORE_OWNER_H_
