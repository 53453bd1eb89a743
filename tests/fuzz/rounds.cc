// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The contract's state machine: two honest ranks and a hostile one, whose messages are any bytes,
// at any time.  Whatever it does, each call of an honest rank gets one verdict, and each round that
// it has entered ends.
#include "comm/rounds.h"

#include <algorithm>

#include "comm/message.h"
#include "fuzz/target.h"

namespace ckpt::fuzz {
namespace {

constexpr int32_t kHostile = 2;

enum Step : uint8_t { kFrame, kCall, kContribute, kPublish, kWait, kBeat, kCommit, kLeave, kSteps };

class Game {
 public:
  Game() : rounds_(Options()) {}

  void Play(Script* script) {
    switch (script->Byte() % kSteps) {
      case kFrame:
        return Hostile(script->Text());
      case kCall:
        return CallAll(script->Byte());
      case kContribute:
        for (int32_t r : {0, 1}) rounds_.Contribute(now_, r, round_, phase_, Status(), "x");
        return Deliver();
      case kPublish:
        return Publish(script->Byte() % 2 == 0);
      case kWait:
        return Wait(Millis(100 * script->Byte()));
      case kBeat:
        for (int32_t r : {0, 1}) rounds_.Heartbeat(now_, r, {"node", "step", "runs", "", 1});
        return Deliver();
      case kCommit:
        (void)rounds_.BeginCommit(now_, round_).ok();
        return Deliver();
      default:
        rounds_.Left(now_, kHostile);
        return Deliver();
    }
  }

  void End() {
    Publish(/*last=*/true);  // a commit that has begun ends
    rounds_.Closed(now_, kHostile);
    Deliver();
    Wait(Millis(300000));
    for (const Honest& h : honest_) {
      Require(!h.waits, "every call of an honest rank gets a verdict");
      Require(h.round == 0, "every round that an honest rank has entered ends");
    }
  }

 private:
  struct Honest {
    bool waits = false;
    uint64_t call = 0, round = 0;
  };

  static RoundsOptions Options() {
    RoundsOptions o;
    o.size = 3;
    return o;
  }

  // As Coordinator::Dispatch does.
  void Hostile(std::string_view frame) {
    ArriveMsg arrive;
    ContributeMsg contribute;
    ProgressMsg progress;
    HeartbeatMsg heartbeat;
    if (Decode(frame, &arrive)) {
      rounds_.Arrive(now_, kHostile, arrive.call_id, arrive.call, arrive.local);
    } else if (Decode(frame, &contribute)) {
      rounds_.Contribute(now_, kHostile, contribute.round, contribute.phase, contribute.local,
                         std::move(contribute.payload));
    } else if (Decode(frame, &progress)) {
      rounds_.Progress(now_, kHostile, progress.round, progress.bytes, progress.activity);
    } else if (Decode(frame, &heartbeat)) {
      rounds_.Heartbeat(now_, kHostile, heartbeat.info);
    }
    Deliver();
  }

  void CallAll(uint8_t step) {
    for (int32_t r : {0, 1}) {
      Honest& h = honest_[r];
      if (h.waits || h.round != 0) continue;
      h.waits = true;
      h.call = ++next_call_;
      rounds_.Arrive(now_, r, h.call, {Op::kSave, step % 4, 3000, {{"tag", "a"}}}, Status());
      Deliver();
    }
  }

  void Publish(bool last) {
    Deliver();
    rounds_.Publish(now_, round_, phase_, Status(), {"y"}, last);
    ending_ = last;
    Deliver();
    ending_ = false;
  }

  void Wait(Millis span) {
    const TimePoint end = now_ + span;
    for (auto t = rounds_.NextDeadline(); t && *t <= end; t = rounds_.NextDeadline()) {
      now_ = std::max(now_, *t);
      rounds_.Tick(now_);
      Deliver();
    }
    now_ = end;
  }

  void Deliver() {
    for (const Outgoing& out : rounds_.TakeOutgoing()) {
      if (out.rank == kHostile) continue;
      Honest& h = honest_[out.rank];
      if (out.kind == Outgoing::Kind::kVerdict) {
        Require(h.waits && h.call == out.call_id, "one verdict per call");
        h.waits = false;
        if (!out.status.ok()) continue;
        h.round = round_ = out.round;
        phase_ = 1;
      } else if (out.kind == Outgoing::Kind::kPhase) {
        Require(h.round == out.round, "results come for the round that a rank is in");
        phase_ = out.phase + 1;
        if (!out.status.ok() || ending_) h.round = 0;
      }
    }
  }

  Rounds rounds_;
  TimePoint now_ = TimePoint{} + Millis(1000000);
  Honest honest_[2];
  uint64_t next_call_ = 0, round_ = 0;
  uint32_t phase_ = 1;
  bool ending_ = false;  // the results delivered now are a round's last
};

}  // namespace

void RunRounds(std::string_view input) {
  Script script(input);
  Game game;
  for (int steps = 0; !script.done() && steps < 200; ++steps) game.Play(&script);
  game.End();
}

Seeds RoundsSeeds() {
  const auto frame = [](const Bytes& f) { return Bytes(1, kFrame) + AsText(f); };
  const auto arrive = [&](int64_t step, uint64_t id, const Status& local = {}) {
    return frame(Encode(ArriveMsg{id, {Op::kSave, step, 3000, {{"tag", "a"}}}, local}));
  };
  const Bytes call1{kCall, 1}, call2{kCall, 2}, contribute{kContribute}, last{kPublish, 0},
      more{kPublish, 1}, commit{kCommit}, wait{kWait, 40};
  const auto vote = [&](uint64_t round, uint32_t phase, const Status& local = {}) {
    return frame(Encode(ContributeMsg{round, phase, local, "z"}));
  };
  const Status io(Code::kIo, "disk");
  return {
      {"agreed", call1 + arrive(1, 1) + contribute + vote(1, 1) + more + contribute + vote(1, 2) +
                     commit + last + call2 + arrive(2, 2)},
      {"other-step", call1 + arrive(2, 1) + call2 + wait},
      {"late", call1 + wait + arrive(1, 1) + call1 + arrive(1, 2)},
      {"local-error", arrive(1, 1, io) + call1 + call1 + arrive(1, 2)},
      {"vote-failed", call1 + arrive(1, 1) + contribute + vote(1, 1, io)},
      {"beats", call1 + frame(Encode(HeartbeatMsg{{"h", "p", "d", "l", 3}})) + wait +
                    frame(Encode(ProgressMsg{1, 5, "pwrite"})) + Bytes{kBeat}},
      {"twice", arrive(1, 1) + arrive(1, 2) + call1 + Bytes{kLeave}},
      {"load", frame(Encode(ArriveMsg{1, {Op::kLoad, -1, ~uint64_t{0}, {{"step", "1"}}}, {}})) +
                   call1 + wait},
  };
}

}  // namespace ckpt::fuzz
