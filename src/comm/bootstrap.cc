// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// How the ranks find rank 0.  Test: tests/unit/comm/bootstrap_test.cc
#include "comm/bootstrap.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "comm/interfaces.h"
#include "comm/proc.h"
#include "comm/secret_file.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr Millis kFirstPause{5}, kLongestPause{50};
// A coordinator that has accepted answers the challenge at once.
constexpr Millis kHandshakePatience{5000};

bool ByToken(const JobIdentity& id) { return id.port != 0 && !id.token.empty(); }

std::string Folder() {
  return RuntimeFolder([](const char* name) -> const char* { return std::getenv(name); });
}

Endpoint HeadByToken(const JobIdentity& id) {
  return {id.one_host || id.address.empty() ? "127.0.0.1" : id.address, id.port};
}

struct Tried {
  Status last;
  Status refused;  // the last time somebody answered who is not this job's rank 0
};

Status NotThere(const JobIdentity& id, const std::string& job_id, const Tried& tried) {
  RankReport report;
  report.rank = 0;
  Cause cause;
  cause.rank = 0;
  cause.sys_errno = tried.last.cause().sys_errno;
  std::string text;
  if (ByToken(id)) {
    text = Cat("init: no rank 0 at ", Show(HeadByToken(id)),
               " (MASTER_ADDR, CKPT_PORT) in time, for job ", Printable(job_id, 200));
  } else {
    text =
        Cat("init: rank 0 has not published its address in time (", Folder(), "/", HashName(job_id),
            "): is it running, with the same job id and context name? The ranks are taken to be "
            "on one host; CKPT_PORT and CKPT_TOKEN are needed for several");
  }
  const Status& last = tried.last;
  if (!last.ok()) text += Cat("; last attempt: ", last.message());
  if (!tried.refused.ok() && tried.refused.message() != last.message()) {
    text += Cat("; before: ", tried.refused.message());
  }
  return Status(Code::kParticipants, std::move(text), cause).WithRanks({report});
}

Result<Fd> ListenHead(const JobIdentity& id, const std::string& own_address, uint16_t* port) {
  auto fd = ListenFor(id, own_address, id.port, port);
  if (fd.ok()) return fd;
  return fd.status()
      .WithMessage(Cat("init: rank 0 ", fd.status().message(),
                       id.port == 0 ? "" : ": CKPT_PORT must be free on its host"))
      .WithRank(0);
}

Result<Seat> SitAtHead(const JobIdentity& id, const std::string& own_address,
                       const std::string& job_id) {
  Seat seat;
  CKPT_ASSIGN_OR_RETURN(auto pair, SocketPair());
  seat.control = std::move(pair.first);
  seat.coordinator = std::move(pair.second);
  seat.credentials = {ByToken(id) ? SecretFromToken(id.token) : RandomSecret(), job_id,
                      RandomNumber()};
  if (id.size == 1) return seat;
  uint16_t port = 0;
  const auto listen = [&] { return ListenHead(id, own_address, &port); };
  if (ByToken(id)) {
    const std::string place = Cat(id.one_host ? "loopback" : own_address, " ", id.port);
    CKPT_ASSIGN_OR_RETURN(seat.port, SharedPort::Open(place, listen));
    seat.listening = seat.port->Duplicate();
    if (!seat.listening.valid()) return Status(Code::kComm, "init: no descriptor left to listen");
    return seat;
  }
  CKPT_ASSIGN_OR_RETURN(seat.listening, listen());
  Rendezvous rendezvous;
  rendezvous.port = port;
  rendezvous.secret = seat.credentials.secret;
  rendezvous.incarnation = seat.credentials.incarnation;
  rendezvous.pid = ::getpid();
  rendezvous.start_time = StartTime(::getpid()).value_or(0);
  const std::string folder = Folder(), name = HashName(job_id);
  CKPT_ASSIGN_OR_RETURN(const std::string path, Publish(folder, name, rendezvous));
  seat.publication = std::make_unique<Publication>(folder, name, rendezvous.incarnation);
  return seat;
}

// One attempt.  OK without a connection: rank 0 is not there yet, `*tried` may say why.
Result<Seat> Approach(const JobIdentity& id, const std::string& job_id, const Patience& patience,
                      Tried* tried) {
  Seat seat;
  Endpoint to = HeadByToken(id);
  if (ByToken(id)) {
    seat.credentials = {SecretFromToken(id.token), job_id, 0};
  } else {
    CKPT_ASSIGN_OR_RETURN(const auto found, ReadRendezvous(Folder(), HashName(job_id)));
    if (!found) return seat;
    to = {"127.0.0.1", found->port};
    seat.credentials = {found->secret, job_id, found->incarnation};
  }
  auto fd = Connect(to, patience);
  ClientHandshake handshake(seat.credentials, id.rank, 0, Purpose::kControl);
  const Status now = fd.ok() ? ProveSecret(fd->get(), &handshake, patience) : fd.status();
  if (!now.ok()) {
    // What the deadline cut short says less than what was found before.
    if (tried->last.ok() || now.cause().sys_errno != ETIMEDOUT) tried->last = now;
    if (fd.ok() && now.cause().sys_errno == 0) tried->refused = now;
    return seat;
  }
  seat.credentials.incarnation = handshake.incarnation();
  seat.coordinator_address = to.address;
  seat.control = std::move(*fd);
  return seat;
}

Result<Seat> FindHead(const JobIdentity& id, const std::string& job_id, TimePoint deadline,
                      const std::function<void()>& pump) {
  Tried tried;
  Cause no_answer;
  no_answer.sys_errno = ETIMEDOUT;
  Patience patience{kHandshakePatience, [&pump, deadline, &no_answer] {
                      if (pump) pump();
                      if (Clock::now() < deadline) return Status();
                      return Status(Code::kComm, "no answer", no_answer);
                    }};
  for (Millis pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    CKPT_ASSIGN_OR_RETURN(Seat seat, Approach(id, job_id, patience, &tried));
    if (seat.control.valid()) return seat;
    if (Clock::now() >= deadline) return NotThere(id, job_id, tried);
    if (pump) pump();
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

Publication::~Publication() { Withdraw(folder_, name_, incarnation_); }

Status ProveSecret(int fd, ClientHandshake* handshake, const Patience& patience) {
  CKPT_RETURN_IF_ERROR(SendFrame(fd, handshake->Hello(), patience));
  CKPT_ASSIGN_OR_RETURN(const std::string challenge,
                        ReceiveFrame(fd, kMaxHandshakeFrame, patience));
  CKPT_ASSIGN_OR_RETURN(const Bytes answer, handshake->Answer(challenge));
  return SendFrame(fd, answer, patience);
}

Result<Fd> ListenFor(const JobIdentity& identity, const std::string& own_address, uint16_t port,
                     uint16_t* bound) {
  if (identity.one_host) return Listen(Interface::kLoopback, port, bound);
  if (own_address.empty()) return Listen(Interface::kAll, port, bound);
  return Listen(own_address, port, bound);
}

Result<Seat> TakeSeat(const JobIdentity& identity, const std::string& job_id, TimePoint deadline,
                      const std::function<void()>& pump) {
  std::string own_address;
  if (!identity.one_host && !identity.interface.empty()) {
    CKPT_ASSIGN_OR_RETURN(own_address, AddressOfInterface(identity.interface, identity.address));
  }
  auto seat = identity.rank == 0 ? SitAtHead(identity, own_address, job_id)
                                 : FindHead(identity, job_id, deadline, pump);
  if (seat.ok()) seat->own_address = std::move(own_address);
  return seat;
}

}  // namespace ckpt
