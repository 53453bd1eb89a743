// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The recipe of a save, as one rank runs it.  docs/save.md is its map; save_data.cc moves the
// bytes, save_coordinator.cc decides.  Test: tests/process/
#include "core/save.h"

#include "io/crc32c.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint32_t kEventMilestone = 2, kAtSnapshot = 1, kAtCommitted = 4;  // ckpt.h
constexpr Millis kTidy(5000);

struct LocalState {
  RankState description;             // goes to the coordinator
  std::vector<ShardSource> sources;  // stays here
};

// Tensors are listed once however many shards this rank holds of them.
LocalState DescribeState(const State& state, bool may_write) {
  LocalState out;
  out.description.may_write = may_write;
  std::map<std::pair<std::string, std::string>, uint32_t> index;
  for (const State::Tensor& tensor : state.tensors()) {
    TensorDesc desc = tensor.desc;
    desc.name = state.StoredName(desc.name);
    uint32_t at = static_cast<uint32_t>(out.description.tensors.size());
    auto [it, fresh] = index.try_emplace({desc.group, desc.name}, at);
    if (fresh || !(out.description.tensors[it->second] == desc)) {
      out.description.tensors.push_back(desc);
    } else {
      at = it->second;
    }
    if (tensor.required) out.description.required.push_back(at);
    out.description.shards.push_back({at, tensor.geometry});
    out.sources.push_back({std::move(desc), tensor.geometry, tensor.memory});
  }
  for (const AliasDesc& alias : state.aliases()) {
    out.description.aliases.push_back(
        {alias.group, state.StoredName(alias.name), state.StoredName(alias.of)});
  }
  for (const BlobSpec& blob : state.blobs()) {
    BlobDesc desc;
    desc.name = blob.name;
    desc.scope = blob.scope;
    desc.bytes = blob.bytes;
    desc.crc32c = Crc32c(0, blob.data, blob.bytes);
    desc.flags = (blob.optional ? 1u : 0u) | (blob.required ? 2u : 0u);
    out.description.blobs.push_back(desc);
    TensorDesc tensor;
    tensor.name = blob.name;
    tensor.dtype = kU8;
    tensor.shape = {static_cast<int64_t>(blob.bytes)};
    tensor.elem_bytes = 1;
    tensor.bytes = blob.bytes;
    out.sources.push_back({tensor, MakeWhole(tensor), {blob.data, kU8, 1, {}, {}}});
  }
  return out;
}

Call SaveCall(const SaveOptions& o, uint64_t timeout_ms) {
  Call call;
  call.op = Op::kSave;
  call.step = o.step;
  call.timeout_ms = timeout_ms;
  call.fields = {{"tag", o.tag},
                 {"on_existing", Cat(static_cast<uint32_t>(o.on_existing))},
                 {"metadata", o.metadata}};
  return call;
}

// Runs on a library thread: the data phase, then this rank's vote.  Owns all that it touches.
void DataPhase(SessionImpl& session, uint64_t round, uint32_t phase, SaveData& data,
               const SaveOrder& order) {
  Result<SaveVote> vote = order.kept ? Result<SaveVote>(SaveVote()) : data.Run(order);
  session.group().Contribute(round, phase, session.Localize(vote.status()),
                             vote.ok() ? EncodeVote(*vote) : Bytes(), /*commit_vote=*/true);
}

Status LocalCheck(const State& state, const SaveOptions& o) {
  CKPT_RETURN_IF_ERROR(state.poison());
  CKPT_RETURN_IF_ERROR(state.CheckStoredNames());
  if (o.step < 0) {
    return Status(Code::kInvalidArgument, Cat("step ", o.step, " is negative"));
  }
  return ParseMetadata(o.metadata).status();
}

}  // namespace

Result<std::map<std::string, std::string>> ParseMetadata(std::string_view text) {
  std::map<std::string, std::string> out;
  size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    auto bad = [&](std::string_view why) {
      return Status(Code::kInvalidArgument, Cat("metadata line ", line_number, ": ", why));
    };
    if (equals == std::string_view::npos || equals == 0) return bad("not of the form key=value");
    if (!IsUtf8(line)) return bad("not UTF-8");
    const std::string key(line.substr(0, equals));
    if (key == "format") return bad("the key \"format\" belongs to the library");
    if (!out.emplace(key, line.substr(equals + 1)).second) return bad("a duplicate key");
  }
  return out;
}

namespace {

// One rank's side of one save.  Runs on the caller's thread, which only waits.
class SaveRun {
 public:
  SaveRun(std::shared_ptr<SessionImpl> session, const SaveOptions& options, uint64_t round,
          std::shared_ptr<std::atomic<bool>> cancelled, OpResult* result)
      : s_(std::move(session)),
        o_(options),
        round_(round),
        cancelled_(std::move(cancelled)),
        result_(result) {}

  // However the save ended, nothing of the library touches the caller's memory from here on.
  ~SaveRun() {
    if (data_ == nullptr) return;
    data_->Abandon();
    s_->group().StopServing(round_);
    result_->bytes_written = data_->bytes_written();
    result_->bytes_exchanged = data_->bytes_exchanged();
    // The coordinator returns last: its folder is tidy then, unless the disk is stuck.
    if (coordinator_ != nullptr) coordinator_->done().WaitFor(kTidy);
  }

  Status Run(const State& state) {
    const TimePoint start = Clock::now();
    LocalState local = DescribeState(state, !s_->options().no_write);
    result_->tensors = state.tensors().size();
    for (const ShardSource& source : local.sources) {
      result_->bytes += static_cast<uint64_t>(Elements(source.geometry)) * source.desc.elem_bytes;
    }
    MakeData(std::move(local.sources));
    Group& group = s_->group();
    group.StartServing(round_, [data = data_](std::string_view request, std::string* reply) {
      return Contain([&] { return data->Provide(request, reply); });
    });
    const SaveRequest request{ThisPlace(), s_->root(), local.description.may_write,
                              EncodeRankState(local.description)};
    group.Contribute(round_, kSavePlanPhase, Status(), EncodeRequest(request), false);
    if (group.rank() == 0) {
      auto coordinator = std::make_shared<SaveCoordinator>(s_, round_, o_, data_);
      s_->StartStep("ckpt-commit", round_, kSaveAnyPhase, [coordinator] { coordinator->Run(); });
      coordinator_ = std::move(coordinator);
    }
    return WriteAndVote(start);
  }

 private:
  void MakeData(std::vector<ShardSource> sources) {
    SaveData::Options options;
    options.group = s_->group_ptr();
    options.round = round_;
    options.step = o_.step;
    options.config = s_->options().config;
    options.root = s_->root();
    options.sources = std::move(sources);
    options.cancelled = cancelled_;
    options.on_progress = [s = s_, round = round_](Event event) {
      event.round = round;
      s->Queue(std::move(event));
    };
    data_ = std::make_shared<SaveData>(std::move(options));
  }

  // Gets this rank's orders, has them carried out, waits for the verdict.
  Status WriteAndVote(TimePoint start) {
    CKPT_ASSIGN_OR_RETURN(Bytes bytes, s_->group().Await(round_, kSavePlanPhase));
    uint32_t phase = kSavePlanPhase + 1;
    if (const auto probe = DecodeProbeOrder(bytes)) {
      CKPT_ASSIGN_OR_RETURN(bytes, Probe(*probe));
      phase = kProbeSeenPhase + 1;
    }
    result_->plan_ns = NanosSince(start);
    Result<SaveOrder> order = DecodeOrder(bytes);
    if (order.ok()) {
      auto shared = std::make_shared<const SaveOrder>(*std::move(order));
      s_->StartStep("ckpt-save", round_, phase,
                    [s = s_, round = round_, phase, data = data_, shared] {
                      DataPhase(*s, round, phase, *data, *shared);
                    });
    } else {
      s_->group().Contribute(round_, phase, s_->Localize(order.status()), Bytes(), true);
    }
    const Status verdict = s_->group().Await(round_, phase).status();
    // What is not planning or this rank's own writing is waiting for the others and the commit.
    result_->io_ns = data_->run_ns();
    const uint64_t since_plan = NanosSince(start) - result_->plan_ns;
    result_->commit_ns = since_plan > result_->io_ns ? since_plan - result_->io_ns : 0;
    return verdict;
  }

  // This rank's side of the storage probe; what comes after it.  File I/O, so on threads of ours.
  Result<Bytes> Probe(const ProbeOrder& order) {
    s_->StartStep("ckpt-probe", round_, kSaveAnyPhase, [s = s_, round = round_, order] {
      Result<std::string> name = std::string();
      if (order.writes) name = WriteProbe(s->root(), order.nonce, s->group().rank());
      // No root here is an answer, not an error.
      if (name.status().code() == Code::kNotFound) name = std::string();
      s->group().Contribute(round, kProbeWrittenPhase, s->Localize(name.status()),
                            name.ok() ? *name : Bytes(), false);
    });
    CKPT_ASSIGN_OR_RETURN(const Bytes encoded, s_->group().Await(round_, kProbeWrittenPhase));
    const Result<std::vector<std::string>> names = DecodeNames(encoded);
    s_->StartStep("ckpt-probe", round_, kSaveAnyPhase, [s = s_, round = round_, names] {
      std::vector<std::string> unseen;
      Status status = names.status();
      for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
        if (name.empty() || !status.ok()) continue;
        const Result<bool> seen = SeesProbe(s->root(), name);
        if (!seen.ok() && seen.status().code() != Code::kNotFound) status = seen.status();
        if (!seen.ok() || !*seen) unseen.push_back(name);
      }
      s->group().Contribute(round, kProbeSeenPhase, s->Localize(status), EncodeNames(unseen),
                            false);
    });
    Result<Bytes> next = s_->group().Await(round_, kProbeSeenPhase);
    if (order.writes && s_->group().rank() != 0) {
      // On another storage than rank 0's nobody else would.
      s_->StartStep("ckpt-probe", round_, kSaveAnyPhase,
                    [s = s_, order] { (void)RemoveProbes(s->root(), order.nonce).ok(); });
    }
    return next;
  }

  const std::shared_ptr<SessionImpl> s_;
  const SaveOptions& o_;
  const uint64_t round_;
  const std::shared_ptr<std::atomic<bool>> cancelled_;
  OpResult* const result_;
  std::shared_ptr<SaveData> data_;
  std::shared_ptr<SaveCoordinator> coordinator_;  // rank 0
};

}  // namespace

Status SessionImpl::Save(State& state, const SaveOptions& o, OpResult* result) {
  CKPT_RETURN_IF_ERROR(Usable());
  const TimePoint start = Clock::now();
  CallScope scope(group(), Cat("ckpt_save_collective(step=", o.step, ")"));
  result->step = o.step;
  const auto cancelled = BeginCancellable();
  Result<uint64_t> round =
      group().Arrive(SaveCall(o, TimeoutMs(o.contract_timeout_ms)), Localize(LocalCheck(state, o)));
  if (!round.ok()) return scope.Done(round.status());
  const Status verdict = RunOnCaller(*round, kSaveAnyPhase, [&] {
    CancelIn(*round, kSaveAnyPhase);
    return SaveRun(shared_from_this(), o, *round, cancelled, result).Run(state);
  });
  result->total_ns = NanosSince(start);
  result->snapshot_ns = result->total_ns;  // the caller has waited for all of it
  if (verdict.ok()) {
    for (uint32_t milestone : {kAtSnapshot, kAtCommitted}) {
      Event event;
      event.kind = kEventMilestone;
      event.step = o.step;
      event.milestone = milestone;
      event.bytes_done = event.bytes_total = result->bytes_written;
      events_->Push(std::move(event));
    }
  }
  Pump();
  return scope.Done(verdict);
}

}  // namespace ckpt
