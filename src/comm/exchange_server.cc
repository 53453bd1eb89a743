// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The answering side of the exchange.  Replies are written by the event loop, so that a peer that
// reads slowly delays nobody else; replies under way are bounded in bytes.
// Test: tests/unit/comm/exchange_test.cc
#include <list>
#include <map>
#include <new>
#include <optional>
#include <thread>

#include "comm/exchange.h"
#include "comm/listener.h"
#include "comm/net.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint64_t kMaxRequest = 1 << 20;
constexpr uint64_t kMaxReply = 1ull << 30;
constexpr uint64_t kBudget = 32 << 20;  // of replies under way; one more if it is larger

}  // namespace

struct ExchangeServer::Impl {
  // One connection; one request at a time.
  struct Session {
    std::shared_ptr<Conn> conn;
    bool busy = false, replying = false;
    uint64_t round = 0, bytes = 0;
    std::string request;
  };
  using Sessions = std::list<Session>;

  Impl(Fd listening, Credentials credentials, int32_t own_rank)
      : listener(loop, std::move(listening), std::move(credentials), own_rank, Purpose::kExchange,
                 [this](int32_t, std::shared_ptr<Conn> conn) { Admit(std::move(conn)); }) {}

  ~Impl() {
    Halt();
    for (Session& s : sessions) s.conn->Close();
  }

  void Run();
  void Halt();
  void Admit(std::shared_ptr<Conn> conn);
  void Take(Sessions::iterator s, std::string_view frame);
  void Serve();
  void Reply(Sessions::iterator s, const Provider& provider);
  void Drop(Sessions::iterator s);

  Mutex mu;  // of Start and Stop; what follows belongs to the thread, or to them while it rests
  std::thread thread;
  Loop loop;
  Sessions sessions;  // those with a request that waits: in order of arrival
  std::map<uint64_t, Provider> providers;
  uint64_t under_way = 0;
  Listener listener;
};

ExchangeServer::ExchangeServer(Fd listening, Credentials credentials, int32_t own_rank)
    : impl_(std::make_unique<Impl>(std::move(listening), std::move(credentials), own_rank)) {}
ExchangeServer::~ExchangeServer() = default;

void ExchangeServer::Start(uint64_t round, Provider provider) {
  MutexLock lock(impl_->mu);
  impl_->Halt();
  impl_->providers[round] = std::move(provider);
  impl_->Run();
}

void ExchangeServer::Stop(uint64_t round) {
  MutexLock lock(impl_->mu);
  impl_->Halt();
  impl_->providers.erase(round);
  for (auto s = impl_->sessions.begin(); s != impl_->sessions.end();) {
    const auto it = s++;
    if (it->busy && it->round == round) impl_->Drop(it);
  }
  if (!impl_->providers.empty()) impl_->Run();
}

void ExchangeServer::Impl::Run() {
  loop.Post([this] { Serve(); });
  thread = StartThread("ckpt-xchg", [this] {
    for (;;) {
      try {
        return loop.Run();
      } catch (const std::bad_alloc&) {
        // The connection in question stays silent, and its peer gives up.
      }
    }
  });
}

void ExchangeServer::Impl::Halt() {
  if (!thread.joinable()) return;
  // Through the queue: a stop must not come before the thread has begun to run.
  loop.Post([this] { loop.Stop(); });
  thread.join();
}

void ExchangeServer::Impl::Admit(std::shared_ptr<Conn> conn) {
  sessions.push_back({std::move(conn), false, false, 0, 0, ""});
  const auto s = std::prev(sessions.end());
  s->conn->SetHandlers({[this, s](std::string_view frame) { Take(s, frame); },
                        [this, s](const std::string&) { Drop(s); }},
                       kMaxRequest);
}

void ExchangeServer::Impl::Take(Sessions::iterator s, std::string_view frame) {
  WireReader r(frame);
  const uint64_t round = r.U64();
  const uint64_t bytes = r.U64();
  std::string request = r.Str();
  // Speaking out of turn is malformed too.
  if (!r.AtEnd() || bytes > kMaxReply || s->busy) return Drop(s);
  s->busy = true;
  s->round = round;
  s->bytes = bytes;
  s->request = std::move(request);
  sessions.splice(sessions.end(), sessions, s);
  Serve();
}

void ExchangeServer::Impl::Serve() {
  for (auto it = sessions.begin(); it != sessions.end();) {
    const auto s = it++;
    if (!s->busy || s->replying) continue;
    const auto provider = providers.find(s->round);
    if (provider == providers.end()) continue;
    if (under_way > 0 && under_way + s->bytes > kBudget) return;
    Reply(s, provider->second);
  }
}

void ExchangeServer::Impl::Reply(Sessions::iterator s, const Provider& provider) {
  std::string reply;
  Status status;
  try {
    status = provider(s->request, &reply);
  } catch (const std::bad_alloc&) {
    status = Status(Code::kNoMemory, "exchange: out of memory");
  }
  if (status.ok() && reply.size() != s->bytes) {
    status = Status(Code::kInternal,
                    Cat("exchange: asked for ", s->bytes, " bytes, have ", reply.size()));
  }
  WireWriter head;
  head.U8(status.ok() ? 1 : 0);
  if (!status.ok()) {
    reply.clear();
    PutStatus(head, status);
  }
  s->replying = true;
  under_way += s->bytes;
  s->conn->Send(head.Take(), std::move(reply), [this, s] {
    s->busy = s->replying = false;
    under_way -= s->bytes;
    // Not from here: the write of another reply may have just ended in the same way.
    loop.Post([this] { Serve(); });
  });
}

void ExchangeServer::Impl::Drop(Sessions::iterator s) {
  if (s->replying) under_way -= s->bytes;
  s->conn->Close();
  sessions.erase(s);
}

}  // namespace ckpt
