// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Init and end of one rank.  Test: tests/unit/comm/group_test.cc
#include "comm/member.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "util/text.h"

namespace ckpt {
namespace {

// The coordinator decides at its earliest deadline; this is for its answer to arrive.
constexpr Millis kAnswerGrace{2000};

}  // namespace

Member::Member(GroupOptions options, JobIdentity identity)
    : options_(std::move(options)), identity_(std::move(identity)), inbox_(options_.pump) {}

Member::~Member() { Leave(); }

Status Member::Join() {
  const TimePoint deadline = Clock::now() + options_.contract_timeout;
  std::string job_id = identity_.job_id;
  if (!options_.identity) {
    number_.emplace(options_.name);
    job_id += Cat(" context ", options_.name, " number ", number_->value());
  }
  if (options_.log) {
    options_.log->Write(
        LogLevel::kInfo, "comm",
        Cat("rank ", identity_.rank, " of ", identity_.size, " (", identity_.source, "), job ",
            Printable(job_id), identity_.one_host ? ", one host" : ", several hosts"));
  }
  CKPT_RETURN_IF_ERROR(StartAuth());
  CKPT_ASSIGN_OR_RETURN(Seat seat, TakeSeat(identity_, job_id, deadline, options_.pump));
  uint16_t port = 0;
  if (identity_.size > 1) CKPT_RETURN_IF_ERROR(OpenExchange(seat, &port));
  HelloMsg hello = Hello(port, deadline);
  hello.exchange_address = seat.own_address;
  StartMonitor(&seat, std::move(hello));
  RosterMsg roster;
  CKPT_RETURN_IF_ERROR(inbox_.WaitRoster(deadline + kAnswerGrace, &roster));
  if (roster.exchange.size() != static_cast<size_t>(identity_.size)) {
    return Status(Code::kComm, "init: rank 0 sent a malformed roster");
  }
  ConnectExchange(seat, std::move(roster.exchange));
  return Status();
}

Status Member::OpenExchange(const Seat& seat, uint16_t* port) {
  CKPT_ASSIGN_OR_RETURN(Fd listening, ListenFor(identity_, seat.own_address, 0, port));
  exchange_server_ =
      std::make_unique<ExchangeServer>(std::move(listening), seat.credentials, identity_.rank);
  return Status();
}

HelloMsg Member::Hello(uint16_t exchange_port, TimePoint deadline) const {
  HelloMsg hello;
  hello.rank = identity_.rank;
  hello.size = identity_.size;
  hello.pid = ::getpid();
  hello.library_build = options_.library_build;
  hello.job_config = options_.job_config;
  hello.exchange_port = exchange_port;
  const auto left = std::chrono::duration_cast<Millis>(deadline - Clock::now());
  hello.remaining_ms = static_cast<uint64_t>(std::max<int64_t>(left.count(), 0));
  return hello;
}

void Member::StartMonitor(Seat* seat, HelloMsg hello) {
  if (identity_.rank == 0) {
    CoordinatorOptions o;
    o.size = identity_.size;
    o.heartbeat = options_.heartbeat;
    o.stall_timeout = options_.stall_timeout;
    o.max_message_bytes = options_.max_message_bytes;
    o.credentials = seat->credentials;
    o.on_collected = [this](uint64_t round, uint32_t phase, std::vector<Bytes> all) {
      inbox_.PutCollected(round, phase, std::move(all));
    };
    coordinator_ = std::make_unique<Coordinator>(loop_, std::move(o));
    coordinator_->Start(std::move(seat->listening), std::move(seat->coordinator),
                        std::move(seat->port));
  }
  MonitorOptions m;
  m.heartbeat = options_.heartbeat;
  m.contract_timeout = options_.contract_timeout;
  m.max_message_bytes = options_.max_message_bytes;
  m.main_thread = static_cast<pid_t>(::syscall(SYS_gettid));
  m.on_late = options_.on_late;
  m.describe = options_.describe;
  monitor_ = std::make_unique<Monitor>(loop_, std::move(m), &inbox_, &activity_);
  monitor_->Start(std::move(seat->control), std::move(hello));
  MutexLock lock(leave_mu_);
  thread_ = StartThread("ckpt-mon", [this] {
    try {
      loop_.Run();
    } catch (const std::exception& e) {
      inbox_.Lost(Status(Code::kNoMemory, Cat("the monitor has failed: ", e.what())));
    }
  });
}

void Member::ConnectExchange(const Seat& seat, std::vector<Endpoint> peers) {
  for (Endpoint& peer : peers) {
    if (peer.address.empty()) peer.address = seat.coordinator_address;
    if (peer.address.empty()) peer.address = "127.0.0.1";
  }
  exchange_client_ = std::make_unique<ExchangeClient>(std::move(peers), seat.credentials,
                                                      identity_.rank, options_.stall_timeout);
}

void Member::Leave() {
  MutexLock lock(leave_mu_);
  inbox_.Left();
  if (!thread_.joinable()) return;
  loop_.Post([this] {
    monitor_->Leave([this] {
      if (!coordinator_) return loop_.Stop();
      coordinator_->Finish([this] { loop_.Stop(); });
    });
  });
  thread_.join();
}

void Member::Send(Bytes head, Bytes tail) {
  loop_.Post([this, head = std::move(head), tail = std::move(tail)]() mutable {
    monitor_->Send(std::move(head), std::move(tail));
  });
}

void Member::Publish(uint64_t round, uint32_t phase, const Status& status,
                     std::vector<Bytes> payloads, bool last) {
  loop_.Post([this, round, phase, status, payloads = std::move(payloads), last]() mutable {
    if (coordinator_) coordinator_->Publish(round, phase, status, std::move(payloads), last);
  });
}

Status Member::BeginCommit(uint64_t round) {
  if (!coordinator_) return Status(Code::kInternal, "only rank 0 commits");
  struct Answer {
    Mutex mu;
    CondVar changed;
    std::optional<Status> status CKPT_GUARDED_BY(mu);
  };
  // Shared: the handler may still be queued when this call has given up.
  const auto answer = std::make_shared<Answer>();
  loop_.Post([this, round, answer] {
    Status status = coordinator_->BeginCommit(round);
    MutexLock lock(answer->mu);
    answer->status = std::move(status);
    answer->changed.NotifyAll();
  });
  MutexLock lock(answer->mu);
  while (!answer->status) {
    answer->changed.WaitUntil(answer->mu, Clock::now() + Millis(100));
    if (!answer->status && inbox_.ended()) return Status(Code::kState, "this rank has left");
  }
  return *answer->status;
}

}  // namespace ckpt
