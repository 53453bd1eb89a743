// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Heartbeats out, decisions in.  Test: tests/unit/comm/group_test.cc
#include "comm/monitor.h"

#include <algorithm>

#include "util/text.h"

namespace ckpt {
namespace {

constexpr Millis kDescribeBudget{200};
constexpr Millis kLeavePatience{300};

}  // namespace

Monitor::Monitor(Loop& loop, MonitorOptions options, Inbox* inbox, Activity* activity)
    : loop_(loop),
      options_(std::move(options)),
      host_(HostName()),
      inbox_(inbox),
      activity_(activity),
      watch_(options_.main_thread),
      timer_(loop),
      probe_timer_(loop),
      leave_timer_(loop),
      describer_(options_.describe) {}

Monitor::~Monitor() {
  if (conn_) conn_->Close();
}

void Monitor::Start(Fd control, HelloMsg hello) {
  hello.host = host_;
  conn_ = Conn::Adopt(loop_, std::move(control), options_.max_message_bytes);
  conn_->Start(
      {[this](std::string_view frame) { Take(frame); },
       // End of file on one rank, reset by peer on another: the text must be one on all.
       [this](const std::string&) { Lost(Condition::kDead, "its connection is closed"); }});
  conn_->Send(Encode(hello));
  last_tick_ = Clock::now();
  Tick();
}

void Monitor::Send(Bytes head, Bytes tail) {
  if (conn_ && !conn_->closed()) conn_->Send(std::move(head), std::move(tail));
}

void Monitor::Take(std::string_view frame) {
  silence_ = {};
  if (Dispatch(frame)) return;
  conn_->Close();
  Lost(Condition::kDead, "it sent a malformed message");
}

bool Monitor::Dispatch(std::string_view frame) {
  switch (KindOf(frame)) {
    case Kind::kPing:
      return frame.size() == 1;
    case Kind::kProbe:
      if (frame.size() != 1) return false;
      Probed();
      return true;
    case Kind::kVerdict: {
      VerdictMsg m;
      if (!Decode(frame, &m)) return false;
      inbox_->Put(std::move(m));
      return true;
    }
    case Kind::kPhase: {
      PhaseMsg m;
      if (!Decode(frame, &m)) return false;
      TakePhase(std::move(m));
      return true;
    }
    case Kind::kRoster: {
      RosterMsg m;
      if (!Decode(frame, &m)) return false;
      joined_ = m.status.ok();
      if (joined_) Heartbeat("");
      inbox_->Put(std::move(m));
      return true;
    }
    case Kind::kLate: {
      LateMsg m;
      if (!Decode(frame, &m)) return false;
      if (options_.on_late) options_.on_late(m.text);
      inbox_->Wake();
      return true;
    }
    case Kind::kBye: {
      ByeMsg m;
      if (!Decode(frame, &m)) return false;
      bye_ = true;
      Lost(Condition::kLeft, "its context was freed or finalized", std::move(m.owed));
      return true;
    }
    default:
      return false;
  }
}

void Monitor::TakePhase(PhaseMsg message) {
  // Once it is in the inbox the caller gets it, whatever becomes of the connection.
  const bool last = message.last;
  const uint64_t round = message.round;
  inbox_->Put(std::move(message));
  if (last) Send(Encode(AckMsg{round}));
}

void Monitor::Tick() {
  const Millis tick = std::max(options_.heartbeat / 4, Millis(1));
  const TimePoint now = Clock::now();
  // A late tick means that this process stood still, not that the coordinator was silent.
  silence_ += std::min<Clock::duration>(now - last_tick_, 2 * tick);
  last_tick_ = now;
  if (joined_) {
    if (auto progress = activity_->TakeProgress()) Send(Encode(*progress));
    // While a description is awaited (200 ms at most) its heartbeat is the next: the coordinator
    // takes the first one after its probe for the answer.
    const bool due = now - last_heartbeat_ >= options_.heartbeat - tick / 2;
    if (due && !probe_open_) Heartbeat("");
    // Pings come once per heartbeat: a shorter limit would see silence where there is none.
    const auto limit = std::max(options_.contract_timeout, 3 * options_.heartbeat);
    if (silence_ >= limit) {
      conn_->Close();
      Lost(Condition::kUnresponsive, Cat("silent for ", limit.count(), " ms"));
    }
  }
  if (!conn_->closed()) timer_.Set(tick, [this] { Tick(); });
}

void Monitor::Heartbeat(const std::string& details) {
  last_heartbeat_ = Clock::now();
  if (conn_->sending()) return;  // the coordinator has not taken the last one yet
  HeartbeatMsg m{activity_->Snapshot()};
  m.info.host = host_;
  m.info.doing = watch_.Doing();
  if (!details.empty()) m.info.doing += Cat("; ", details);
  Send(Encode(m));
}

void Monitor::Probed() {
  if (!describer_.available()) return Heartbeat("");
  if (probe_open_) return;
  probe_open_ = true;
  const uint64_t mine = ++*probe_;
  const auto answer = [this, mine, probe = probe_](const std::string& details) {
    if (*probe != mine || !probe_open_) return;
    probe_open_ = false;
    probe_timer_.Cancel();
    Heartbeat(details);
  };
  probe_timer_.Set(kDescribeBudget, [answer] { answer("describe callback: no answer in 200 ms"); });
  describer_.Ask([&loop = loop_, answer](std::string text) {
    loop.Post([answer, text = std::move(text)] { answer(text); });
  });
}

void Monitor::Lost(Condition how, const std::string& why, std::vector<Owed> owed) {
  timer_.Cancel();
  RankReport report;
  report.rank = 0;
  report.condition = how;
  Cause cause;
  cause.rank = 0;
  inbox_->Lost(Status(Code::kParticipants,
                      Cat("rank 0, the coordinator, is ",
                          how == Condition::kLeft           ? "gone"
                          : how == Condition::kUnresponsive ? "unresponsive"
                                                            : "dead",
                          ": ", why),
                      cause)
                   .WithRanks({report}),
               std::move(owed));
  LeaveDone();
}

void Monitor::Leave(std::function<void()> done) {
  on_left_ = std::move(done);
  timer_.Cancel();
  probe_timer_.Cancel();
  if (!conn_ || conn_->closed()) return LeaveDone();
  if (joined_) Send(EncodeEmpty(Kind::kLeft));
  conn_->Finish();
  leave_timer_.Set(kLeavePatience, [this] { LeaveDone(); });
}

void Monitor::LeaveDone() {
  if (!on_left_) return;
  leave_timer_.Cancel();
  if (conn_) conn_->Close();
  std::exchange(on_left_, nullptr)();
}

}  // namespace ckpt
