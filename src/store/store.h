// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What is on disk (docs/format.md): safetensors files, index files, the commit record, step
// folders, the commit, ownership of a root, the catalog that a load works from. Test:
// tests/unit/store/
#ifndef CKPT_STORE_STORE_H_
#define CKPT_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/io.h"
#include "meta/meta.h"
#include "util/status.h"

namespace ckpt {

inline constexpr uint64_t kCrcBlock = 1 << 20;  // bytes of a file per checksum
inline constexpr uint64_t kHeaderAlign = 4096;  // data starts at a multiple

// --- layout: pure -------------------------------------------------------------------------------

// alias -> stored name, per group
using AliasMap = std::map<std::string, std::map<std::string, std::string>>;

struct LayoutOptions {
  uint64_t max_file_bytes = 5'000'000'000;
  uint64_t max_header_bytes = 90'000'000;  // of its JSON; readers refuse 100 MB
  std::map<std::string, std::string>
      metadata;  // user pairs for __metadata__; "format":"pt" is added
  std::map<std::string, std::string> aliases;  // of this group; each is such a pair too
};
// Files of one group in storage order (descending dtype alignment, then name), split greedily; an
// empty tensor list gives one file with no tensors.  LIMIT when one tensor's header entry cannot
// fit.
Result<std::vector<FileLayout>> LayoutGroup(const std::string& group,
                                            std::vector<TensorDesc> tensors,
                                            const LayoutOptions& options);
// "<group>.safetensors.index.json" of those files: name and content.
std::string IndexName(const std::string& group);
std::string IndexJson(const std::vector<FileLayout>& files);

// Parses and checks the header of a safetensors file (ours or foreign) of `file_bytes` bytes:
// offsets within the file, no overlap, no hole, sizes that fit dtype and shape, no duplicate keys,
// header <= 100 MB.  CORRUPT naming file and tensor.
Result<FileLayout> ParseHeader(const std::string& file_name, std::string_view header_json,
                               uint64_t file_bytes);

// --- the commit record: pure ------------------------------------------------------------------

struct WriterBytes {
  int32_t rank = 0;
  uint64_t bytes = 0;
};
struct FileRecord {
  std::string name;
  uint64_t bytes = 0;
  std::vector<uint32_t> crc32c;  // one per kCrcBlock of the file, header included
  std::vector<WriterBytes> writers;
};
struct SmallFileRecord {
  std::string name;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
};
struct BlobRecord {
  std::string name;
  BlobScope scope = BlobScope::kPerRank;
  int32_t rank = -1;  // -1 for shared
  uint64_t bytes = 0;
};
struct CommitRecord {
  int64_t step = 0;
  std::string tag, lineage, library, layout_note;
  uint64_t sequence = 0;
  int64_t created_unix_ns = 0;
  int32_t world_size = 0;
  std::vector<FileRecord> files;
  std::vector<SmallFileRecord> side_files, index_files;
  std::map<std::string, std::vector<std::string>> groups;  // name -> files
  AliasMap aliases;
  std::map<std::string, std::map<std::string, DType>>
      dtypes;  // group -> tensor; see DTypeInfo::named
  std::vector<BlobRecord> blobs;
  std::vector<std::pair<uint64_t, std::string>> known;  // sequence, folder
};
std::string EncodeRecord(const CommitRecord& r);  // UTF-8 JSON with ~crc32c, as docs/format.md
// CORRUPT (damage), UNSUPPORTED (a higher major version, by name).
Result<CommitRecord> DecodeRecord(std::string_view text);

// --- catalog: what a load works from ---------------------------------------------------------

struct Catalog {
  CommitRecord record;
  std::string folder;  // "step-000000000100"
  uint32_t record_crc32c =
      0;  // of the bytes of ckpt.json: every rank compares it with what it sees
  std::vector<FileLayout> files;  // same order as record.files; headers emptied once checked
};
// CORRUPT: a name twice in a group, or a tensor that does not begin at a multiple of its element.
Status CheckTensors(const Catalog& c);
Bytes EncodeCatalog(const Catalog& c);
Result<Catalog> DecodeCatalog(std::string_view bytes);
// Reads and checks record, file sizes, headers (with their checksum blocks), index and side files'
// sizes and checksums. NOT_FOUND "has no ckpt.json"; CORRUPT naming file and tensor.
Result<Catalog> ReadCatalog(const Dir& step);

// --- a root -----------------------------------------------------------------------------------

std::string StepFolder(int64_t step);                           // "step-%012d"
std::optional<int64_t> ParseStepFolder(std::string_view name);  // nullopt: not a step's name

struct StepEntry {
  int64_t step = 0;
  // Of `step`; while it is being replaced by two renames, for a moment a trash folder's name.
  std::string folder;
  std::optional<CommitRecord> record;  // nullopt when invalid
  Status problem;                      // why there is no record
  // What an invalid record still seems to say its sequence is, 0 if nothing.  Never trusted: it
  // only keeps a commit that does not know this one from calling it older.
  uint64_t sequence_hint = 0;
  bool pinned = false, bad = false;  // marks, of invalid ones too
};
// All step folders with a ckpt.json (valid or not), highest sequence first, invalid ones last by
// step number descending. IO when the folder cannot be listed: never mistaken for empty.
Result<std::vector<StepEntry>> ListSteps(const Dir& root);
// While one exists, no save of this process removes that folder, though it may rename it (the
// descriptor stays good).  Make it before the record is read: a step that is gone by then is found
// out by the reading.  Any thread.
class StepInUse {
 public:
  explicit StepInUse(const Dir& step);
  ~StepInUse();
  StepInUse(const StepInUse&) = delete;
  StepInUse& operator=(const StepInUse&) = delete;

 private:
  int64_t pid_ = 0;                  // of the process that registered it
  uint64_t device_ = 0, inode_ = 0;  // 0, 0: not registered
};

// What NewestStep does about a damaged record that may be the newest.
enum class OnDamage {
  kFail,      // CORRUPT
  kFallBack,  // passes over it, with a warning
};
// The newest committed step that is not marked bad: NO_CHECKPOINT (root absent or without such a
// step), CORRUPT (a damaged record that no valid record's `known` proves older, not marked bad;
// with kFallBack: no valid one is left); `warnings` (may be null) gets a sentence per damaged step
// that was passed over.
Result<StepEntry> NewestStep(const Dir& root, std::vector<std::string>* warnings,
                             OnDamage on_damage = OnDamage::kFail);
// The same choice as a list, for a load that goes on to the next older one when the data of a step
// are damaged: all valid steps that are not bad, highest sequence first, never empty.
Result<std::vector<StepEntry>> StepsForFallback(const Dir& root,
                                                std::vector<std::string>* warnings);
// NOT_FOUND (no such folder, or without ckpt.json), CORRUPT.  A bad one is found too.
Result<StepEntry> FindStep(const Dir& root, int64_t step);

// --- ownership and commit: on the coordinator only ---------------------------------------------

struct OwnerOptions {
  std::string job_id = {};
  bool force = false;  // owner.force: whoever cannot be seen from here is dead at once
  uint32_t lease_period_ms = 10000;  // how often this process renews its lease
  uint32_t lease_dead_ms = 30000;    // another host's lease unchanged for so long: dead
  // Asked and told while another host's lease is watched, several times a second, on the caller's
  // thread.  `stop` true: CANCELLED.
  std::function<bool()> stop = nullptr;
  std::function<void(const std::string&)> progress = nullptr;
};

// Ownership of a root by this process (docs/format.md, "Ownership").  Contexts of one process share
// it; the last RootOwner to go releases it.  Any thread.
//
// What is guaranteed: after Take returned OK, no step of an earlier owner appears in the root any
// more.  Take moves the earlier owner's staging folders away before it returns, so a process that
// was stopped between its last Check and its rename finds nothing to rename when it goes on.  Nor
// does a late renewal put a lost record back: it is written into the file that was linked, not over
// the name.  What is left is a moment of marks, retention, and the two renames of a replacement
// where names cannot be exchanged: a process that is stopped right there, for longer than
// `lease_dead_ms`, and goes on, may still do that one rename.
class RootOwner {
 public:
  // Creates the root if needed, takes over a dead owner's, cleans what it left (staging, trash,
  // intents), and keeps the lease renewed on a thread named ckpt-lease.  May watch for
  // `lease_dead_ms`.  OWNED naming the other job, host and pid; CANCELLED; LIMIT (no thread).
  static Result<std::shared_ptr<RootOwner>> Take(const std::string& root,
                                                 const OwnerOptions& options,
                                                 std::vector<std::string>* warnings);
  virtual ~RootOwner() = default;  // releases
  virtual const Dir& root() const = 0;
  // OWNED if the record on disk is no longer ours.
  virtual Status Check() const = 0;
};

// Where this process is: processes of one `machine` see the same files under the same path.
struct Place {
  std::string host;     // for people
  std::string machine;  // this boot of this machine, and the mount namespace
};
Place ThisPlace();

// Whether all hosts see one storage: after Take, one rank per host (and per spelling of the root)
// writes a probe; when all are written, each looks for the others' by name, not before (a file
// system may remember that a name was absent).  Nothing here makes a folder: the owner made
// root/.ckpt, so where it is absent another storage is seen (NOT_FOUND, after a short retry).  A
// refused probe leaves no record once the RootOwner is released.  Any thread, any rank.
// The probe's name; INVALID_ARGUMENT unless `nonce` is 1 to 64 of A-Z a-z 0-9 _ -.
Result<std::string> WriteProbe(const std::string& root, const std::string& nonce, int rank);
Result<bool> SeesProbe(const std::string& root, const std::string& name);
// All probes of that nonce that are seen from here.  Others that a crash left go with the next
// owner.
Status RemoveProbes(const std::string& root, const std::string& nonce);

// Marks of a step, durable when OK; gone when the step is saved again.  NOT_FOUND, OWNED.  Damaged
// steps can be marked too.  Any thread.
enum class Pin { kOff, kOn };
Status SetPinned(const RootOwner& owner, int64_t step, Pin pin);
Status MarkBad(const RootOwner& owner, int64_t step);

// About a step that exists.  kAuto replaces one of the save's own lineage and refuses the others
// (EXISTS); kReplace replaces any, damaged ones too, and warns about what was not its own; kKeep
// leaves a valid one alone, marks included.
enum class OnExisting : uint32_t { kAuto = 0, kRefuse = 1, kReplace = 2, kKeep = 3 };

// One save's transaction.  One thread at a time.  Destroyed without Commit: the staging folder is
// removed.  Destroyed by an exception out of Commit after `enter_commit`: nothing is removed.
class StepTransaction {
 public:
  struct Options {
    int64_t step = 0;
    OnExisting on_existing = OnExisting::kAuto;
    std::string lineage;     // of this job
    uint64_t keep_last = 0;  // steps of the lineage that Finish leaves; 0: no limit
  };
  // Decides about an existing step (EXISTS naming its lineage and time; under kKeep its own error
  // if it is damaged), makes the staging folder.  OK with a null pointer: kKeep, and the step is
  // there and valid, so the save is done.
  static Result<std::unique_ptr<StepTransaction>> Begin(std::shared_ptr<RootOwner> owner,
                                                        const Options& options);
  virtual ~StepTransaction() = default;
  // Creates and preallocates one file in staging.
  virtual Status AddFile(const std::string& name, uint64_t bytes) = 0;
  virtual const std::string& staging_folder() const = 0;  // name within the root
  // Highest sequence in any record, plus one; and the retained steps for `known`.
  virtual Result<uint64_t> NextSequence() = 0;
  virtual Result<std::vector<std::pair<uint64_t, std::string>>> Known() = 0;

  // Writes index files and the record, syncs, then calls `enter_commit` right before the rename
  // (its error aborts the commit: nothing is published), renames, syncs the root.  OK: committed,
  // and a later save knows it (or, under kKeep, another context committed the step meanwhile, and
  // that one stays).  `warnings` (may be null) says what was replaced that was not this lineage's.
  // OUTCOME_UNKNOWN: neither confirmed nor undone, all kept.  Any other
  // error: not published, staging removed.  `abandoned` is asked after `enter_commit`, before each
  // undo and before that removal; true: all ranks were told OUTCOME_UNKNOWN meanwhile, so nothing
  // is undone or removed, and Commit says the same.
  virtual Status Commit(const CommitRecord& record,
                        const std::vector<std::pair<std::string, std::string>>& index_files,
                        const std::function<Status()>& enter_commit,
                        const std::function<bool()>& abandoned,
                        std::vector<std::string>* warnings) = 0;
  // After an OK Commit, once the ranks know: writes LATEST and the owner's record, removes the
  // replaced step and what `keep_last` leaves over (docs/format.md, "Retention").  Without it the
  // step is as valid, and the next owner removes the old one.  What fails is a warning, and is
  // tried again by the next save.
  virtual void Finish(std::vector<std::string>* warnings) = 0;
};

}  // namespace ckpt

#endif  // CKPT_STORE_STORE_H_
