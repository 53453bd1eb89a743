// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One save's staging folder, from its first file to the commit or its removal.
// Test: tests/unit/store/transaction_test.cc
#include <utility>

#include "io/crc32c.h"
#include "store/commit.h"
#include "store/existing.h"
#include "store/names.h"
#include "store/owner.h"
#include "store/store.h"
#include "util/text.h"

namespace ckpt {
namespace {

using IndexFiles = std::vector<std::pair<std::string, std::string>>;

Status Internal(std::string_view what) {
  return Status(Code::kInternal, Cat("commit record: ", what));
}

class Transaction : public StepTransaction {
 public:
  Transaction(std::shared_ptr<Owner> owner, Dir staging, std::string folder, Options options)
      : owner_(std::move(owner)),
        staging_(std::move(staging)),
        folder_(std::move(folder)),
        options_(std::move(options)) {}

  ~Transaction() override { Abandon(); }

  Status AddFile(const std::string& name, uint64_t bytes) override;
  const std::string& staging_folder() const override { return folder_; }
  Result<uint64_t> NextSequence() override;
  Result<std::vector<std::pair<uint64_t, std::string>>> Known() override;
  Status Commit(const CommitRecord& record, const IndexFiles& index_files,
                const std::function<Status()>& enter_commit, const std::function<bool()>& abandoned,
                std::vector<std::string>* warnings) override;
  void Finish(std::vector<std::string>* warnings) override;

 private:
  enum class State {
    kOpen,
    kEntered,  // between enter_commit and an outcome that is known: for ever, if none is
    kCommitted,
    kEnded
  };
  Result<const std::vector<StepEntry>*> Steps();
  Status CheckRecord(const CommitRecord& record, const std::string& text,
                     const IndexFiles& index_files) const;
  Status OwnedOr(const Status& status) const;
  Status MakeFile(const std::string& name, uint64_t bytes) const;
  Status CheckStaged(const std::string& name, uint64_t bytes) const;
  void Enter();
  void Abandon();

  const std::shared_ptr<Owner> owner_;  // shared with the job's other contexts
  const Dir staging_;
  const std::string folder_;
  const Options options_;
  std::optional<std::vector<StepEntry>> steps_;
  uint64_t sequence_ = 0;
  State state_ = State::kOpen;
  Committed committed_;
};

// From here on the staging name may be the old step's: nobody removes it, whatever happens.
void Transaction::Enter() {
  state_ = State::kEntered;
  owner_->Keep(folder_);
}

void Transaction::Abandon() {
  // A forked child holds a copy of this object, not the save.
  if (state_ != State::kOpen || !owner_->InThisProcess()) return;
  state_ = State::kEnded;
  (void)owner_->root().RemoveTree(folder_).ok();  // else the next owner does it
  if (sequence_ > 0) owner_->ReturnSequence(sequence_);
}

Status Transaction::AddFile(const std::string& name, uint64_t bytes) {
  if (state_ != State::kOpen) return Status(Code::kState, "the save has ended");
  CKPT_RETURN_IF_ERROR(CheckFileName(name));
  return OwnedOr(MakeFile(name, bytes));
}

// Who has lost the root finds its staging folder gone: that is not why.
Status Transaction::OwnedOr(const Status& status) const {
  if (status.ok()) return status;
  const Status owner = owner_->Check();
  return owner.code() == Code::kOwned ? owner : status;
}

Status Transaction::MakeFile(const std::string& name, uint64_t bytes) const {
  auto file = staging_.CreateFile(name, DirectIo::kOff);
  if (file.status().code() == Code::kExists) {
    return Status(Code::kInvalidArgument, Cat("two files of the step are named ", Printable(name)),
                  file.status().cause());
  }
  if (!file.ok()) return file.status();
  CKPT_RETURN_IF_ERROR(file->Preallocate(bytes));
  return file->Close();
}

Result<const std::vector<StepEntry>*> Transaction::Steps() {
  if (!steps_) {
    CKPT_ASSIGN_OR_RETURN(steps_, ListSteps(owner_->root()));
  }
  return &*steps_;
}

Result<uint64_t> Transaction::NextSequence() {
  if (sequence_ > 0) return sequence_;
  CKPT_ASSIGN_OR_RETURN(const auto* steps, Steps());
  uint64_t seen = 0;
  for (const StepEntry& step : *steps) {
    seen = std::max(seen, step.record ? step.record->sequence : step.sequence_hint);
  }
  CKPT_ASSIGN_OR_RETURN(sequence_, owner_->ReserveSequence(seen));
  return sequence_;
}

// Damaged steps too: this commit is what proves them older.
Result<std::vector<std::pair<uint64_t, std::string>>> Transaction::Known() {
  CKPT_ASSIGN_OR_RETURN(const auto* steps, Steps());
  std::vector<std::pair<uint64_t, std::string>> known;
  for (const StepEntry& step : *steps) {
    if (step.step == options_.step) continue;  // replaced by this commit
    known.emplace_back(step.record ? step.record->sequence : step.sequence_hint,
                       StepFolder(step.step));
  }
  return known;
}

Status Transaction::CheckStaged(const std::string& name, uint64_t bytes) const {
  CKPT_ASSIGN_OR_RETURN(const File file, staging_.OpenFile(name, FileMode::kRead, DirectIo::kOff));
  CKPT_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size == bytes) return Status();
  return Internal(Cat(name, " is ", size, " bytes long, not ", bytes));
}

// We publish nothing that our own reader would refuse.
Status Transaction::CheckRecord(const CommitRecord& record, const std::string& text,
                                const IndexFiles& index_files) const {
  if (record.step != options_.step) return Internal("another step than the save's");
  if (record.lineage != options_.lineage) return Internal("another lineage than the save's");
  auto decoded = DecodeRecord(text);
  if (!decoded.ok()) return Internal(decoded.status().message());
  if (index_files.size() != record.index_files.size()) return Internal("other index files");
  for (size_t i = 0; i < index_files.size(); ++i) {
    const auto& [name, content] = index_files[i];
    const SmallFileRecord& said = record.index_files[i];
    if (name != said.name || content.size() != said.bytes ||
        Crc32c(0, content.data(), content.size()) != said.crc32c) {
      return Internal(Cat("index file ", Printable(name), " is not as recorded"));
    }
  }
  for (const FileRecord& file : record.files) {
    CKPT_RETURN_IF_ERROR(CheckStaged(file.name, file.bytes));
  }
  for (const SmallFileRecord& file : record.side_files) {
    CKPT_RETURN_IF_ERROR(CheckStaged(file.name, file.bytes));
  }
  return Status();
}

Status Transaction::Commit(const CommitRecord& record, const IndexFiles& index_files,
                           const std::function<Status()>& enter_commit,
                           const std::function<bool()>& abandoned,
                           std::vector<std::string>* warnings) {
  if (state_ != State::kOpen) return Status(Code::kState, "the save has ended");
  const std::function<Status()> enter = [&] {
    Status entered = enter_commit();
    if (entered.ok()) Enter();
    return entered;
  };
  CommitPlan plan;
  plan.owner = owner_.get();
  plan.staging = &staging_;
  plan.staging_folder = folder_;
  plan.step_folder = StepFolder(options_.step);
  plan.options = options_;
  plan.sequence = record.sequence;
  plan.record_text = EncodeRecord(record);
  plan.index_files = &index_files;
  plan.enter_commit = &enter;
  plan.abandoned = &abandoned;
  const Status checked = CheckRecord(record, plan.record_text, index_files);
  auto committed = checked.ok() ? CommitStep(plan) : Result<Committed>(checked);
  if (committed.status().code() == Code::kOutcomeUnknown) {
    Enter();
    return committed.status();
  }
  owner_->Unkeep(folder_);
  if (committed.ok() && !committed->kept) {
    state_ = State::kCommitted;
    committed_ = std::move(committed).value();
    if (warnings != nullptr && !committed_.loss.empty()) {
      warnings->push_back(Cat(owner_->root().path(), ": replaced a step: ", committed_.loss));
    }
    return Status();
  }
  state_ = State::kOpen;
  Abandon();
  return OwnedOr(committed.status());
}

void Transaction::Finish(std::vector<std::string>* warnings) {
  if (state_ != State::kCommitted || !owner_->InThisProcess()) return;
  state_ = State::kEnded;
  std::vector<std::string> words;
  FinishStep(*owner_, options_, committed_, &words);
  if (warnings != nullptr) warnings->insert(warnings->end(), words.begin(), words.end());
}

}  // namespace

Result<std::unique_ptr<StepTransaction>> StepTransaction::Begin(std::shared_ptr<RootOwner> owner,
                                                                const Options& options) {
  auto own = std::dynamic_pointer_cast<Owner>(std::move(owner));
  if (!own) return Status(Code::kInternal, "a save without ownership of its root");
  if (options.step < 0) {
    return Status(Code::kInvalidArgument, Cat("step ", options.step, " is negative"));
  }
  CKPT_RETURN_IF_ERROR(own->Check());
  const Dir& root = own->root();
  CKPT_ASSIGN_OR_RETURN(const ExistingStep existing, DecideExisting(root, options));
  if (existing.what == Existing::kKept) return std::unique_ptr<StepTransaction>();
  const std::string folder = StagingFolder(NewId());
  CKPT_RETURN_IF_ERROR(root.MakeDir(folder));
  auto staging = root.OpenDir(folder);
  if (!staging.ok()) {
    (void)root.RemoveTree(folder).ok();
    return staging.status();
  }
  return std::unique_ptr<StepTransaction>(
      std::make_unique<Transaction>(std::move(own), std::move(staging).value(), folder, options));
}

}  // namespace ckpt
