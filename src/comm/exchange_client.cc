// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The asking side of the exchange.  Test: tests/unit/comm/exchange_test.cc
#include "comm/bootstrap.h"
#include "comm/exchange.h"
#include "util/text.h"
#include "util/wire.h"

namespace ckpt {
namespace {

constexpr uint64_t kMaxError = 1 << 20;
constexpr size_t kMaxIdle = 4;  // per peer

Status Malformed(const std::string& why) { return Status(Code::kComm, "malformed reply: " + why); }

}  // namespace

ExchangeClient::ExchangeClient(std::vector<Endpoint> peers, Credentials credentials,
                               int32_t own_rank, Millis stall_timeout)
    : peers_(std::move(peers)),
      credentials_(std::move(credentials)),
      own_rank_(own_rank),
      stall_timeout_(stall_timeout),
      idle_(peers_.size()) {}

Result<Fd> ExchangeClient::Open(int32_t peer, const Patience& patience) {
  CKPT_ASSIGN_OR_RETURN(Fd fd, Connect(peers_[static_cast<size_t>(peer)], patience));
  ClientHandshake handshake(credentials_, own_rank_, peer, Purpose::kExchange);
  CKPT_RETURN_IF_ERROR(ProveSecret(fd.get(), &handshake, patience));
  return fd;
}

Fd ExchangeClient::TakeIdle(int32_t peer) {
  MutexLock lock(mu_);
  auto& idle = idle_[static_cast<size_t>(peer)];
  if (idle.empty()) return Fd();
  Fd fd = std::move(idle.back());
  idle.pop_back();
  return fd;
}

Status ExchangeClient::Converse(int fd, std::string_view frame, char* reply, size_t bytes,
                                const Patience& patience, Status* answer, bool* touched) {
  CKPT_RETURN_IF_ERROR(SendFrame(fd, frame, patience));
  char head[5];
  CKPT_RETURN_IF_ERROR(ReceiveAll(fd, head, sizeof head, patience));
  *touched = true;
  WireReader r(std::string_view(head, sizeof head));
  const uint64_t length = r.U32();
  const uint8_t ok = r.U8();
  if (length < 1 || ok > 1) return Malformed("no such kind");
  const uint64_t body = length - 1;
  if (ok == 1) {
    if (body != bytes) return Malformed(Cat(body, " bytes instead of ", bytes));
    return ReceiveAll(fd, reply, bytes, patience);
  }
  if (body > kMaxError) return Malformed(Cat("an error of ", body, " bytes"));
  std::string text(body, '\0');
  CKPT_RETURN_IF_ERROR(ReceiveAll(fd, text.data(), text.size(), patience));
  WireReader error(text);
  *answer = GetStatus(error);
  if (!error.AtEnd() || answer->ok()) return Malformed("unreadable error");
  return Status();
}

Status ExchangeClient::Ask(uint64_t round, int32_t peer, std::string_view request, char* reply,
                           size_t bytes, const std::function<bool()>& closed) {
  if (peer < 0 || static_cast<size_t>(peer) >= peers_.size()) {
    return Status(Code::kInternal, Cat("exchange: no rank ", peer));
  }
  WireWriter w;
  w.U64(round);
  w.U64(bytes);
  w.Str(request);
  const Bytes frame = w.Take();
  const Patience patience{stall_timeout_, [&closed] {
                            if (!closed()) return Status();
                            return Status(Code::kComm, "the round has been closed");
                          }};
  Status transport, answer;
  for (bool retried = false;; retried = true) {
    Fd fd = TakeIdle(peer);
    const bool used = fd.valid();
    if (!used) {
      auto fresh = Open(peer, patience);
      transport = fresh.status();
      if (fresh.ok()) fd = std::move(*fresh);
    }
    bool touched = false;
    if (fd.valid()) {
      transport = Converse(fd.get(), frame, reply, bytes, patience, &answer, &touched);
    }
    if (transport.ok()) {
      MutexLock lock(mu_);
      auto& idle = idle_[static_cast<size_t>(peer)];
      if (idle.size() < kMaxIdle) idle.push_back(std::move(fd));
      return answer;
    }
    // The peer may have closed an idle connection between two rounds; asking again is harmless.
    if (!used || touched || retried || closed()) break;
  }
  return Status(Code::kComm, Cat("exchange with rank ", peer, ": ", transport.message()),
                transport.cause())
      .WithRank(peer);
}

}  // namespace ckpt
