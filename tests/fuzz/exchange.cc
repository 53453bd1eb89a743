// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The exchange between ranks, each side against a peer that knows the secret and then sends
// anything: the server over a local socket, the client over the loopback interface, which is all
// that it can reach.
#include "comm/exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <thread>

#include "comm/bootstrap.h"
#include "fuzz/local_socket.h"
#include "fuzz/target.h"

namespace ckpt::fuzz {
namespace {

constexpr uint64_t kRound = 1;
constexpr size_t kWanted = 8;
const Patience kPatience{Millis(20000), {}};

const Credentials& Shared() {
  static const Credentials shared{SecretFromToken("fuzz"), "job", 7};
  return shared;
}

void AgainstServer(std::string_view bytes) {
  std::string name;
  ExchangeServer server(ListenLocally(&name), Shared(), 0);
  server.Start(kRound, [](std::string_view request, std::string* reply) {
    if (request == "fail") return Status(Code::kIo, "disk");
    reply->assign(kWanted, 'r');
    return Status();
  });
  Fd fd = ConnectLocally(name);
  ClientHandshake handshake(Shared(), 1, 0, Purpose::kExchange);
  Require(ProveSecret(fd.get(), &handshake, kPatience).ok(), "the proof is taken");
  (void)SendAll(fd.get(), bytes, kPatience).ok();
  ::shutdown(fd.get(), SHUT_WR);
  for (;;) {
    const auto frame = ReceiveFrame(fd.get(), 1 << 20, kPatience);
    if (!frame.ok()) {
      Require(frame.status().cause().sys_errno != ETIMEDOUT, "the server closes");
      break;
    }
    Require(frame->size() == 1 + kWanted || (!frame->empty() && (*frame)[0] == 0),
            "a reply is the bytes asked for, or an error");
  }
  server.Stop(kRound);
}

void AgainstClient(std::string_view bytes) {
  uint16_t port = 0;
  auto listening = Listen(Interface::kLoopback, 0, &port);
  Require(listening.ok(), "a port");
  std::thread peer([&] {
    pollfd p{listening->get(), POLLIN, 0};
    if (::poll(&p, 1, 20000) != 1) return;
    const Fd fd(::accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    ServerHandshake handshake(Shared(), 0, Purpose::kExchange);
    while (!handshake.done()) {
      const auto frame = ReceiveFrame(fd.get(), kMaxHandshakeFrame, kPatience);
      Bytes reply;
      if (!frame.ok() || !handshake.Take(*frame, &reply).ok()) return;
      if (!reply.empty() && !SendFrame(fd.get(), reply, kPatience).ok()) return;
    }
    const auto request = ReceiveFrame(fd.get(), 1 << 20, kPatience);
    if (request.ok()) (void)SendAll(fd.get(), bytes, kPatience).ok();
  });
  char reply[kWanted];
  ExchangeClient client({{"127.0.0.1", port}}, Shared(), 1, Millis(20000));
  const Status status = client.Ask(kRound, 0, "request", reply, kWanted, [] { return false; });
  peer.join();
  WireReader head(bytes);
  const bool whole = head.U32() == 1 + kWanted && head.U8() == 1 && bytes.size() >= 5 + kWanted;
  Require(status.ok() == whole, "a client takes exactly the reply that it asked for");
}

}  // namespace

void RunExchange(std::string_view input) {
  static const bool started = StartAuth().ok();
  Require(started, "libsodium starts");
  Script script(input.substr(0, 1 << 14));  // fits the sockets' buffers
  return script.Byte() % 2 == 0 ? AgainstServer(script.Rest()) : AgainstClient(script.Rest());
}

Seeds ExchangeSeeds() {
  const auto framed = [](const Bytes& body) {
    WireWriter w;
    w.U32(static_cast<uint32_t>(body.size()));
    return w.Take() + body;
  };
  const auto request = [&](uint64_t round, uint64_t bytes, std::string_view text) {
    WireWriter w;
    w.U64(round);
    w.U64(bytes);
    w.Str(text);
    return framed(w.Take());
  };
  WireWriter error;
  error.U8(0);
  PutStatus(error, Status(Code::kIo, "disk"));
  const Bytes server(1, '\0'), client(1, '\1');
  const Bytes good = request(kRound, kWanted, "x");
  return {
      {"request", server + good},
      {"request-fails", server + request(kRound, kWanted, "fail")},
      {"request-wrong-size", server + request(kRound, 9, "x")},
      {"request-huge", server + request(kRound, ~uint64_t{0}, "x")},
      {"request-other-round", server + request(7, kWanted, "x")},
      {"request-two", server + good + good},
      {"request-cut", server + good.substr(0, 9)},
      {"reply", client + framed(Bytes(1, '\1') + Bytes(kWanted, 'r'))},
      {"reply-short", client + framed(Bytes(1, '\1') + Bytes(3, 'r'))},
      {"reply-cut", client + framed(Bytes(1, '\1') + Bytes(kWanted, 'r')).substr(0, 8)},
      {"reply-error", client + framed(error.Take())},
      {"reply-empty", client + framed("")},
      {"reply-huge", client + Bytes("\xff\xff\xff\xff\0", 5)},
  };
}

}  // namespace ckpt::fuzz
