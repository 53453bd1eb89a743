// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What capi calls: the session of one context, the registered state, the recipes, the inspection of
// a root.  The only module where the others meet. Test: tests/unit/core/, tests/process/,
// tests/conformance/
#ifndef CKPT_CORE_CORE_H_
#define CKPT_CORE_CORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "meta/memory.h"
#include "meta/meta.h"
#include "store/store.h"
#include "util/log.h"
#include "util/status.h"

namespace ckpt {

// --- configuration (docs/configuration.md)
// --------------------------------------------------------

// How declared copies are compared: all bytes; all up to 64 MiB and samples of what is larger; not.
enum class ReplicaCheck { kOff, kSampled, kFull };

struct Config {
  uint64_t max_file_bytes = 5'000'000'000;
  uint64_t io_align = 4096;
  uint64_t io_block = 4 << 20;
  uint32_t io_threads = 2;
  DirectIo io_direct = DirectIo::kAuto;
  uint64_t io_stall_timeout_ms = 120000;
  uint64_t min_run = 256 << 10;
  uint64_t chunk_bytes = 16 << 20;
  ReplicaCheck replica_check = ReplicaCheck::kSampled;
  bool duplicate_ties = false;  // ties=duplicate
  uint64_t keep_last = 0;       // committed steps of the lineage; 0: no limit
  bool owner_force = false;     // owner.force
  // Job-wide keys in canonical text, for comparison across ranks.
  std::vector<std::pair<std::string, std::string>> job_wide;
};
// "key=value" lines.  INVALID_ARGUMENT naming the line and key (cause.name): unknown, duplicate,
// malformed or out of range; UNSUPPORTED for a value (or key of docs/configuration.md) that is not
// built yet.
Result<Config> ParseConfig(std::string_view text);

// --- state
// ----------------------------------------------------------------------------------------

struct TensorSpec {
  std::string group, name;
  DType dtype = 0;        // in memory
  DType store_dtype = 0;  // 0: as in memory
  Dims shape;             // this and all that follows: elements
  enum class Kind { kWhole, kBox, kFlat } kind = Kind::kWhole;
  Dims offset, extent;                      // kBox
  int64_t flat_offset = 0, flat_count = 0;  // kFlat
  Dims strides;                             // of the shard (not kFlat); empty: compact row-major
  void* data = nullptr;                     // its first element; nullptr only if it has none
  bool optional = false, required = false;
};
struct BlobSpec {
  std::string name;
  BlobScope scope = BlobScope::kPerRank;
  int32_t writer_rank = -1;  // load: whose per-rank blob; -1 = own
  void* data = nullptr;
  uint64_t bytes = 0;  // save: size; load: capacity
  uint64_t* actual = nullptr;
  bool optional = false, required = false;
};

// What a rank registers once and saves many times.  One thread at a time.  Holds pointers into the
// caller's memory, which is read (save) or written (load) only inside a collective call.
class State {
 public:
  // Ids count from 0 in order of adding, tensors and blobs apart.  A failed add poisons the state:
  // the next collective call fails on all ranks with this error.
  Result<uint64_t> AddTensor(const TensorSpec& spec);
  Result<uint64_t> AddBlob(const BlobSpec& spec);
  Status AddAlias(const std::string& group, const std::string& name, const std::string& of);
  // Names that begin with `from` are stored, and looked up, with `to` instead; of several renames
  // the first that fits is taken, once.
  Status AddRename(const std::string& from, const std::string& to);
  Status UpdateTensor(uint64_t id, void* data);
  Status UpdateBlob(uint64_t id, void* data, uint64_t bytes);
  void Poison(const Status& status);

  struct Tensor {
    TensorDesc desc;  // as stored, but for renames
    Geometry geometry;
    ShardMemory memory;
    bool optional = false, required = false;
  };
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<BlobSpec>& blobs() const { return blobs_; }
  const std::vector<AliasDesc>& aliases() const { return aliases_; }
  // What `name` is called in a checkpoint.
  std::string StoredName(const std::string& name) const;
  // INVALID_ARGUMENT when renames make two names equal, or one that cannot be stored.
  Status CheckStoredNames() const;
  const Status& poison() const { return poison_; }

  // Of the last load into this state.
  std::vector<std::string> missing, unused;

 private:
  std::vector<Tensor> tensors_;
  std::vector<BlobSpec> blobs_;
  std::vector<AliasDesc> aliases_;
  std::vector<std::pair<std::string, std::string>> renames_;
  Status poison_;
};

// --- session
// --------------------------------------------------------------------------------------

struct Event {
  uint32_t kind = 0;  // CKPT_EVENT_*
  int64_t step = -1;
  uint32_t milestone = 0;
  uint64_t bytes_done = 0, bytes_total = 0;
  std::string text;
  // Of the collective that it tells about, 0 = none: an answer to a late one cancels nothing newer.
  uint64_t round = 0;
};

struct SessionOptions {
  bool self = false;
  std::string name = "default", root, layout_note;
  Config config;
  bool no_write = false;
  uint64_t contract_timeout_ms = 60000, heartbeat_ms = 1000;
  std::shared_ptr<Log> log;
  // On the caller's thread inside a collective or Poll; nonzero = please cancel.
  std::function<int32_t(const Event&)> on_event;
  std::function<std::string()> describe;
};

struct OpResult {
  int64_t step = -1;
  uint64_t tensors = 0, bytes = 0, bytes_written = 0, bytes_read = 0, bytes_exchanged = 0;
  uint64_t missing = 0, unused = 0;
  uint64_t plan_ns = 0, snapshot_ns = 0, io_ns = 0, commit_ns = 0, total_ns = 0;
  bool fell_back = false;
};

struct SaveOptions {
  int64_t step = 0;
  std::string tag;
  OnExisting on_existing = OnExisting::kAuto;
  uint64_t contract_timeout_ms = 0;  // 0 = the session's
  std::string metadata;              // "key=value" lines for __metadata__
};

struct LoadOptions {
  bool latest = true;
  int64_t step = 0;
  std::string uri;  // empty = the session's root
  bool allow_missing = false, no_unused = false, no_verify = false;
  bool fallback = false;  // `latest` only: when the data of a step are damaged, the next older one
  bool convert = false;   // between the dtypes of meta/convert.h
  uint64_t contract_timeout_ms = 0;
};

// Thread-safe; collectives one at a time (STATE otherwise).  After Finalize or in a forked child
// everything gives STATE / FORKED.
class Session {
 public:
  static Result<std::shared_ptr<Session>> Create(SessionOptions options);  // collective
  virtual ~Session() = default;  // local; never waits for peers

  virtual Status Save(State& state, const SaveOptions& options, OpResult* result) = 0;
  virtual Status Load(State& state, const LoadOptions& options, OpResult* result) = 0;
  virtual Status Finalize(uint64_t timeout_ms) = 0;
  // A local error found by capi before a collective could start: the call still arrives, with that
  // error, so that the peers hear the cause at once.  Returns the verdict.
  virtual Status ArriveWithError(bool save, int64_t step, const Status& error) = 0;

  virtual int32_t rank() const = 0;  // of this process among `size` ranks; any time
  virtual int32_t size() const = 0;
  virtual void SetPhase(const char* phase, int64_t step) = 0;
  virtual Status Poll() = 0;  // delivers queued events and log lines
  // Marks of a committed step.  Only on rank 0, which owns the root (STATE elsewhere); NOT_FOUND.
  virtual Status SetPinned(int64_t step, bool pinned) = 0;
  virtual Status MarkBad(int64_t step) = 0;
  virtual Result<int64_t> Latest() = 0;  // newest committed step in the root; not collective
  virtual Status Usable() const = 0;     // OK, STATE after finalize, FORKED in a child
  // Collective: whether any rank came with `signalled`, the same on all.  A `local` error found by
  // capi is brought to the peers likewise.
  virtual Result<bool> Advise(int64_t step, bool signalled, const Status& local) = 0;
};

// --- inspection: no session
// -----------------------------------------------------------------------

class Reader {
 public:
  // `path`: a root (`latest` or `step`), or a step folder.  NOT_FOUND, NO_CHECKPOINT, CORRUPT.
  static Result<std::unique_ptr<Reader>> Open(const std::string& path, bool latest, int64_t step);
  const Catalog& catalog() const { return catalog_; }
  const Dir& dir() const { return dir_; }
  // All committed steps of the root (one, for a step folder), oldest sequence first, before them
  // the damaged ones.
  const std::vector<StepEntry>& steps() const { return steps_; }
  const std::string& path() const { return dir_.path(); }
  // Compares every byte of every file with the record.  CORRUPT naming the first bad file, block
  // and tensor; progress(done, total) after every block row.  Thread-safe.
  Status Verify(const std::function<bool(const std::string& file, uint64_t done, uint64_t total)>&
                    progress) const;
  // NOT_FOUND; LIMIT when it does not fit `capacity` (*actual is set).
  Status ReadBlob(const std::string& name, BlobScope scope, int32_t rank, void* data,
                  uint64_t capacity, uint64_t* actual) const;

 private:
  Dir dir_;
  std::shared_ptr<StepInUse> in_use_;
  Catalog catalog_;
  std::vector<StepEntry> steps_;
};

}  // namespace ckpt

#endif  // CKPT_CORE_CORE_H_
