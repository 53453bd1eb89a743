// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Server side of the challenge on the event loop.  Test: tests/unit/comm/stranger_test.cc
#include "comm/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <list>
#include <utility>

namespace ckpt {
namespace {

constexpr Millis kPatience{10000};  // for the whole challenge
// Strangers who say nothing must not use up the process's descriptors; the oldest goes first.
constexpr size_t kMaxPending = 1024;

}  // namespace

struct Listener::Pending {
  Pending(Loop& loop, const Credentials& c, int32_t own_rank, Purpose purpose)
      : handshake(c, own_rank, purpose), timer(loop) {}
  std::shared_ptr<Conn> conn;
  ServerHandshake handshake;
  Timer timer;
  bool routed = false;  // to this context, which is so for all where the port is not shared
};

struct Listener::Impl {
  Loop& loop;
  const Credentials credentials;
  const int32_t own_rank;
  const Purpose purpose;
  OnPeer on_peer;
  const std::shared_ptr<SharedPort> port;
  const std::string tag = HashName(credentials.job_id);
  std::list<std::shared_ptr<Pending>> pending = {};  // oldest first

  std::shared_ptr<Pending> Accept(Fd fd, const std::weak_ptr<Impl>& weak);
  bool BelongsToAnother(const std::shared_ptr<Pending>& p, std::string_view frame);
  void Take(const std::shared_ptr<Pending>& p, std::string_view frame);
  void Drop(const std::shared_ptr<Pending>& p) {
    p->timer.Cancel();
    p->conn->Close();
    pending.remove(p);
  }
};

std::shared_ptr<Listener::Pending> Listener::Impl::Accept(Fd fd, const std::weak_ptr<Impl>& weak) {
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (pending.size() >= kMaxPending) Drop(pending.front());
  auto p = std::make_shared<Pending>(loop, credentials, own_rank, purpose);
  p->conn = Conn::Adopt(loop, std::move(fd), kMaxHandshakeFrame);
  pending.push_back(p);
  const std::weak_ptr<Pending> weak_p = p;
  const auto drop = [weak, weak_p] {
    const auto self = weak.lock();
    const auto it = weak_p.lock();
    if (self && it) self->Drop(it);
  };
  p->timer.Set(kPatience, drop);
  p->conn->Start({[weak, weak_p](std::string_view frame) {
                    const auto self = weak.lock();
                    const auto it = weak_p.lock();
                    if (self && it) self->Take(it, frame);
                  },
                  [drop](const std::string&) { drop(); }});
  return p;
}

bool Listener::Impl::BelongsToAnother(const std::shared_ptr<Pending>& p, std::string_view frame) {
  if (!port || std::exchange(p->routed, true)) return false;
  const std::string asked = TagOfGreeting(frame);
  // What nobody asked for is answered here: the challenge tells the peer that it is at another job.
  return asked != tag && port->Hand(
                             asked, [&p] { return p->conn->Duplicate(); }, Bytes(frame));
}

void Listener::Impl::Take(const std::shared_ptr<Pending>& p, std::string_view frame) {
  if (BelongsToAnother(p, frame)) return Drop(p);
  Bytes reply;
  if (!p->handshake.Take(frame, &reply).ok()) return Drop(p);
  if (!reply.empty()) p->conn->Send(std::move(reply));
  if (!p->handshake.done()) return;
  p->timer.Cancel();
  pending.remove(p);
  on_peer(p->handshake.rank(), p->conn);
}

Listener::Listener(Loop& loop, Fd listening, Credentials credentials, int32_t own_rank,
                   Purpose purpose, OnPeer on_peer, std::shared_ptr<SharedPort> port)
    : impl_(std::make_shared<Impl>(
          Impl{loop, std::move(credentials), own_rank, purpose, std::move(on_peer), port})),
      port_(std::move(port)) {
  const std::weak_ptr<Impl> weak = impl_;
  if (port_) {
    number_ = port_->Add(impl_->tag, [weak, &loop](Fd fd, Bytes greeting) {
      // Shared: handlers are copied.
      const auto handed = std::make_shared<Fd>(std::move(fd));
      loop.Post([weak, handed, greeting = std::move(greeting)] {
        const auto self = weak.lock();
        if (!self || !handed->valid()) return;
        const auto p = self->Accept(std::move(*handed), weak);
        p->routed = true;
        self->Take(p, greeting);
      });
    });
  }
  acceptor_ = std::make_unique<Acceptor>(loop, std::move(listening), [weak](Fd fd) {
    if (const auto self = weak.lock()) self->Accept(std::move(fd), weak);
  });
}

Listener::~Listener() {
  if (port_) port_->Remove(number_);
  acceptor_.reset();
  while (!impl_->pending.empty()) impl_->Drop(impl_->pending.front());
}

}  // namespace ckpt
