// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a load: what the coordinator chooses (LoadChoice), what a rank wants of it
// (LoadMatch), how it reads it (LoadData).  Private to src/core.  docs/load.md walks through them
// in order.
#ifndef CKPT_CORE_LOAD_H_
#define CKPT_CORE_LOAD_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/session.h"
#include "plan/plan.h"

namespace ckpt {

// Phases of a load's round (comm/rounds.h).
inline constexpr uint32_t kLoadChoosePhase = 1;  // nothing in, the catalog out
inline constexpr uint32_t kLoadCheckPhase = 2;   // "I can load this" in, all asked-for names out
inline constexpr uint32_t kLoadVotePhase = 3;    // "I have it" in, verdict out

// --- phase 1, coordinator -> rank

struct LoadChoice {
  std::string where;       // the coordinator's spelling, for messages
  bool in_root = true;     // the step is a folder of the root; else the path is the step itself
  bool fell_back = false;  // not the newest step, which is damaged
  Catalog catalog;
  std::shared_ptr<StepInUse> in_use;  // the coordinator's; not sent
};
Bytes EncodeChoice(const LoadChoice& choice);
Result<LoadChoice> DecodeChoice(std::string_view bytes);

// Sequences of steps whose data turned out to be damaged in this call (CKPT_LOAD_FALLBACK).
using Tried = std::set<uint64_t>;
// Finds and reads the step: NO_CHECKPOINT, NOT_FOUND, CORRUPT.  With options.fallback the newest
// one that can be read and is not in `tried`; CORRUPT when there is none.  Coordinator only.
Result<LoadChoice> ChooseStep(const std::string& path, const LoadOptions& options,
                              const Tried& tried, std::vector<std::string>* warnings);
// In cause.field of a CORRUPT that is the call's verdict: an older step would not help.
inline constexpr char kNothingLeft[] = "fallback";
// The same step as this rank sees it: UNSUPPORTED when it is absent or not the same.
Result<Dir> OpenChosen(const std::string& path, const LoadChoice& choice);

// --- phase 2: what this rank's state wants of the catalog

struct LoadMatch {
  std::vector<WantedShard> wanted;
  std::vector<ShardMemory> destinations;  // per wanted shard; another dtype: the load converts
  struct SideFile {
    SmallFileRecord record;
    char* data = nullptr;
  };
  std::vector<SideFile> side_files;
  std::vector<std::pair<uint64_t*, uint64_t>> actual;  // sizes to report on success
  std::vector<std::string> missing;                    // names this rank asked for in vain
  std::vector<bool> asked;                             // per tensor of the catalog, in order
  uint64_t tensors = 0, bytes = 0;
};
// NOT_FOUND, DTYPE, SHAPE, LIMIT, each naming the tensor or blob.  `match` is filled as far as
// known also on error (the lists of names).
Status MatchState(const State& state, const Catalog& catalog, const LoadOptions& options,
                  int32_t rank, LoadMatch* match);
// Names of the catalog's tensors (those of groups, in order) with asked[i] false.
std::vector<std::string> UnusedNames(const Catalog& catalog, const std::vector<bool>& asked);

// --- phase 3: the data

class LoadData {
 public:
  struct Options {
    std::shared_ptr<Group> group;
    uint64_t round = 0;
    Config config;
    bool verify = true;
    std::shared_ptr<std::atomic<bool>> cancelled;
    std::function<void(Event)> on_progress;
  };
  LoadData(Options options, std::shared_ptr<const Catalog> catalog, Dir step, LoadMatch match)
      : o_(std::move(options)),
        catalog_(std::move(catalog)),
        step_(std::move(step)),
        match_(std::move(match)) {}
  // Reads, verifies, scatters into the caller's memory.  CORRUPT naming file and tensor; IO.
  Status Run();
  void Abandon() { gate_.Close(); }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  Status Work();
  Status ReadOne(const ReadExtent& extent, char* buffer);
  Status VerifyBlocks(const ReadExtent& extent, const char* buffer) const;
  Status ReadSideFile(const LoadMatch::SideFile& file);
  Status StopReason() const;
  void Fail(const Status& status) CKPT_EXCLUDES(mu_);

  Options o_;
  const std::shared_ptr<const Catalog> catalog_;
  const Dir step_;
  const LoadMatch match_;
  std::vector<File> files_;
  std::vector<ReadExtent> extents_;
  uint64_t total_bytes_ = 0;
  MemoryGate gate_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> bytes_read_{0};
  Mutex mu_;
  Status first_error_ CKPT_GUARDED_BY(mu_);
};

// CORRUPT for block `block` of `file`: names the first tensor in it.
Status BlockCorrupt(const Catalog& catalog, size_t file, uint64_t block, const std::string& path);

}  // namespace ckpt

#endif  // CKPT_CORE_LOAD_H_
