// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A small language for tests of the contract: N ranks call, time passes, ranks get answers.  Time
// passes as the transport lets it: every rank that is not muted sends heartbeats, and Tick is
// called whenever a deadline asks for it.
#ifndef CKPT_TESTS_UNIT_COMM_ROUNDS_WORLD_H_
#define CKPT_TESTS_UNIT_COMM_ROUNDS_WORLD_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/rounds.h"
#include "util/text.h"

namespace ckpt {

inline Call MakeCall(Op op, int64_t step, std::vector<Field> fields = {}) {
  return Call{op, step, 3000, std::move(fields)};
}
inline Call Save(int64_t step, std::vector<Field> fields = {}) {
  return MakeCall(Op::kSave, step, std::move(fields));
}
inline Call Load(const std::string& step) { return MakeCall(Op::kLoad, -1, {{"step", step}}); }
inline Call Finalize() { return MakeCall(Op::kFinalize, -1); }

class World {
 public:
  // Ends the phases of a round that passed its gate at once, unless told otherwise.
  enum class Phases { kAutomatic, kManual };

  explicit World(int32_t size, Phases phases = Phases::kAutomatic)
      : phases_(phases),
        options_(MakeOptions(size)),
        rounds(options_),
        results_(at(size)),
        call_of_(at(size)) {
    for (int32_t r = 0; r < size; ++r) {
      infos.push_back({Cat("node", r / 2), "forward", "running", "ckpt_load() returned OK", 101});
    }
    Beat();
  }

  void Calls(int32_t rank, const ckpt::Call& call, const Status& local = {}) {
    ASSERT_FALSE(Waits(rank)) << "rank " << rank << " waits already";
    call_of_[at(rank)] = ++call_id_;
    rounds.Arrive(now, rank, call_id_, call, local);
    Deliver();
  }
  void Call(const std::vector<int32_t>& ranks, const ckpt::Call& call) {
    for (int32_t r : ranks) Calls(r, call);
  }
  void CallAll(const ckpt::Call& call) {
    for (int32_t r = 0; r < options_.size; ++r) Calls(r, call);
  }

  void Wait(Millis span) {
    const TimePoint end = now + span;
    while (true) {
      TimePoint next = next_beat_;
      if (auto t = rounds.NextDeadline()) next = std::min(next, std::max(*t, now));
      if (next > end) break;
      now = next;
      rounds.Tick(now);
      Deliver();
      if (now < next_beat_) continue;
      next_beat_ += options_.heartbeat;
      Beat();
    }
    now = end;
  }

  bool Waits(int32_t rank) const { return call_of_[at(rank)] != 0; }
  // The answer to the last call of `rank`; INTERNAL while it waits.
  Status Result(int32_t rank) const {
    return Waits(rank) ? Status(Code::kInternal, "waits") : results_[at(rank)];
  }
  Code ResultCode(int32_t rank) const { return Result(rank).code(); }
  // The one answer that all `ranks` (default: all) got, word for word.
  Status Same(std::vector<int32_t> ranks = {}) const {
    for (int32_t r = 0; ranks.empty() && r < options_.size; ++r) ranks.push_back(r);
    for (int32_t r : ranks) {
      EXPECT_EQ(Result(r).code(), Result(ranks[0]).code())
          << "rank " << r << ": " << Result(r).message();
      EXPECT_EQ(Result(r).message(), Result(ranks[0]).message());
      EXPECT_EQ(Result(r).ranks().size(), Result(ranks[0]).ranks().size());
    }
    return Result(ranks[0]);
  }
  bool AllOk() const { return Same().ok(); }

  // What came out besides verdicts since the last call of this.
  std::vector<Outgoing> Take(Outgoing::Kind kind) {
    std::vector<Outgoing> out;
    for (const Outgoing& o : others_) {
      if (o.kind == kind) out.push_back(o);
    }
    std::erase_if(others_, [kind](const Outgoing& o) { return o.kind == kind; });
    return out;
  }

  void Deliver() {
    for (Outgoing& out : rounds.TakeOutgoing()) {
      if (out.kind != Outgoing::Kind::kVerdict) {
        others_.push_back(std::move(out));
        continue;
      }
      EXPECT_TRUE(Waits(out.rank)) << "a verdict too many: " << out.status.message();
      call_of_[at(out.rank)] = 0;
      results_[at(out.rank)] = out.status;
      if (out.status.ok()) round = out.round;
    }
    if (phases_ == Phases::kAutomatic && round != ended_) EndPhases();
  }

 private:
  static RoundsOptions MakeOptions(int32_t size) {
    RoundsOptions o;
    o.size = size;
    return o;
  }
  static size_t at(int32_t rank) { return static_cast<size_t>(rank); }

  void EndPhases() {
    ended_ = round;
    for (int32_t r = 0; r < options_.size; ++r) rounds.Contribute(now, r, round, 1, Status(), "");
    rounds.Publish(now, round, 1, Status(), {}, /*last=*/true);
    (void)rounds.TakeOutgoing();
  }

  void Beat() {
    for (int32_t r = 0; r < options_.size; ++r) {
      if (!muted.count(r)) rounds.Heartbeat(now, r, infos[at(r)]);
    }
    Deliver();
  }

  const Phases phases_;
  const RoundsOptions options_;

 public:
  Rounds rounds;
  TimePoint now = TimePoint{} + Millis(1000000);
  std::set<int32_t> muted;  // stopped: no heartbeats
  std::vector<RankInfo> infos;
  uint64_t round = 0;  // the last that passed its gate

 private:
  std::vector<Status> results_;
  uint64_t call_id_ = 0;
  std::vector<uint64_t> call_of_;
  std::vector<Outgoing> others_;
  TimePoint next_beat_ = now + Millis(700);  // between the round numbers that tests like
  uint64_t ended_ = 0;
};

}  // namespace ckpt

#endif  // CKPT_TESTS_UNIT_COMM_ROUNDS_WORLD_H_
