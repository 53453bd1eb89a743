// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The recipe of a load, as one rank runs it, and the coordinator's side.  docs/load.md is its map.
// Test: tests/process/
#include "core/load.h"

#include <filesystem>
#include <thread>

#include "io/crc32c.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint64_t kMaxRecordBytes = 1ull << 30;
constexpr int kLooks = 3;
constexpr Millis kVisibleWithin(1000);  // what another host has made may take a moment to appear

// `attempt` tells a call from its repetition on the next older step.
Call LoadCall(const LoadOptions& o, size_t attempt, uint64_t timeout_ms) {
  Call call;
  call.op = Op::kLoad;
  call.step = -1;
  call.timeout_ms = timeout_ms;
  const uint32_t flags = (o.allow_missing ? 1u : 0u) | (o.no_unused ? 2u : 0u) |
                         (o.no_verify ? 4u : 0u) | (o.convert ? 8u : 0u) | (o.fallback ? 16u : 0u);
  call.fields = {{"step", o.latest ? std::string("newest") : Cat(o.step)},
                 {"uri", o.uri},
                 {"flags", Cat(flags)},
                 {"attempt", Cat(attempt)}};
  return call;
}

Bytes PackBits(const std::vector<bool>& bits) {
  Bytes out((bits.size() + 7) / 8, '\0');
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) out[i / 8] = static_cast<char>(out[i / 8] | (1 << (i % 8)));
  }
  return out;
}

std::vector<bool> UnpackBits(std::string_view bytes, size_t n) {
  std::vector<bool> out(n);
  for (size_t i = 0; i < n && i / 8 < bytes.size(); ++i) out[i] = (bytes[i / 8] >> (i % 8)) & 1;
  return out;
}

// No older step is left to fall back to.
Status Final(const Status& status) {
  Cause cause = status.cause();
  cause.field = kNothingLeft;
  return Status(status.code(), status.message(), std::move(cause));
}

// Whether what was loaded is a step of the root that this job saves to, however it is spelled.
bool IsOfRoot(const std::string& path, bool is_root, const std::string& root) {
  namespace fs = std::filesystem;
  std::error_code absent;
  const fs::path folder = is_root ? fs::path(path) : fs::path(path) / "..";
  return fs::equivalent(folder, root, absent);
}

// The coordinator's side: three phases, each closed with what was found.
void Coordinate(SessionImpl& s, uint64_t round, const LoadOptions& o, const std::string& path,
                const std::shared_ptr<TriedSteps>& tried_steps) {
  Group& group = s.group();
  if (!group.Collect(round, kLoadChoosePhase).ok()) return;
  group.Progress(round, 1, Cat("reading the catalog of ", path));
  std::vector<std::string> warnings;
  const Tried tried = tried_steps->Get();
  Result<LoadChoice> choice = ChooseStep(path, o, tried, &warnings);
  // A step that is being replaced may change its folder's name between two looks.
  for (int look = 1; look < kLooks && choice.status().code() == Code::kNotFound; ++look) {
    warnings.clear();
    choice = ChooseStep(path, o, tried, &warnings);
  }
  if (choice.status().code() == Code::kCorrupt) choice = Final(choice.status());
  if (choice.ok()) tried_steps->Add(choice->catalog.record.sequence);
  for (const std::string& warning : warnings) s.Warn(-1, warning);
  group.Publish(round, kLoadChoosePhase, s.LocalizeErrno(choice.status()),
                choice.ok() ? std::vector<Bytes>{EncodeChoice(*choice)} : std::vector<Bytes>(),
                false);
  if (!choice.ok()) return;
  Result<std::vector<Bytes>> checks = group.Collect(round, kLoadCheckPhase);
  if (!checks.ok()) return;
  Bytes asked;
  for (const Bytes& bits : *checks) {
    asked.resize(std::max(asked.size(), bits.size()), '\0');
    for (size_t i = 0; i < bits.size(); ++i) asked[i] = static_cast<char>(asked[i] | bits[i]);
  }
  Status status;
  if (o.no_unused) {
    const std::vector<std::string> unused =
        UnusedNames(choice->catalog, UnpackBits(asked, asked.size() * 8));
    if (!unused.empty()) {
      Cause cause;
      cause.name = unused[0];
      status = Status(Code::kNotFound,
                      Cat(unused.size(), " stored tensors were not asked for by any rank, first \"",
                          Printable(unused[0]), "\""),
                      std::move(cause));
    }
  }
  group.Publish(round, kLoadCheckPhase, status, {asked}, false);
  if (!status.ok() || !group.Collect(round, kLoadVotePhase).ok()) return;
  if (IsOfRoot(path, choice->in_root, s.root())) s.SetLineage(choice->catalog.record.lineage);
  group.Publish(round, kLoadVotePhase, Status(), {}, true);
}

Status UnlikeHere(const std::string& path, const LoadChoice& choice, std::string_view why) {
  Cause cause;
  cause.path = path;
  return Status(Code::kUnsupported,
                Cat("root ", path, ": ", choice.catalog.folder, ", which rank 0 chose in ",
                    choice.where, ", ", why, " here: all ranks must see one storage"),
                std::move(cause));
}

}  // namespace

Bytes EncodeChoice(const LoadChoice& choice) {
  WireWriter w;
  w.Str(choice.where);
  w.U8(choice.in_root ? 1 : 0);
  w.U8(choice.fell_back ? 1 : 0);
  w.Str(EncodeCatalog(choice.catalog));
  return w.Take();
}

Result<LoadChoice> DecodeChoice(std::string_view bytes) {
  WireReader r(bytes);
  LoadChoice choice;
  choice.where = r.Str();
  choice.in_root = r.U8() != 0;
  choice.fell_back = r.U8() != 0;
  const std::string catalog = r.Str();
  if (!r.AtEnd()) return Status(Code::kComm, "malformed choice of a step");
  CKPT_ASSIGN_OR_RETURN(choice.catalog, DecodeCatalog(catalog));
  return choice;
}

namespace {

// Reads the catalog of a step; keeps the folder from retention meanwhile and afterwards.
Status ReadChoice(Dir step, LoadChoice* choice) {
  choice->in_use = std::make_shared<StepInUse>(step);
  CKPT_ASSIGN_OR_RETURN(choice->catalog, ReadCatalog(step));
  return Status();
}

Result<LoadChoice> FallBack(const Dir& root, const Tried& tried, LoadChoice choice,
                            std::vector<std::string>* warnings) {
  CKPT_ASSIGN_OR_RETURN(const std::vector<StepEntry> steps, StepsForFallback(root, warnings));
  const Result<StepEntry> newest = NewestStep(root, nullptr);
  for (const StepEntry& entry : steps) {
    if (tried.count(entry.record->sequence) > 0) continue;
    CKPT_ASSIGN_OR_RETURN(Dir step, root.OpenDir(entry.folder));
    const Status read = ReadChoice(std::move(step), &choice);
    if (read.code() == Code::kCorrupt) {
      warnings->push_back(Cat(entry.folder, " is passed over: ", read.message()));
      continue;
    }
    CKPT_RETURN_IF_ERROR(read);
    choice.fell_back = !newest.ok() || newest->folder != entry.folder;
    return choice;
  }
  Cause cause;
  cause.path = root.path();
  return Status(
      Code::kCorrupt,
      Cat("root ", root.path(), ": all ", steps.size(), " steps that could be loaded are damaged"),
      std::move(cause));
}

}  // namespace

Result<LoadChoice> ChooseStep(const std::string& path, const LoadOptions& o, const Tried& tried,
                              std::vector<std::string>* warnings) {
  LoadChoice choice;
  choice.where = path;
  Result<Dir> dir = Dir::Open(path);
  if (!dir.ok()) {
    if (dir.status().code() != Code::kNotFound) return dir.status();
    Cause cause;
    cause.path = path;
    return Status(Code::kNoCheckpoint, Cat("root ", path, " does not exist"), std::move(cause));
  }
  CKPT_ASSIGN_OR_RETURN(const bool is_step, dir->Exists("ckpt.json"));
  if (is_step) {
    choice.in_root = false;
    CKPT_RETURN_IF_ERROR(ReadChoice(std::move(*dir), &choice));
    if (tried.count(choice.catalog.record.sequence) > 0) {
      return Status(Code::kCorrupt, Cat(path, " is damaged, and a step folder has no older step"));
    }
    if (!o.latest && choice.catalog.record.step != o.step) {
      return Status(Code::kNotFound, Cat("step ", o.step, " was asked for, but ", path, " is step ",
                                         choice.catalog.record.step));
    }
    return choice;
  }
  if (o.fallback && o.latest) return FallBack(*dir, tried, std::move(choice), warnings);
  CKPT_ASSIGN_OR_RETURN(StepEntry entry,
                        o.latest ? NewestStep(*dir, warnings) : FindStep(*dir, o.step));
  CKPT_ASSIGN_OR_RETURN(Dir step, dir->OpenDir(entry.folder));
  CKPT_RETURN_IF_ERROR(ReadChoice(std::move(step), &choice));
  return choice;
}

Result<Dir> OpenChosen(const std::string& path, const LoadChoice& choice) {
  const auto open = [&]() -> Result<Dir> {
    Result<Dir> dir = Dir::Open(path);
    return dir.ok() && choice.in_root ? dir->OpenDir(choice.catalog.folder) : std::move(dir);
  };
  Result<Dir> dir = open();
  const TimePoint deadline = Clock::now() + kVisibleWithin;
  while (dir.status().code() == Code::kNotFound && Clock::now() < deadline) {
    std::this_thread::sleep_for(Millis(20));
    dir = open();
  }
  if (dir.status().code() == Code::kNotFound) return UnlikeHere(path, choice, "is absent");
  if (!dir.ok()) return dir.status();
  Result<std::string> record = dir->ReadFile("ckpt.json", kMaxRecordBytes);
  if (record.status().code() == Code::kNotFound)
    return UnlikeHere(path, choice, "has no ckpt.json");
  if (!record.ok()) return record.status();
  if (Crc32c(0, record->data(), record->size()) != choice.catalog.record_crc32c) {
    return UnlikeHere(path, choice, "is another checkpoint");
  }
  return dir;
}

namespace {

// One rank's side of one load, phase by phase.  Runs on the caller's thread.
class LoadRun {
 public:
  LoadRun(std::shared_ptr<SessionImpl> session, State& state, const LoadOptions& options,
          std::string path, uint64_t round, std::shared_ptr<std::atomic<bool>> cancelled,
          OpResult* result, bool* touched)
      : s_(std::move(session)),
        state_(state),
        o_(options),
        path_(std::move(path)),
        round_(round),
        cancelled_(std::move(cancelled)),
        result_(result),
        touched_(touched) {}

  // However the load ended, nothing of the library touches the caller's memory from here on.
  ~LoadRun() {
    if (data_ == nullptr) return;
    data_->Abandon();
    result_->bytes_read = data_->bytes_read();
  }

  Status Run() {
    state_.missing.clear();
    state_.unused.clear();
    s_->group().Contribute(round_, kLoadChoosePhase, Status(), Bytes(), false);
    CKPT_ASSIGN_OR_RETURN(const Bytes choice, s_->group().Await(round_, kLoadChoosePhase));
    CKPT_RETURN_IF_ERROR(Check(choice));
    *touched_ = true;
    return Read();
  }

 private:
  // The step folder as this rank sees it.  File I/O, so on a thread of the library: the caller
  // waits until it is open or the round is closed.
  Result<Dir> OpenStep(const LoadChoice& choice) {
    struct Opened {
      Latch done;
      Result<Dir> dir = Status(Code::kInternal, "not opened");
    };
    auto opened = std::make_shared<Opened>();
    s_->group().Progress(round_, 1, Cat("opening ", choice.catalog.folder));
    s_->StartStep("ckpt-open", round_, kLoadCheckPhase, [opened, path = path_, choice] {
      opened->dir = OpenChosen(path, choice);
      opened->done.Set();
    });
    while (!opened->done.WaitFor(Millis(50))) {
      s_->Pump();
      if (s_->group().Closed(round_)) return Status(Code::kCancelled, "the load was closed");
    }
    return std::move(opened->dir);
  }

  // Phases 1 to 2: is it the same step here, and is all that was asked for in it?
  Status Check(std::string_view choice_bytes) {
    const Status check = [&]() -> Status {
      CKPT_ASSIGN_OR_RETURN(LoadChoice choice, DecodeChoice(choice_bytes));
      CKPT_ASSIGN_OR_RETURN(step_, OpenStep(choice));
      result_->fell_back = choice.fell_back;
      *catalog_ = std::move(choice.catalog);
      return MatchState(state_, *catalog_, o_, s_->group().rank(), &match_);
    }();
    s_->group().Contribute(round_, kLoadCheckPhase, s_->Localize(check), PackBits(match_.asked),
                           false);
    const Result<Bytes> asked = s_->group().Await(round_, kLoadCheckPhase);
    state_.missing = match_.missing;
    state_.unused =
        UnusedNames(*catalog_, asked.ok() ? UnpackBits(*asked, match_.asked.size()) : match_.asked);
    result_->step = catalog_->record.step;
    result_->missing = state_.missing.size();
    result_->unused = state_.unused.size();
    if (asked.ok()) WarnOfOtherLayout();
    if (asked.ok() && match_.tensors == 0 && !state_.tensors().empty()) {
      s_->Warn(catalog_->record.step,
               Cat("none of the ", state_.tensors().size(),
                   " tensors that this rank asked for is in ", catalog_->folder));
    }
    return asked.status();
  }

  void WarnOfOtherLayout() {
    const std::string& saved = catalog_->record.layout_note;
    const std::string& here = s_->options().layout_note;
    if (saved.empty() || here.empty() || saved == here) return;
    s_->Warn(catalog_->record.step, Cat("the step was saved with layout \"", Printable(saved),
                                        "\", this job has \"", Printable(here), "\""));
  }

  // Phase 3: the bytes.
  Status Read() {
    const TimePoint start = Clock::now();
    const uint64_t tensors = match_.tensors, bytes = match_.bytes;
    const auto actual = match_.actual;
    LoadData::Options options;
    options.group = s_->group_ptr();
    options.round = round_;
    options.config = s_->options().config;
    options.verify = !o_.no_verify;
    options.cancelled = cancelled_;
    options.on_progress = [s = s_, round = round_](Event event) {
      event.round = round;
      s->Queue(std::move(event));
    };
    data_ = std::make_shared<LoadData>(std::move(options), catalog_, std::move(step_),
                                       std::move(match_));
    s_->StartStep("ckpt-load", round_, kLoadVotePhase, [s = s_, round = round_, data = data_] {
      s->group().Contribute(round, kLoadVotePhase, s->Localize(data->Run()), Bytes(), false);
    });
    const Status verdict = s_->group().Await(round_, kLoadVotePhase).status();
    result_->io_ns = NanosSince(start);
    CKPT_RETURN_IF_ERROR(verdict);
    for (const auto& [where, bytes_found] : actual) *where = bytes_found;
    result_->tensors = tensors;
    result_->bytes = bytes;
    return Status();
  }

  const std::shared_ptr<SessionImpl> s_;
  State& state_;
  const LoadOptions& o_;
  const std::string path_;
  const uint64_t round_;
  const std::shared_ptr<std::atomic<bool>> cancelled_;
  OpResult* const result_;
  bool* const touched_;  // set before the first byte of the destination may change
  std::shared_ptr<Catalog> catalog_ = std::make_shared<Catalog>();
  LoadMatch match_;
  Dir step_;
  std::shared_ptr<LoadData> data_;
};

}  // namespace

namespace {

Status LocalCheck(const State& state, const std::string& path) {
  CKPT_RETURN_IF_ERROR(state.poison());
  CKPT_RETURN_IF_ERROR(state.CheckStoredNames());
  for (const State::Tensor& tensor : state.tensors()) {
    if (!SelfOverlaps(tensor.memory)) continue;
    Cause cause;
    cause.name = tensor.desc.name;
    cause.field = "strides";
    return Status(Code::kInvalidArgument,
                  Cat("tensor \"", Printable(tensor.desc.name), "\": strides ",
                      Bracketed(tensor.memory.strides), " of ", Bracketed(tensor.memory.extent),
                      " (joined) let elements share memory: nothing can be loaded into it"),
                  std::move(cause));
  }
  if (!path.empty()) return Status();
  return Status(Code::kInvalidArgument, "neither the context's root nor a uri says what to load");
}

}  // namespace

Status SessionImpl::LoadOnce(State& state, const LoadOptions& o, const std::string& path,
                             Attempts* attempts, OpResult* result) {
  Status local = LocalCheck(state, path);
  // A cancel in answer to the warning about the last round.
  if (attempts->cancelled != nullptr) Pump();
  if (attempts->cancelled != nullptr && *attempts->cancelled) {
    local = Status(Code::kCancelled, "the host's event callback asked to cancel");
  }
  const auto cancelled = attempts->cancelled = BeginCancellable();
  const Call call = LoadCall(o, attempts->count++, TimeoutMs(o.contract_timeout_ms));
  Result<uint64_t> round = group().Arrive(call, Localize(local));
  if (!round.ok()) return round.status();
  return RunOnCaller(*round, kLoadVotePhase, [&] {
    CancelIn(*round, kLoadVotePhase);
    if (group().rank() == 0) {
      StartStep("ckpt-choose", *round, kLoadVotePhase,
                [self = shared_from_this(), round = *round, o, path, tried = attempts->tried] {
                  Coordinate(*self, round, o, path, tried);
                });
    }
    LoadRun run(shared_from_this(), state, o, path, *round, cancelled, result, &attempts->touched);
    return run.Run();
  });
}

Status SessionImpl::Load(State& state, const LoadOptions& o, OpResult* result) {
  CKPT_RETURN_IF_ERROR(Usable());
  const TimePoint start = Clock::now();
  CallScope scope(
      group(), o.latest ? std::string("ckpt_load(newest)") : Cat("ckpt_load(step=", o.step, ")"));
  const std::string path = o.uri.empty() ? root() : AbsolutePath(o.uri);
  Attempts attempts;
  Status verdict = LoadOnce(state, o, path, &attempts, result);
  // All ranks have this verdict, so all come again.
  while (o.fallback && verdict.code() == Code::kCorrupt && verdict.cause().field != kNothingLeft) {
    Warn(result->step, Cat("falling back to an older step: ", verdict.message()));
    verdict = LoadOnce(state, o, path, &attempts, result);
  }
  if (!verdict.ok() && attempts.touched) {
    verdict = verdict.WithMessage(
        Cat(verdict.message(), "; the destination's contents are unspecified now"));
  }
  result->total_ns = NanosSince(start);
  result->plan_ns = result->total_ns - result->io_ns;
  Pump();
  return scope.Done(verdict);
}

}  // namespace ckpt
