// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// .ckpt/owner.json: what it says, how it is taken, how it is given back.  Private to src/store.
// One process holds a root at a time; the functions are safe against other processes doing the
// same. Test: tests/unit/store/owner_test.cc
#ifndef CKPT_STORE_OWNER_RECORD_H_
#define CKPT_STORE_OWNER_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "io/io.h"
#include "store/process_id.h"
#include "util/status.h"

namespace ckpt {

struct OwnerRecord {
  ProcessId process;
  std::string job_id;
  std::string token;      // random: no two records are equal
  uint64_t lease = 0;     // counter, renewed where other hosts watch (not yet)
  uint64_t sequence = 0;  // highest sequence of any commit that the owners have seen
};

std::string EncodeOwner(const OwnerRecord& r);
Result<OwnerRecord> DecodeOwner(std::string_view text);  // CORRUPT

// The bytes of owner.json; NOT_FOUND.
Result<std::string> ReadOwnerText(const Dir& ckpt_dir);

// OWNED naming job, host and pid of the record in `text` (or that it cannot be read).
Status OwnedBy(const Dir& root, std::string_view text);

// Makes `mine` the record of the root.  Takes over one whose process is dead, or whose text is
// `released` (an earlier record of this process that nobody holds any more); mine.sequence becomes
// at least the old one's.  OWNED otherwise, also when another process was faster.
Status TakeOwnerRecord(const Dir& root, const Dir& ckpt_dir, const std::string& released,
                       OwnerRecord* mine);

// Unlinks owner.json if it still is `text`.
Status ReleaseOwnerRecord(const Dir& ckpt_dir, const std::string& text);

// Removes what dead processes left in .ckpt while they were taking over.  By the owner only.
void CleanOwnerDir(const Dir& ckpt_dir);

}  // namespace ckpt

#endif  // CKPT_STORE_OWNER_RECORD_H_
