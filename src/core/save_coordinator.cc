// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What rank 0 decides in a save: merge and check the states, lay out files, prepare the staging
// folder, plan, and later judge the votes and commit.  Runs on a library thread of rank 0.  Test:
// tests/process/
#include <algorithm>
#include <set>

#include "core/save.h"
#include "io/crc32c.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr char kBlobGroup[] = "blobs";

Status Disagreement(const std::string& name, std::string_view field, int32_t first, int32_t second,
                    std::string_view first_value, std::string_view second_value) {
  Cause cause;
  cause.rank = second;
  cause.name = name;
  cause.field = std::string(field);
  RankReport report;
  report.rank = second;
  report.condition = Condition::kDisagrees;
  return Status(Code::kMismatch,
                Cat("blob \"", Printable(name), "\": ", field, " differs: rank ", first, " gave ",
                    first_value, ", rank ", second, " gave ", second_value),
                std::move(cause))
      .WithRanks({report});
}

TensorDesc BlobTensor(const std::string& group, const std::string& name, uint64_t bytes) {
  TensorDesc t;
  t.group = group;
  t.name = name;
  t.dtype = kU8;
  t.shape = {static_cast<int64_t>(bytes)};
  t.elem_bytes = 1;
  t.bytes = bytes;
  return t;
}

std::string StoredName(const BlobDesc& blob, int32_t rank) {
  switch (blob.scope) {
    case BlobScope::kPerRank:
      return fmt::format("rank/{:06d}/{}", rank, blob.name);
    case BlobScope::kShared:
      return Cat("shared/", blob.name);
    case BlobScope::kFile:
      return blob.name;
  }
  return blob.name;
}

}  // namespace

void SaveCoordinator::Run() {
  Group& group = s_->group();
  Result<std::vector<Bytes>> requests = group.Collect(round_, kSavePlanPhase);
  if (!requests.ok()) return;  // the round is closed on all
  group.Progress(round_, 1, "planning");
  Result<std::vector<Bytes>> orders = PlanPhase(*requests);
  group.Publish(round_, kSavePlanPhase, s_->Localize(orders.status()),
                orders.ok() ? std::move(*orders) : std::vector<Bytes>(), /*last=*/false);
  if (!orders.ok()) return;
  Result<std::vector<Bytes>> votes = group.Collect(round_, kSaveVotePhase);
  if (!votes.ok()) return;  // destroying the transaction removes the staging folder
  group.Progress(round_, 2, "commit");
  const Status verdict = s_->Localize(CommitPhase(*votes));
  group.Publish(round_, kSaveVotePhase, verdict, {}, /*last=*/true);
}

Result<std::vector<Bytes>> SaveCoordinator::PlanPhase(const std::vector<Bytes>& requests) {
  std::vector<RankState> states;
  for (size_t rank = 0; rank < requests.size(); ++rank) {
    Result<RankState> state = DecodeRankState(requests[rank]);
    if (!state.ok()) return state.status().WithRank(static_cast<int32_t>(rank));
    states.push_back(*std::move(state));
  }
  CKPT_ASSIGN_OR_RETURN(state_, MergeStates(states));
  CKPT_RETURN_IF_ERROR(CheckRequiredBlobs(states));
  CKPT_RETURN_IF_ERROR(AddBlobs(&states));
  CKPT_ASSIGN_OR_RETURN(files_, LayoutAll());
  SavePlanOptions options;
  options.io_align = s_->options().config.io_align;
  options.min_run = s_->options().config.min_run;
  CKPT_ASSIGN_OR_RETURN(SavePlan plan, PlanSave(state_, files_, options));
  CKPT_RETURN_IF_ERROR(Prepare());
  std::vector<Bytes> headers;
  for (const FileLayout& file : files_) headers.push_back(file.header);
  own_data_->SetHeaders(std::move(headers));
  return MakeOrders(states, std::move(plan));
}

Status SaveCoordinator::CheckRequiredBlobs(const std::vector<RankState>& states) const {
  std::set<std::pair<BlobScope, std::string>> required;
  for (const RankState& state : states) {
    for (const BlobDesc& blob : state.blobs) {
      if (blob.flags & 2u) required.insert({blob.scope, blob.name});
    }
  }
  for (const auto& [scope, name] : required) {
    std::vector<int32_t> lacking;
    for (size_t rank = 0; rank < states.size(); ++rank) {
      const auto& blobs = states[rank].blobs;
      if (std::none_of(blobs.begin(), blobs.end(), [&, s = scope, n = name](const BlobDesc& b) {
            return b.scope == s && b.name == n;
          })) {
        lacking.push_back(static_cast<int32_t>(rank));
      }
    }
    if (lacking.empty()) continue;
    Cause cause;
    cause.rank = lacking[0];
    cause.name = name;
    return Status(Code::kInvalidArgument,
                  Cat("blob \"", Printable(name), "\" is required of every rank, but rank ",
                      RankRanges(lacking), " did not give it"),
                  std::move(cause));
  }
  return Status();
}

Status SaveCoordinator::MergeBlob(const std::string& tensor_name, const std::string& group,
                                  const BlobDesc& blob, Holder holder) {
  auto [it, fresh] = shared_.try_emplace({group, tensor_name});
  if (fresh) {
    it->second = {blob, holder.rank, state_.tensors.size()};
    GlobalTensor tensor;
    tensor.desc = BlobTensor(group, tensor_name, blob.bytes);
    if (blob.bytes > 0) tensor.pieces.push_back({MakeWhole(tensor.desc), {holder}});
    state_.tensors.push_back(std::move(tensor));
    return Status();
  }
  const SharedBlob& first = it->second;
  if (first.desc.bytes != blob.bytes) {
    return Disagreement(blob.name, "bytes", first.first_rank, holder.rank, Cat(first.desc.bytes),
                        Cat(blob.bytes));
  }
  if (first.desc.crc32c != blob.crc32c) {
    return Disagreement(blob.name, "content", first.first_rank, holder.rank,
                        fmt::format("crc32c {:08x}", first.desc.crc32c),
                        fmt::format("crc32c {:08x}", blob.crc32c));
  }
  GlobalTensor& tensor = state_.tensors[first.tensor];
  if (!tensor.pieces.empty()) tensor.pieces[0].holders.push_back(holder);
  return Status();
}

// Blobs become U8 tensors of the group "blobs", side files tensors of the group "", so that
// planning, exchange and writing treat them like any other bytes.
Status SaveCoordinator::AddBlobs(std::vector<RankState>* states) {
  for (size_t rank = 0; rank < states->size(); ++rank) {
    const RankState& state = (*states)[rank];
    for (size_t i = 0; i < state.blobs.size(); ++i) {
      const BlobDesc& blob = state.blobs[i];
      const int32_t r = static_cast<int32_t>(rank);
      const Holder holder{r, static_cast<uint32_t>(state.shards.size() + i)};
      const std::string stored = StoredName(blob, r);
      const bool side_file = blob.scope == BlobScope::kFile;
      const size_t before = state_.tensors.size();
      CKPT_RETURN_IF_ERROR(MergeBlob(stored, side_file ? "" : kBlobGroup, blob, holder));
      if (side_file || state_.tensors.size() == before) continue;
      BlobRecord record;
      record.name = blob.name;
      record.scope = blob.scope;
      record.rank = blob.scope == BlobScope::kPerRank ? r : -1;
      record.bytes = blob.bytes;
      blob_records_.push_back(std::move(record));
    }
  }
  return Status();
}

Result<std::vector<FileLayout>> SaveCoordinator::LayoutAll() {
  LayoutOptions options;
  options.max_file_bytes = s_->options().config.max_file_bytes;
  CKPT_ASSIGN_OR_RETURN(options.metadata, ParseMetadata(o_.metadata));
  std::map<std::string, std::vector<TensorDesc>> by_group;
  std::vector<FileLayout> files, side_files;
  for (const GlobalTensor& tensor : state_.tensors) {
    if (!tensor.desc.group.empty()) {
      by_group[tensor.desc.group].push_back(tensor.desc);
      continue;
    }
    FileLayout file;
    file.name = tensor.desc.name;
    file.bytes = tensor.desc.bytes;
    file.tensors.push_back({tensor.desc, 0});
    side_files.push_back(std::move(file));
  }
  for (auto& [group, tensors] : by_group) {
    CKPT_ASSIGN_OR_RETURN(std::vector<FileLayout> of_group,
                          LayoutGroup(group, std::move(tensors), options));
    if (group != kBlobGroup) index_files_.emplace_back(IndexName(group), IndexJson(of_group));
    for (const FileLayout& file : of_group) groups_[group].push_back(file.name);
    std::move(of_group.begin(), of_group.end(), std::back_inserter(files));
  }
  std::move(side_files.begin(), side_files.end(), std::back_inserter(files));
  return files;
}

Status SaveCoordinator::Prepare() {
  if (s_->root().empty()) {
    return Status(Code::kInvalidArgument, "this context was made without a root to save into");
  }
  CKPT_ASSIGN_OR_RETURN(std::shared_ptr<RootOwner> owner, s_->Owner());
  StepTransaction::Options options;
  options.step = o_.step;
  options.on_existing = o_.on_existing;
  options.lineage = s_->Lineage();
  CKPT_ASSIGN_OR_RETURN(txn_, StepTransaction::Begin(std::move(owner), options));
  for (const FileLayout& file : files_) CKPT_RETURN_IF_ERROR(txn_->AddFile(file.name, file.bytes));
  return Status();
}

std::vector<Bytes> SaveCoordinator::MakeOrders(const std::vector<RankState>& states,
                                               SavePlan plan) {
  orders_.resize(states.size());
  for (size_t rank = 0; rank < states.size(); ++rank) {
    SaveOrder& order = orders_[rank];
    order.staging = txn_->staging_folder();
    for (const FileLayout& file : files_) order.files.emplace_back(file.name, file.bytes);
    order.plan = std::move(plan.ranks[rank]);
  }
  if (s_->options().config.replica_check) {
    for (const GlobalTensor& tensor : state_.tensors) {
      if (tensor.desc.group == kBlobGroup || tensor.desc.group.empty()) continue;  // compared above
      for (const Piece& piece : tensor.pieces) {
        if (piece.holders.size() < 2) continue;
        for (const Holder& h : piece.holders) orders_[h.rank].hash_shards.push_back(h.shard);
      }
    }
  }
  std::vector<Bytes> out;
  for (const SaveOrder& order : orders_) out.push_back(EncodeOrder(order));
  return out;
}

// --- after the votes
// ----------------------------------------------------------------------------------

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
      record, index_files_, [this] { return s_->group().BeginCommit(round_); }, &warnings);
  for (const std::string& warning : warnings) s_->Warn(o_.step, warning);
  return status;
}

Status SaveCoordinator::CheckReplicas(const std::vector<SaveVote>& votes) const {
  std::map<Holder, const std::vector<uint32_t>*, bool (*)(const Holder&, const Holder&)> hashes(
      [](const Holder& a, const Holder& b) {
        return std::tie(a.rank, a.shard) < std::tie(b.rank, b.shard);
      });
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
      const auto first = hashes.find(piece.holders[0]);
      if (first == hashes.end()) continue;
      std::vector<int32_t> differing;
      for (const Holder& h : piece.holders) {
        if (*hashes.at(h) != *first->second) differing.push_back(h.rank);
      }
      if (differing.empty()) continue;
      Cause cause;
      cause.rank = differing[0];
      cause.name = tensor.desc.name;
      cause.field = "content";
      std::vector<RankReport> reports;
      for (int32_t rank : differing) {
        reports.push_back({});
        reports.back().rank = rank;
        reports.back().condition = Condition::kDisagrees;
      }
      return Status(Code::kReplica,
                    Cat("tensor \"", Printable(tensor.desc.name), "\" ",
                        Describe(tensor.desc, piece.geometry),
                        ": copies declared as replicas differ: rank ", RankRanges(differing),
                        " from rank ", piece.holders[0].rank),
                    std::move(cause))
          .WithRanks(std::move(reports));
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
  record.library = CKPT_BUILD_ID;
  record.layout_note = s_->options().layout_note;
  record.created_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  record.world_size = s_->group().size();
  CKPT_ASSIGN_OR_RETURN(record.sequence, txn_->NextSequence());
  CKPT_ASSIGN_OR_RETURN(record.known, txn_->Known());
  record.groups = groups_;
  record.blobs = blob_records_;
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
