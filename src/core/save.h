// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a save: what a rank sends (SaveRequest), what it is told to do (SaveOrder), how it
// does it (SaveData), what it reports (SaveVote), and the coordinator's side (SaveCoordinator).
// Private to src/core. docs/save.md walks through them in order.
#ifndef CKPT_CORE_SAVE_H_
#define CKPT_CORE_SAVE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/session.h"
#include "plan/plan.h"

namespace ckpt {

// Phases of a save's round (comm/rounds.h): 1 states in, orders out; 2 votes in, verdict out.  When
// ranks might not see one storage, two more lie between: 1 states in, probe orders out; 2 probes
// written; 3 what was not seen in, orders out; 4 votes.
inline constexpr uint32_t kSavePlanPhase = 1, kProbeWrittenPhase = 2, kProbeSeenPhase = 3;
// An error may be told in the name of a later phase than the one that runs.
inline constexpr uint32_t kSaveAnyPhase = 4;

// --- phase 1, rank -> coordinator

struct SaveRequest {
  Place place;
  std::string root;  // as this rank spells it
  bool may_write = true;
  Bytes state;  // EncodeRankState
};
Bytes EncodeRequest(const SaveRequest& request);
Result<SaveRequest> DecodeRequest(std::string_view bytes);

// --- phase 1, coordinator -> rank: one of the two.

struct ProbeOrder {
  std::string nonce;
  bool writes = false;  // this rank writes the probe of its place
};
Bytes EncodeProbeOrder(const ProbeOrder& order);
// nullopt: it is a SaveOrder, or malformed, which DecodeOrder then says.
std::optional<ProbeOrder> DecodeProbeOrder(std::string_view bytes);

// Lists of names, for the phases of the probe.
Bytes EncodeNames(const std::vector<std::string>& names);
Result<std::vector<std::string>> DecodeNames(std::string_view bytes);

struct SaveOrder {
  bool kept = false;                                    // the step stays as it is: nothing to do
  std::string staging;                                  // folder within the root
  std::vector<std::pair<std::string, uint64_t>> files;  // name, bytes; the plan's file numbers
  std::vector<uint32_t> hash_shards;  // shards with replicas: report their checksums
  uint64_t hash_seed = 0;             // where samples of large ones are taken; equal on all ranks
  RankPlan plan;
};
Bytes EncodeOrder(const SaveOrder& order);
Result<SaveOrder> DecodeOrder(std::string_view bytes);

// --- phase 2, rank -> coordinator

struct SaveVote {
  // Per extent of the order's plan: contributions to the checksum of each block that it touches.
  std::vector<std::vector<uint32_t>> contributions;
  // Per shard of hash_shards: CRC32C of each kHashChunk of its compact bytes, or of samples of
  // them.
  std::vector<std::vector<uint32_t>> shard_hashes;
};
inline constexpr uint64_t kHashChunk = 16 << 20;
// replica.check=sampled: tensors above kSampleAbove give kSampleBytes of every kSampleEvery.
inline constexpr uint64_t kSampleAbove = 64 << 20, kSampleEvery = 1 << 20, kSampleBytes = 4096;
Bytes EncodeVote(const SaveVote& vote);
Result<SaveVote> DecodeVote(std::string_view bytes);

// --- the data phase of one rank

// Where a shard's bytes are in the caller's memory.  Blobs follow the tensors' shards in numbering.
struct ShardSource {
  TensorDesc desc;
  Geometry geometry;
  ShardMemory memory;
};

class SaveData {
 public:
  struct Options {
    std::shared_ptr<Group> group;
    uint64_t round = 0;
    int64_t step = 0;
    Config config;
    std::string root;
    std::vector<ShardSource> sources;
    std::function<void(Event)> on_progress;  // any thread
    std::shared_ptr<std::atomic<bool>> cancelled;
  };
  explicit SaveData(Options options) : o_(std::move(options)) {}

  // The coordinator's rank hands over the files' headers before its own order comes.
  void SetHeaders(std::vector<Bytes> headers) { headers_ = std::move(headers); }
  // Writes this rank's extents, syncs the files it wrote to, and checksums shards with replicas.
  // Runs on the library's threads; gives up early when the round is closed or `Abandon` was called.
  Result<SaveVote> Run(const SaveOrder& order);
  // Answers a peer's request for bytes of a shard of this rank.
  Status Provide(std::string_view request, std::string* reply);
  // After this returns no thread of ours touches the caller's memory.
  void Abandon() { gate_.Close(); }

  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t bytes_exchanged() const { return bytes_exchanged_; }
  // How long Run took; 0 while it runs.
  uint64_t run_ns() const { return run_ns_; }

 private:
  struct Chunk {  // work unit: at most io.block of one extent, ends on block boundaries
    uint32_t extent = 0;
    ByteRange range;
  };
  Result<SaveVote> WriteAndHash(const SaveOrder& order);
  Status OpenFiles(const SaveOrder& order);
  void MakeChunks(const SaveOrder& order, SaveVote* vote);
  Status Work(const SaveOrder& order, SaveVote* vote);
  Status WriteChunk(const SaveOrder& order, const Chunk& chunk, char* buffer, std::string* scratch,
                    SaveVote* vote);
  Status FillChunk(const SaveOrder& order, const Chunk& chunk, char* buffer, std::string* scratch);
  Status FillPart(const RankPlan& plan, const PlanPart& part, const Chunk& chunk, char* buffer,
                  std::string* scratch);
  void Tell(uint64_t bytes, const std::string& doing);
  Status Ask(int32_t peer, const Bytes& request, std::string* reply);
  Status PullPart(const PlacedTensor& tensor, const PlanPart& part, ByteRange range,
                  const Chunk& chunk, char* buffer, std::string* scratch);
  Status HashShard(const SaveOrder& order, size_t index, char* buffer, SaveVote* vote);
  uint32_t HashRange(const ShardSource& source, ByteRange range, uint32_t crc, char* buffer) const;
  Status StopReason() const;
  void Fail(const Status& status) CKPT_EXCLUDES(mu_);

  Options o_;
  std::vector<Bytes> headers_;
  Dir root_, staging_;
  std::vector<File> files_;  // by the plan's file number; opened only where this rank writes
  std::vector<Chunk> chunks_;
  uint64_t total_bytes_ = 0;
  MemoryGate gate_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::atomic<int32_t> waiting_for_{-1};  // a peer whose bytes some worker waits for
  std::atomic<uint64_t> bytes_written_{0}, bytes_exchanged_{0}, run_ns_{0};
  Mutex mu_;
  Status first_error_ CKPT_GUARDED_BY(mu_);
};

// --- the coordinator

class SaveCoordinator {
 public:
  SaveCoordinator(std::shared_ptr<SessionImpl> session, uint64_t round, SaveOptions options,
                  std::shared_ptr<SaveData> own_data)
      : s_(std::move(session)),
        round_(round),
        o_(std::move(options)),
        own_data_(std::move(own_data)) {}
  // Both phases; publishes what it finds, error or not; then tidies up.
  void Run();
  // Set once Run has returned and the transaction is gone.
  Latch& done() { return done_; }

 private:
  void Coordinate();
  // Collects a phase; nullopt: the round is closed on all.
  std::optional<std::vector<Bytes>> Collect(uint32_t phase);
  Result<std::vector<SaveRequest>> DecodeAll(const std::vector<Bytes>& requests) const;
  // Shows that all ranks see one storage, if that is not plain.  `phase` is the one whose results
  // are due.  nullopt: the round is closed.
  std::optional<Status> ProbeStorage(const std::vector<SaveRequest>& requests, uint32_t* phase);
  Status JudgeProbe(const std::vector<SaveRequest>& requests, const std::vector<std::string>& names,
                    const std::vector<Bytes>& unseen) const;
  Result<std::shared_ptr<RootOwner>> TakeRoot();
  Result<std::vector<Bytes>> PlanPhase(const std::vector<SaveRequest>& requests);
  Status AddBlobs(std::vector<RankState>* states);
  Status MergeBlob(const std::string& tensor_name, const std::string& group, const BlobDesc& blob,
                   Holder holder);
  Status CheckRequiredBlobs(const std::vector<RankState>& states) const;
  Result<std::vector<FileLayout>> LayoutAll();
  Status Prepare();
  std::vector<Bytes> MakeOrders(const std::vector<RankState>& states, SavePlan plan);
  void OrderHashes();
  Status CommitPhase(const std::vector<Bytes>& votes);
  Status CheckReplicas(const std::vector<SaveVote>& votes) const;
  Result<CommitRecord> MakeRecord(const std::vector<SaveVote>& votes);
  Status FillFiles(const std::vector<SaveVote>& votes, CommitRecord* record) const;

  const std::shared_ptr<SessionImpl> s_;
  const uint64_t round_;
  const SaveOptions o_;
  const std::shared_ptr<SaveData> own_data_;

  GlobalState state_;
  struct SharedBlob {
    BlobDesc desc;
    int32_t first_rank = 0;
    size_t tensor = 0;  // in state_.tensors
  };
  std::map<std::pair<std::string, std::string>, SharedBlob> shared_;  // (group, tensor name)
  std::vector<BlobRecord> blob_records_;
  std::vector<FileLayout> files_;
  std::vector<std::pair<std::string, std::string>> index_files_;
  std::map<std::string, std::vector<std::string>> groups_;
  AliasMap aliases_;
  std::vector<SaveOrder> orders_;
  std::unique_ptr<StepTransaction> txn_;  // none: the step is kept
  Latch done_;
};

// "key=value" lines for __metadata__.  INVALID_ARGUMENT naming the line.
Result<std::map<std::string, std::string>> ParseMetadata(std::string_view text);

// --- a peer's request for bytes of a shard: its tensor's bytes [begin, end), packed run after run

struct PullRequest {
  uint32_t shard = 0;
  ByteRange range;
};
Bytes EncodePull(const PullRequest& request);
Result<PullRequest> DecodePull(std::string_view bytes);

}  // namespace ckpt

#endif  // CKPT_CORE_SAVE_H_
