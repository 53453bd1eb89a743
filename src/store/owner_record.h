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
  uint64_t lease = 0;     // counter, renewed while the owner lives: other hosts watch it
  uint64_t sequence = 0;  // highest sequence of any commit that the owners have seen
};

// The numbers that change have a fixed width, so that all texts of a record have one length, and
// differ in place.
std::string EncodeOwner(const OwnerRecord& r);
Result<OwnerRecord> DecodeOwner(std::string_view text);  // CORRUPT

// The bytes of owner.json; NOT_FOUND.
Result<std::string> ReadOwnerText(const Dir& ckpt_dir);
// The token of a record's text, "" if it cannot be read: whose record it is.
std::string TokenOf(std::string_view text);

// OWNED naming job, host and pid of the record in `text` (or that it cannot be read).
Status OwnedBy(const Dir& root, std::string_view text);

// What the taker knows of a record beyond what can be seen of its process.
struct TakeRules {
  std::string released;  // token of an earlier record of this process that nobody holds any more
  std::string dead;      // text of a record that was watched for long enough
  bool force = false;    // whoever cannot be seen is dead
};
// Makes `mine` the record of the root, and returns the open file: what is written into it later can
// never be written over another's record.  Takes over one whose process is dead, or that the rules
// name; mine.sequence becomes at least the old one's.  OWNED otherwise, also when another process
// was faster; `elsewhere` is then the text of a record whose process cannot be seen from here.
Result<File> TakeOwnerRecord(const Dir& root, const Dir& ckpt_dir, const TakeRules& rules,
                             OwnerRecord* mine, std::string* elsewhere);

// Removes owner.json if it still has that token.
Status ReleaseOwnerRecord(const Dir& ckpt_dir, const std::string& token);

// Removes what dead processes left in .ckpt while they were taking over, and all probes (only an
// owner's job has any).  By a new owner only.
void CleanOwnerDir(const Dir& ckpt_dir);

}  // namespace ckpt

#endif  // CKPT_STORE_OWNER_RECORD_H_
