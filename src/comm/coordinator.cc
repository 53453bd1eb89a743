// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Init, then the traffic between the ranks and Rounds.  Test: tests/unit/comm/group_test.cc
#include "comm/coordinator.h"

#include <algorithm>
#include <ctime>

#include "util/text.h"

namespace ckpt {
namespace {

constexpr Millis kAckPatience{2000};
constexpr Millis kFinishPatience{500};
// Before the roster a rank has nothing long to say.
constexpr uint64_t kMaxHello = 1 << 20;

// Counts time in which the machine was suspended: a coordinator that has slept through the others'
// deadlines must know it.
TimePoint Now() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return TimePoint(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

RoundsOptions ForRounds(const CoordinatorOptions& o) {
  RoundsOptions out;
  out.size = o.size;
  out.heartbeat = o.heartbeat;
  out.unresponsive = std::max(3 * o.heartbeat, Millis(3000));
  out.stall_timeout = o.stall_timeout;
  return out;
}

}  // namespace

Coordinator::Coordinator(Loop& loop, CoordinatorOptions options)
    : loop_(loop),
      options_(std::move(options)),
      started_(Now()),
      join_(options_.size),
      peers_(static_cast<size_t>(options_.size)),
      timer_(loop),
      finish_timer_(loop) {}

Coordinator::~Coordinator() {
  for (const Peer& peer : peers_) {
    if (peer.conn) peer.conn->Close();
  }
  for (const auto& conn : strangers_) conn->Close();
}

void Coordinator::Start(Fd listening, Fd own, std::shared_ptr<SharedPort> port) {
  if (listening.valid()) {
    listener_ = std::make_unique<Listener>(
        loop_, std::move(listening), options_.credentials, 0, Purpose::kControl,
        [this](int32_t rank, std::shared_ptr<Conn> conn) { Admit(rank, std::move(conn)); },
        std::move(port));
  }
  auto conn = Conn::Adopt(loop_, std::move(own), kMaxHello);
  conn->Start({});
  Admit(0, std::move(conn));
  Tick();
}

// --- init

void Coordinator::Admit(int32_t rank, std::shared_ptr<Conn> conn) {
  strangers_.insert(conn);
  Conn* const raw = conn.get();
  conn->SetHandlers({[this, rank, raw](std::string_view frame) {
                       // A copy keeps the connection alive while it changes hands.
                       const auto it =
                           std::find_if(strangers_.begin(), strangers_.end(),
                                        [raw](const auto& c) { return c.get() == raw; });
                       if (it == strangers_.end()) return;
                       const std::shared_ptr<Conn> stranger = *it;
                       TakeHello(rank, stranger, frame);
                     },
                     [this, raw](const std::string&) {
                       std::erase_if(strangers_, [raw](const auto& c) { return c.get() == raw; });
                     }},
                    kMaxHello);
}

void Coordinator::TakeHello(int32_t rank, const std::shared_ptr<Conn>& conn,
                            std::string_view frame) {
  HelloMsg hello;
  if (!Decode(frame, &hello)) {
    strangers_.erase(conn);
    return conn->Close();
  }
  const Millis remaining(static_cast<int64_t>(std::min<uint64_t>(hello.remaining_ms, 1ull << 40)));
  // Who comes after init has failed is told why, as the others were.
  Status refused = init_status_;
  if (refused.ok()) refused = join_.Add(rank, std::move(hello), conn->peer_address());
  if (!refused.ok()) {
    conn->Send(Encode(RosterMsg{refused, {}}));
    return conn->Finish();
  }
  // The earliest deadline decides for all, so that all get the same answer.
  init_deadline_ = std::min(init_deadline_, Now() + remaining);
  strangers_.erase(conn);
  ConnOf(rank) = conn;
  conn->SetHandlers(
      {[this, rank](std::string_view f) { Take(rank, f); },
       [this, rank, raw = conn.get()](const std::string&) { ConnectionClosed(rank, raw); }},
      options_.max_message_bytes);
  if (join_.complete()) return EndInit(join_.Agreement());
  Tick();
}

void Coordinator::EndInit(const Status& status) {
  if (init_ended_) return;
  init_ended_ = true;
  init_status_ = status;
  listener_.reset();
  RosterMsg roster;
  roster.status = status;
  if (status.ok()) roster.exchange = join_.Endpoints();
  const Bytes frame = Encode(roster);
  if (status.ok()) rounds_.emplace(ForRounds(options_));
  for (int32_t r = options_.size - 1; r >= 0; --r) Send(r, frame);
  Tick();
}

// --- what ranks say

void Coordinator::Take(int32_t rank, std::string_view frame) {
  if (rounds_ && Dispatch(rank, frame)) return Flush();
  if (!rounds_ && KindOf(frame) == Kind::kHeartbeat) return;
  // The first malformed message ends the connection.
  const std::shared_ptr<Conn> conn = ConnOf(rank);
  conn->Close();
  ConnectionClosed(rank, conn.get());
}

bool Coordinator::Dispatch(int32_t rank, std::string_view frame) {
  const TimePoint now = Now();
  switch (KindOf(frame)) {
    case Kind::kArrive: {
      ArriveMsg m;
      if (!Decode(frame, &m)) return false;
      rounds_->Arrive(now, rank, m.call_id, m.call, m.local);
      return true;
    }
    case Kind::kContribute: {
      ContributeMsg m;
      if (!Decode(frame, &m)) return false;
      rounds_->Contribute(now, rank, m.round, m.phase, m.local, std::move(m.payload));
      return true;
    }
    case Kind::kProgress: {
      ProgressMsg m;
      if (!Decode(frame, &m)) return false;
      rounds_->Progress(now, rank, m.round, m.bytes, std::move(m.activity));
      return true;
    }
    case Kind::kHeartbeat: {
      HeartbeatMsg m;
      if (!Decode(frame, &m)) return false;
      rounds_->Heartbeat(now, rank, m.info);
      return true;
    }
    case Kind::kAck: {
      AckMsg m;
      if (!Decode(frame, &m)) return false;
      Acknowledged(rank, m.round);
      return true;
    }
    case Kind::kLeft:
      if (frame.size() != 1) return false;
      peers_[static_cast<size_t>(rank)].left = true;
      rounds_->Left(now, rank);
      return true;
    default:
      return false;
  }
}

void Coordinator::ConnectionClosed(int32_t rank, const Conn* conn) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (peer.conn.get() != conn) return;
  peer.conn.reset();
  for (auto& [round, held] : held_) held.waiting.erase(rank);
  ReleaseHeld(/*all_overdue=*/false);
  if (rounds_ && !peer.left) {
    rounds_->Closed(Now(), rank);
    Flush();
  }
  if (!init_ended_) EndInit(join_.Lost(rank));
  CheckFinished();
}

// --- the recipe

void Coordinator::Publish(uint64_t round, uint32_t phase, const Status& status,
                          std::vector<Bytes> payloads, bool last) {
  if (!rounds_) return;
  Flush();
  rounds_->Publish(Now(), round, phase, status, std::move(payloads), last);
  if (last) last_published_ = round;
  Flush();
  last_published_ = 0;
}

Status Coordinator::BeginCommit(uint64_t round) {
  if (!rounds_) return Status(Code::kState, "the group has no rounds yet");
  Status status = rounds_->BeginCommit(Now(), round);
  Flush();
  return status;
}

// --- what goes out

void Coordinator::Flush() {
  for (auto all = rounds_->TakeOutgoing(); !all.empty(); all = rounds_->TakeOutgoing()) {
    // Rank 0's own phase messages come after the others', whose delivery it waits for.
    std::stable_partition(all.begin(), all.end(), [](const Outgoing& out) {
      return out.kind != Outgoing::Kind::kPhase || out.rank != 0;
    });
    for (Outgoing& out : all) Emit(std::move(out));
  }
  Arm();
}

void Coordinator::Emit(Outgoing out) {
  switch (out.kind) {
    case Outgoing::Kind::kVerdict:
      return Send(out.rank, Encode(VerdictMsg{out.call_id, out.round, std::move(out.status)}));
    case Outgoing::Kind::kPhase: {
      const bool last = !out.status.ok() || out.round == last_published_;
      return SendPhase(out.rank,
                       {out.round, out.phase, last, std::move(out.status), std::move(out.payload)});
    }
    case Outgoing::Kind::kCollected:
      return options_.on_collected(out.round, out.phase, std::move(out.collected));
    case Outgoing::Kind::kProbe:
      return Send(out.rank, EncodeEmpty(Kind::kProbe));
    case Outgoing::Kind::kLate:
      return Send(out.rank, Encode(LateMsg{std::move(out.text)}));
  }
}

void Coordinator::SendPhase(int32_t rank, PhaseMsg message) {
  if (message.last) {
    Held& held = held_[message.round];
    if (rank != 0) {
      if (ConnOf(rank)) held.waiting.insert(rank);
    } else {
      held.own = std::move(message);
      held.until = Now() + kAckPatience;
      held.complete = true;
      return ReleaseHeld(/*all_overdue=*/false);
    }
  }
  Bytes payload = std::move(message.payload);
  message.payload.clear();
  Bytes head = EncodeHead(message, payload.size());
  Send(rank, std::move(head), std::move(payload));
}

void Coordinator::Acknowledged(int32_t rank, uint64_t round) {
  const auto it = held_.find(round);
  if (it == held_.end()) return;
  it->second.waiting.erase(rank);
  ReleaseHeld(/*all_overdue=*/false);
}

void Coordinator::ReleaseHeld(bool all_overdue) {
  const TimePoint now = Now();
  for (auto it = held_.begin(); it != held_.end();) {
    Held& held = it->second;
    const bool due = held.waiting.empty() || now >= held.until || all_overdue;
    if (!held.complete || !due) {
      ++it;
      continue;
    }
    const Bytes payload = std::move(held.own.payload);
    held.own.payload.clear();
    Send(0, EncodeHead(held.own, payload.size()), payload);
    it = held_.erase(it);
  }
}

void Coordinator::Send(int32_t rank, Bytes head, Bytes tail) {
  const auto& conn = ConnOf(rank);
  if (conn) conn->Send(std::move(head), std::move(tail));
}

// --- time

void Coordinator::Tick() {
  const TimePoint now = Now();
  if (!init_ended_ && now >= init_deadline_) {
    const Status disagreement = join_.Agreement();
    const auto waited = std::chrono::duration_cast<Millis>(now - started_);
    return EndInit(disagreement.ok() ? join_.Missing(waited) : disagreement);
  }
  if (now >= next_ping_) {
    next_ping_ = now + options_.heartbeat;
    for (const Peer& peer : peers_) {
      // Whoever has not taken the last one needs no further.
      if (peer.conn && !peer.conn->sending()) peer.conn->Send(EncodeEmpty(Kind::kPing));
    }
  }
  ReleaseHeld(/*all_overdue=*/false);
  armed_ = TimePoint::max();
  if (!rounds_) return Arm();
  rounds_->Tick(now);
  Flush();
}

void Coordinator::Arm() {
  TimePoint next = next_ping_;
  if (!init_ended_) next = std::min(next, init_deadline_);
  for (const auto& [round, held] : held_) next = std::min(next, held.until);
  if (rounds_) next = std::min(next, rounds_->NextDeadline().value_or(next));
  if (next >= armed_) return;  // the timer set already is early enough
  armed_ = next;
  timer_.Set(next - Now(), [this] {
    armed_ = TimePoint::max();
    Tick();
  });
}

// --- the end

void Coordinator::Finish(std::function<void()> done) {
  on_finished_ = std::move(done);
  listener_.reset();
  ReleaseHeld(/*all_overdue=*/true);
  for (int32_t r = 0; r < options_.size; ++r) {
    const auto& conn = ConnOf(r);
    if (!conn) continue;
    if (rounds_) conn->Send(Encode(ByeMsg{rounds_->OwedTo(r)}));
    conn->Finish();
  }
  finish_timer_.Set(kFinishPatience, [this] {
    for (Peer& peer : peers_) {
      if (peer.conn) peer.conn->Close();
      peer.conn.reset();
    }
    CheckFinished();
  });
  CheckFinished();
}

void Coordinator::CheckFinished() {
  if (!on_finished_) return;
  for (const Peer& peer : peers_) {
    if (peer.conn) return;
  }
  timer_.Cancel();
  finish_timer_.Cancel();
  std::exchange(on_finished_, nullptr)();
}

}  // namespace ckpt
