// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The event loop on standalone Asio.  Test: tests/unit/comm/group_test.cc, stranger_test.cc
#include "comm/net.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <deque>

#include "comm/fork_guard.h"
#include "util/text.h"

namespace ckpt {

struct Loop::Impl {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() = default;

void Loop::Run() {
  impl_->io.restart();
  impl_->io.run();
}
void Loop::Stop() { impl_->io.stop(); }
void Loop::Post(std::function<void()> handler) { asio::post(impl_->io, std::move(handler)); }

struct Timer::Impl {
  explicit Impl(asio::io_context& io) : timer(io) {}
  asio::steady_timer timer;
  uint64_t generation = 0;  // a handler that is queued already cannot be cancelled
};

Timer::Timer(Loop& loop) : impl_(std::make_shared<Impl>(loop.impl().io)) {}
Timer::~Timer() { Cancel(); }

void Timer::Set(Clock::duration after, std::function<void()> handler) {
  const uint64_t mine = ++impl_->generation;
  impl_->timer.expires_after(std::max(after, Clock::duration::zero()));
  impl_->timer.async_wait(
      [impl = impl_, mine, handler = std::move(handler)](std::error_code error) {
        if (!error && impl->generation == mine) handler();
      });
}

void Timer::Cancel() {
  ++impl_->generation;
  impl_->timer.cancel();
}

struct Acceptor::Impl : std::enable_shared_from_this<Acceptor::Impl> {
  Impl(Loop& l, Fd fd, std::function<void(Fd)> f)
      : loop(l), descriptor(l.impl().io, fd.Release()), timer(l), on_accept(std::move(f)) {}

  void Wait() {
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](std::error_code error) {
                            if (!error && self->on_accept) self->AcceptAll();
                          });
  }

  void AcceptAll() {
    while (on_accept) {
      const int fd =
          ::accept4(descriptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        on_accept(Fd(fd));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return Wait();
      } else if (errno != EINTR && errno != ECONNABORTED) {
        // Out of descriptors or memory: others may give some back.
        return timer.Set(Millis(100), [self = shared_from_this()] { self->AcceptAll(); });
      }
    }
  }

  Loop& loop;
  asio::posix::stream_descriptor descriptor;
  Timer timer;
  std::function<void(Fd)> on_accept;
};

Acceptor::Acceptor(Loop& loop, Fd listening, std::function<void(Fd)> on_accept)
    : impl_(std::make_shared<Impl>(loop, std::move(listening), std::move(on_accept))) {
  impl_->Wait();
}

Acceptor::~Acceptor() {
  impl_->on_accept = nullptr;
  impl_->timer.Cancel();
  std::error_code ignored;
  impl_->descriptor.close(ignored);
}

namespace {

using Socket = asio::generic::stream_protocol::socket;

class AsioConn : public Conn, public std::enable_shared_from_this<AsioConn> {
 public:
  AsioConn(asio::io_context& io, Fd fd, uint64_t max_frame)
      : address_(PeerAddress(fd.get())), socket_(io), guard_(fd.get()), max_frame_(max_frame) {
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length);
    const int family = name.ss_family;
    socket_.assign(asio::generic::stream_protocol(family, family == AF_UNIX ? 0 : IPPROTO_TCP),
                   fd.Release());
    socket_.non_blocking(true);
  }

  void Start(Handlers handlers) override {
    handlers_ = std::move(handlers);
    Read();
  }
  void SetHandlers(Handlers handlers, uint64_t max_frame) override {
    handlers_ = std::move(handlers);
    max_frame_ = max_frame;
  }
  void Send(Bytes head, Bytes tail, std::function<void()> on_sent) override;
  bool sending() const override { return !queue_.empty(); }
  bool closed() const override { return closed_; }
  const std::string& peer_address() const override { return address_; }
  Fd Duplicate() override { return Fd(::fcntl(socket_.native_handle(), F_DUPFD_CLOEXEC, 0)); }
  void Close() override;
  void Finish() override {
    finishing_ = true;
    if (queue_.empty()) ShutDown();
  }

 private:
  struct Out {
    std::array<char, 4> length;
    Bytes head, tail;
    std::function<void()> on_sent;
  };

  void Read();
  void Write();
  void ShutDown() {
    std::error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  void Took(std::string_view bytes);
  void TookBody(size_t bytes);
  void Deliver();
  void Fail(const std::string& why);

  const std::string address_;
  Socket socket_;
  ForkGuard guard_;  // after the socket: gives up the number before it is closed
  uint64_t max_frame_;
  Handlers handlers_;
  bool closed_ = false, finishing_ = false;
  std::deque<Out> queue_;

  // Reading: the length's bytes, then the body.
  std::array<char, 16384> buffer_;
  std::array<char, 4> length_{};
  size_t length_got_ = 0;
  uint64_t frame_size_ = 0;
  size_t body_got_ = 0;
  Bytes body_;
};

void AsioConn::Send(Bytes head, Bytes tail, std::function<void()> on_sent) {
  if (closed_ || finishing_) return;
  const auto size = static_cast<uint32_t>(head.size() + tail.size());
  Out out{{}, std::move(head), std::move(tail), std::move(on_sent)};
  std::memcpy(out.length.data(), &size, sizeof size);
  queue_.push_back(std::move(out));
  if (queue_.size() == 1) Write();
}

void AsioConn::Write() {
  const Out& out = queue_.front();
  const std::array<asio::const_buffer, 3> parts = {asio::buffer(out.length), asio::buffer(out.head),
                                                   asio::buffer(out.tail)};
  asio::async_write(socket_, parts, [self = shared_from_this()](std::error_code error, size_t) {
    if (self->closed_) return;
    if (error) return self->Fail(error.message());
    const auto on_sent = std::move(self->queue_.front().on_sent);
    self->queue_.pop_front();
    if (!self->queue_.empty()) {
      self->Write();
    } else if (self->finishing_) {
      self->ShutDown();
    }
    if (on_sent) on_sent();
  });
}

void AsioConn::Read() {
  if (closed_) return;
  const uint64_t missing = frame_size_ - body_got_;
  if (length_got_ == length_.size() && missing > buffer_.size()) {
    // Memory grows with what has come, not with what was promised.
    const uint64_t ahead = std::min<uint64_t>(missing, std::max<uint64_t>(1 << 20, body_got_));
    if (body_.size() < body_got_ + ahead) body_.resize(body_got_ + ahead);
    socket_.async_read_some(asio::buffer(body_.data() + body_got_, body_.size() - body_got_),
                            [self = shared_from_this()](std::error_code error, size_t n) {
                              if (self->closed_) return;
                              if (error) return self->Fail(error.message());
                              self->TookBody(n);
                            });
    return;
  }
  socket_.async_read_some(asio::buffer(buffer_),
                          [self = shared_from_this()](std::error_code error, size_t n) {
                            if (self->closed_) return;
                            if (error) return self->Fail(error.message());
                            self->Took(std::string_view(self->buffer_.data(), n));
                          });
}

void AsioConn::Took(std::string_view bytes) {
  while (!bytes.empty() && !closed_) {
    if (length_got_ < length_.size()) {
      const size_t n = std::min(bytes.size(), length_.size() - length_got_);
      std::memcpy(length_.data() + length_got_, bytes.data(), n);
      length_got_ += n;
      bytes.remove_prefix(n);
      if (length_got_ < length_.size()) break;
      uint32_t size = 0;
      std::memcpy(&size, length_.data(), sizeof size);
      if (size > max_frame_) return Fail("malformed frame");
      frame_size_ = size;
    }
    const size_t n = static_cast<size_t>(std::min<uint64_t>(bytes.size(), frame_size_ - body_got_));
    body_.resize(body_got_);
    body_.append(bytes.substr(0, n));
    body_got_ += n;
    bytes.remove_prefix(n);
    if (body_got_ == frame_size_) Deliver();
  }
  Read();
}

void AsioConn::TookBody(size_t bytes) {
  body_got_ += bytes;
  if (body_got_ == frame_size_) Deliver();
  Read();
}

void AsioConn::Deliver() {
  Bytes frame = std::exchange(body_, {});
  length_got_ = 0;
  frame_size_ = body_got_ = 0;
  // A copy: the handler may replace itself.
  const auto on_frame = handlers_.on_frame;
  if (on_frame && !finishing_) on_frame(frame);
}

void AsioConn::Fail(const std::string& why) {
  const auto on_closed = handlers_.on_closed;
  Close();
  if (on_closed) on_closed(why);
}

void AsioConn::Close() {
  if (closed_) return;
  closed_ = true;
  guard_.Release();
  std::error_code ignored;
  socket_.close(ignored);
  // Not within a handler of the connection's own: it may be running one of these.
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->handlers_ = {};
    self->queue_.clear();
  });
}

}  // namespace

std::shared_ptr<Conn> Conn::Adopt(Loop& loop, Fd fd, uint64_t max_frame) {
  return std::make_shared<AsioConn>(loop.impl().io, std::move(fd), max_frame);
}

}  // namespace ckpt
