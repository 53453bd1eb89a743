// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Waiting for the coordinator.  Test: tests/unit/comm/parts_test.cc
#include "comm/inbox.h"

#include <algorithm>

#include "util/text.h"

namespace ckpt {
namespace {

constexpr Millis kSlice{100};
constexpr size_t kRemembered = 64;  // closed rounds

constexpr const char* kWayOn = "ckpt_ctx_free and a new ckpt_init are the way on";

Status LeftStatus() { return Status(Code::kState, "this rank has left the group"); }

}  // namespace

void Inbox::Slice() {
  changed_.WaitUntil(mu_, Clock::now() + kSlice);
  // Callbacks belong to the caller's thread; a library thread that runs the recipe has none.
  if (!pump_ || caller_ != std::this_thread::get_id()) return;
  mu_.Unlock();
  pump_();
  mu_.Lock();
}

Status Inbox::WaitRoster(TimePoint deadline, RosterMsg* out) {
  MutexLock lock(mu_);
  caller_ = std::this_thread::get_id();
  while (!roster_ && lost_.ok()) {
    if (Clock::now() >= deadline) return Status(Code::kComm, "rank 0 does not answer");
    Slice();
  }
  if (!roster_) return lost_;
  *out = *roster_;
  return out->status;
}

Status Inbox::LostVerdict() {
  auto it = std::find_if(owed_.begin(), owed_.end(), [op = op_, step = step_](const Owed& o) {
    return !o.any_call && o.op == op && o.step == step;
  });
  if (it == owed_.end()) {
    it = std::find_if(owed_.begin(), owed_.end(), [](const Owed& o) { return o.any_call; });
  }
  if (it != owed_.end()) {
    Status verdict = std::move(it->verdict);
    owed_.clear();  // no round can come of it: one verdict, then the loss
    return verdict;
  }
  if (!std::exchange(lost_said_, true)) return lost_;
  return Status(Code::kComm,
                Cat("the coordinator (rank 0) has been lost, and this context with it: ", kWayOn));
}

Result<uint64_t> Inbox::BeginCall(const Call& call) {
  MutexLock lock(mu_);
  if (left_) return LeftStatus();
  op_ = call.op;
  step_ = call.step;
  if (!lost_.ok()) return LostVerdict();
  if (calling_ || open_round_ != 0) {
    return Status(Code::kState, "another collective call of this context is running");
  }
  calling_ = true;
  caller_ = std::this_thread::get_id();
  verdict_.reset();
  results_.clear();
  collected_.clear();
  return next_call_++;
}

Status Inbox::Over(uint64_t round) const {
  const auto it = closed_.find(round);
  if (it != closed_.end()) return it->second;
  if (left_) return LeftStatus();
  if (lost_.ok()) return Status();
  if (round == 0 || round != voted_round_) return lost_;
  return Status(Code::kOutcomeUnknown,
                Cat("the outcome of the commit is not known: ", lost_.message(),
                    "; ckpt_latest tells whether it took place"),
                lost_.cause())
      .WithRanks(lost_.ranks());
}

Result<uint64_t> Inbox::WaitVerdict(uint64_t call_id) {
  MutexLock lock(mu_);
  while (!(verdict_ && verdict_->call_id == call_id) && Over(0).ok()) Slice();
  calling_ = false;
  if (!verdict_ || verdict_->call_id != call_id) {
    if (!left_ && !lost_.ok()) return LostVerdict();
    return Over(0);
  }
  if (!verdict_->status.ok()) return verdict_->status;
  return verdict_->round;
}

Result<Bytes> Inbox::WaitPhase(uint64_t round, uint32_t phase) {
  MutexLock lock(mu_);
  auto it = results_.find({round, phase});
  while (it == results_.end() && Over(round).ok()) {
    Slice();
    it = results_.find({round, phase});
  }
  if (it == results_.end()) {
    if (!lost_.ok()) lost_said_ = true;
    return Over(round);
  }
  Bytes out = std::move(it->second);
  results_.erase(it);
  return out;
}

Result<std::vector<Bytes>> Inbox::WaitCollected(uint64_t round, uint32_t phase) {
  MutexLock lock(mu_);
  auto it = collected_.find({round, phase});
  // The error first: what has been collected for a closed round is of no use.
  while (Over(round).ok() && it == collected_.end()) {
    Slice();
    it = collected_.find({round, phase});
  }
  if (Status over = Over(round); !over.ok()) return over;
  std::vector<Bytes> out = std::move(it->second);
  collected_.erase(it);
  return out;
}

void Inbox::Voted(uint64_t round) {
  MutexLock lock(mu_);
  voted_round_ = round;
}

bool Inbox::Closed(uint64_t round) const {
  MutexLock lock(mu_);
  return left_ || !lost_.ok() || closed_.count(round) > 0;
}

bool Inbox::ended() const {
  MutexLock lock(mu_);
  return left_ || !lost_.ok();
}

void Inbox::Left() {
  MutexLock lock(mu_);
  left_ = true;
  changed_.NotifyAll();
}

void Inbox::Wake() {
  MutexLock lock(mu_);
  changed_.NotifyAll();
}

void Inbox::Put(RosterMsg message) {
  MutexLock lock(mu_);
  roster_ = std::move(message);
  changed_.NotifyAll();
}

void Inbox::Put(VerdictMsg message) {
  MutexLock lock(mu_);
  if (message.status.ok()) open_round_ = message.round;
  verdict_ = std::move(message);
  changed_.NotifyAll();
}

void Inbox::Put(PhaseMsg message) {
  MutexLock lock(mu_);
  if (message.last && message.round == open_round_) open_round_ = 0;
  if (message.status.ok()) {
    results_[{message.round, message.phase}] = std::move(message.payload);
  } else {
    Close(message.round, message.status);
  }
  changed_.NotifyAll();
}

void Inbox::Close(uint64_t round, const Status& status) {
  closed_.emplace(round, status);
  if (closed_.size() > kRemembered) closed_.erase(closed_.begin());
  std::erase_if(collected_, [round](const auto& item) { return item.first.first == round; });
}

void Inbox::PutCollected(uint64_t round, uint32_t phase, std::vector<Bytes> all) {
  MutexLock lock(mu_);
  collected_[{round, phase}] = std::move(all);
  changed_.NotifyAll();
}

void Inbox::Lost(const Status& why, std::vector<Owed> owed) {
  MutexLock lock(mu_);
  if (lost_.ok()) {
    lost_ = why.WithMessage(Cat(why.message(), "; ", kWayOn));
    owed_ = std::move(owed);
  }
  changed_.NotifyAll();
}

}  // namespace ckpt
