// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What rank 0 decides after the votes of a save: are replicas equal, what is the record, commit.
// Runs on a library thread.  Test: tests/process/
#include <algorithm>

#include "core/save.h"
#include "io/crc32c.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

// Checksums that a vote gave for a shard, by (rank, shard).
using HashOfHolder = std::map<std::pair<int32_t, uint32_t>, const std::vector<uint32_t>*>;

// REPLICA naming the holders that differ from the most common content, and one that has it.
Status CompareReplicas(const TensorDesc& tensor, const Piece& piece, const HashOfHolder& hashes) {
  std::map<std::vector<uint32_t>, std::vector<int32_t>> ranks_by_content;
  for (const Holder& h : piece.holders) {
    const auto it = hashes.find({h.rank, h.shard});
    if (it != hashes.end()) ranks_by_content[*it->second].push_back(h.rank);
  }
  if (ranks_by_content.size() < 2) return Status();
  const std::vector<int32_t>* common = nullptr;
  for (const auto& [content, ranks] : ranks_by_content) {
    const bool more = common == nullptr || ranks.size() > common->size() ||
                      (ranks.size() == common->size() && ranks[0] < (*common)[0]);
    if (more) common = &ranks;
  }
  std::vector<int32_t> differing;
  for (const auto& [content, ranks] : ranks_by_content) {
    if (&ranks != common) differing.insert(differing.end(), ranks.begin(), ranks.end());
  }
  std::sort(differing.begin(), differing.end());
  Cause cause;
  cause.rank = differing[0];
  cause.name = tensor.name;
  cause.field = "content";
  std::vector<RankReport> reports(1);
  reports[0].rank = (*common)[0];
  for (int32_t rank : differing) {
    reports.emplace_back();
    reports.back().rank = rank;
  }
  for (RankReport& report : reports) report.condition = Condition::kDisagrees;
  return Status(Code::kReplica,
                Cat("tensor \"", Printable(tensor.name), "\" ", Describe(tensor, piece.geometry),
                    ": copies declared as replicas differ: rank ", RankRanges(differing),
                    " from rank ", RankRanges(*common)),
                std::move(cause))
      .WithRanks(std::move(reports));
}

}  // namespace

Status SaveCoordinator::CommitPhase(const std::vector<Bytes>& encoded) {
  std::vector<SaveVote> votes;
  for (size_t rank = 0; rank < encoded.size(); ++rank) {
    Result<SaveVote> vote = DecodeVote(encoded[rank]);
    if (!vote.ok()) return vote.status().WithRank(static_cast<int32_t>(rank));
    votes.push_back(*std::move(vote));
  }
  CKPT_RETURN_IF_ERROR(CheckReplicas(votes));
  CKPT_ASSIGN_OR_RETURN(CommitRecord record, MakeRecord(votes));
  std::vector<std::string> warnings;
  const Status status = txn_->Commit(
      record, index_files_, [this] { return s_->group().BeginCommit(round_); },
      [this] { return s_->group().Closed(round_); }, &warnings);
  for (const std::string& warning : warnings) s_->Warn(o_.step, warning);
  return status;
}

Status SaveCoordinator::CheckReplicas(const std::vector<SaveVote>& votes) const {
  HashOfHolder hashes;
  for (size_t rank = 0; rank < votes.size(); ++rank) {
    const std::vector<uint32_t>& shards = orders_[rank].hash_shards;
    if (votes[rank].shard_hashes.size() != shards.size()) {
      return Status(Code::kComm, "a vote lacks checksums").WithRank(static_cast<int32_t>(rank));
    }
    for (size_t i = 0; i < shards.size(); ++i) {
      hashes[{static_cast<int32_t>(rank), shards[i]}] = &votes[rank].shard_hashes[i];
    }
  }
  for (const GlobalTensor& tensor : state_.tensors) {
    for (const Piece& piece : tensor.pieces) {
      CKPT_RETURN_IF_ERROR(CompareReplicas(tensor.desc, piece, hashes));
    }
  }
  return Status();
}

Status SaveCoordinator::FillFiles(const std::vector<SaveVote>& votes, CommitRecord* record) const {
  for (const FileLayout& file : files_) {
    FileRecord out;
    out.name = file.name;
    out.bytes = file.bytes;
    out.crc32c.resize((file.bytes + kCrcBlock - 1) / kCrcBlock);
    record->files.push_back(std::move(out));
  }
  for (size_t rank = 0; rank < votes.size(); ++rank) {
    const std::vector<PlanExtent>& extents = orders_[rank].plan.extents;
    if (votes[rank].contributions.size() != extents.size()) {
      return Status(Code::kComm, "a vote lacks extents").WithRank(static_cast<int32_t>(rank));
    }
    std::map<uint32_t, uint64_t> written;
    for (size_t e = 0; e < extents.size(); ++e) {
      FileRecord& file = record->files[extents[e].file];
      const std::vector<uint32_t>& blocks = votes[rank].contributions[e];
      const uint64_t first = extents[e].range.begin / kCrcBlock;
      if (first + blocks.size() > file.crc32c.size()) {
        return Status(Code::kComm, "a vote has too many blocks")
            .WithRank(static_cast<int32_t>(rank));
      }
      for (size_t b = 0; b < blocks.size(); ++b) file.crc32c[first + b] ^= blocks[b];
      written[extents[e].file] += extents[e].range.size();
    }
    for (const auto& [file, bytes] : written) {
      record->files[file].writers.push_back({static_cast<int32_t>(rank), bytes});
    }
  }
  for (FileRecord& file : record->files) {
    for (size_t b = 0; b < file.crc32c.size(); ++b) {
      const uint64_t block = std::min(kCrcBlock, file.bytes - b * kCrcBlock);
      file.crc32c[b] = Crc32cBlock(file.crc32c[b], block);
    }
  }
  return Status();
}

Result<CommitRecord> SaveCoordinator::MakeRecord(const std::vector<SaveVote>& votes) {
  CommitRecord record;
  record.step = o_.step;
  record.tag = o_.tag;
  record.lineage = s_->Lineage();
  record.library = kLibraryBuild;
  record.layout_note = s_->options().layout_note;
  record.created_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  record.world_size = s_->group().size();
  CKPT_ASSIGN_OR_RETURN(record.sequence, txn_->NextSequence());
  CKPT_ASSIGN_OR_RETURN(record.known, txn_->Known());
  record.groups = groups_;
  record.blobs = blob_records_;
  record.aliases = aliases_;
  for (const GlobalTensor& tensor : state_.tensors) {
    CKPT_ASSIGN_OR_RETURN(const DTypeInfo dtype, FindDType(tensor.desc.dtype));
    if (!dtype.named) record.dtypes[tensor.desc.group][tensor.desc.name] = dtype.dtype;
  }
  CKPT_RETURN_IF_ERROR(FillFiles(votes, &record));
  // Side files come last in files_; they have one checksum each and a list of their own.
  for (size_t f = record.files.size(); f > 0 && files_[f - 1].group.empty(); --f) {
    const FileRecord& file = record.files.back();
    uint32_t crc = 0;
    for (size_t b = 0; b < file.crc32c.size(); ++b) {
      crc = Crc32cCombine(crc, file.crc32c[b], std::min(kCrcBlock, file.bytes - b * kCrcBlock));
    }
    record.side_files.insert(record.side_files.begin(), {file.name, file.bytes, crc});
    record.files.pop_back();
  }
  for (const auto& [name, content] : index_files_) {
    record.index_files.push_back({name, content.size(), Crc32c(0, content.data(), content.size())});
  }
  return record;
}

}  // namespace ckpt
