// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What rank 0 decides in a save: merge and check the states, lay out files, prepare the staging
// folder, plan, and later judge the votes and commit.  Runs on a library thread of rank 0.  Test:
// tests/process/
#include <algorithm>
#include <random>
#include <set>

#include "core/save.h"
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
  const Status threw = Contain([this] {
    Coordinate();
    return Status();
  });
  if (!threw.ok()) {
    s_->group().Contribute(round_, kSaveAnyPhase, s_->Localize(threw), Bytes(), false);
  }
  txn_.reset();  // without a commit: removes the staging folder
  done_.Set();
}

std::optional<std::vector<Bytes>> SaveCoordinator::Collect(uint32_t phase) {
  Result<std::vector<Bytes>> collected = s_->group().Collect(round_, phase);
  if (!collected.ok()) return std::nullopt;
  return *std::move(collected);
}

void SaveCoordinator::Coordinate() {
  Group& group = s_->group();
  const auto encoded = Collect(kSavePlanPhase);
  if (!encoded) return;
  group.Progress(round_, 1, "planning");
  uint32_t phase = kSavePlanPhase;
  const auto requests = DecodeAll(*encoded);
  if (!requests.ok()) return group.Publish(round_, phase, requests.status(), {}, false);
  const std::optional<Status> storage = ProbeStorage(*requests, &phase);
  if (!storage) return;
  Result<std::vector<Bytes>> orders =
      storage->ok() ? PlanPhase(*requests) : Result<std::vector<Bytes>>(*storage);
  if (!orders.ok()) txn_.reset();  // nothing is left behind when the ranks return
  group.Publish(round_, phase, s_->LocalizeErrno(orders.status()),
                orders.ok() ? *orders : std::vector<Bytes>(), /*last=*/false);
  if (!orders.ok()) return;
  const auto votes = Collect(++phase);
  if (!votes) return;
  if (txn_ == nullptr) return group.Publish(round_, phase, Status(), {}, /*last=*/true);
  group.Progress(round_, 2, "commit");
  const Status verdict = s_->LocalizeErrno(CommitPhase(*votes));
  if (!verdict.ok()) txn_.reset();
  group.Publish(round_, phase, verdict, {}, /*last=*/true);
  if (!verdict.ok()) return;
  std::vector<std::string> warnings;
  txn_->Finish(&warnings);
  for (const std::string& warning : warnings) s_->Warn(o_.step, warning);
}

Result<std::vector<SaveRequest>> SaveCoordinator::DecodeAll(
    const std::vector<Bytes>& encoded) const {
  std::vector<SaveRequest> requests;
  for (size_t rank = 0; rank < encoded.size(); ++rank) {
    Result<SaveRequest> request = DecodeRequest(encoded[rank]);
    if (!request.ok()) return request.status().WithRank(static_cast<int32_t>(rank));
    requests.push_back(*std::move(request));
  }
  return requests;
}

Result<std::shared_ptr<RootOwner>> SaveCoordinator::TakeRoot() {
  if (s_->root().empty()) {
    return Status(Code::kInvalidArgument, "this context was made without a root to save into");
  }
  uint64_t counter = 1;  // what counts as progress while another host's lease is watched
  return s_->Owner(
      [this] { return s_->group().Closed(round_); },
      [this, &counter](const std::string& what) { s_->group().Progress(round_, ++counter, what); });
}

Result<std::vector<Bytes>> SaveCoordinator::PlanPhase(const std::vector<SaveRequest>& requests) {
  std::vector<RankState> states;
  for (size_t rank = 0; rank < requests.size(); ++rank) {
    Result<RankState> state = DecodeRankState(requests[rank].state);
    if (!state.ok()) return state.status().WithRank(static_cast<int32_t>(rank));
    states.push_back(*std::move(state));
  }
  CKPT_ASSIGN_OR_RETURN(state_, MergeStates(states));
  if (s_->options().config.duplicate_ties) DuplicateTies(&state_);
  for (const auto& [alias, of] : state_.aliases) aliases_[alias.first][alias.second] = of;
  CKPT_RETURN_IF_ERROR(CheckRequiredBlobs(states));
  CKPT_RETURN_IF_ERROR(AddBlobs(&states));
  CKPT_ASSIGN_OR_RETURN(files_, LayoutAll());
  SavePlanOptions options;
  options.io_align = s_->options().config.io_align;
  options.min_run = s_->options().config.min_run;
  CKPT_ASSIGN_OR_RETURN(SavePlan plan, PlanSave(state_, files_, options));
  CKPT_RETURN_IF_ERROR(Prepare());
  if (txn_ == nullptr) {
    SaveOrder kept;
    kept.kept = true;
    return std::vector<Bytes>{EncodeOrder(kept)};
  }
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
    const auto ties = aliases_.find(group);
    options.aliases = ties == aliases_.end() ? AliasMap::mapped_type() : ties->second;
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
  CKPT_ASSIGN_OR_RETURN(std::shared_ptr<RootOwner> owner, TakeRoot());
  StepTransaction::Options options;
  options.keep_last = s_->options().config.keep_last;
  options.step = o_.step;
  options.on_existing = o_.on_existing;
  options.lineage = s_->Lineage();
  CKPT_ASSIGN_OR_RETURN(txn_, StepTransaction::Begin(std::move(owner), options));
  if (txn_ == nullptr) return Status();
  for (const FileLayout& file : files_) {
    s_->group().Progress(round_, 1, Cat("creating ", file.name));
    CKPT_RETURN_IF_ERROR(txn_->AddFile(file.name, file.bytes));
  }
  return Status();
}

// Shards with copies, each once, however many names it is stored under.
void SaveCoordinator::OrderHashes() {
  std::set<std::pair<int32_t, uint32_t>> shards;
  for (const GlobalTensor& tensor : state_.tensors) {
    if (tensor.desc.group == kBlobGroup || tensor.desc.group.empty()) continue;  // compared above
    for (const Piece& piece : tensor.pieces) {
      if (piece.holders.size() < 2) continue;
      for (const Holder& h : piece.holders) shards.insert({h.rank, h.shard});
    }
  }
  for (const auto& [rank, shard] : shards) orders_[rank].hash_shards.push_back(shard);
  const uint64_t seed = std::random_device()();
  for (SaveOrder& order : orders_) order.hash_seed = seed;
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
  if (s_->options().config.replica_check != ReplicaCheck::kOff) OrderHashes();
  std::vector<Bytes> out;
  for (const SaveOrder& order : orders_) out.push_back(EncodeOrder(order));
  return out;
}

}  // namespace ckpt
