// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// An event loop for one thread, with timers, a listening socket and connections that carry frames
// (u32 length + bytes).  net.cc is the only source that names Asio.
//
// Everything here belongs to the thread that runs the loop, except Loop::Post and Loop::Stop.
// Test: tests/unit/comm/group_test.cc, stranger_test.cc
#ifndef CKPT_COMM_NET_H_
#define CKPT_COMM_NET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/socket.h"
#include "util/status.h"
#include "util/sync.h"
#include "util/wire.h"

namespace ckpt {

class Loop {
 public:
  Loop();
  ~Loop();

  // Runs handlers until Stop.  May be run again, by any thread, one at a time.  An exception of a
  // handler (memory) comes out of it.
  void Run();
  void Stop();                               // any thread
  void Post(std::function<void()> handler);  // any thread; keeps their order

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

class Timer {
 public:
  explicit Timer(Loop& loop);
  ~Timer();
  // Replaces what was set before.
  void Set(Clock::duration after, std::function<void()> handler);
  void Cancel();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Hands every new connection to `on_accept`, until destroyed.
class Acceptor {
 public:
  Acceptor(Loop& loop, Fd listening, std::function<void(Fd)> on_accept);
  ~Acceptor();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// One connection.  Alive while it is open or somebody holds it.
class Conn {
 public:
  struct Handlers {
    std::function<void(std::string_view frame)> on_frame;
    // Once: closed by the other side, failed, or malformed.  Not after Close().
    std::function<void(const std::string& why)> on_closed;
  };

  static std::shared_ptr<Conn> Adopt(Loop& loop, Fd fd, uint64_t max_frame);
  virtual ~Conn() = default;

  virtual void Start(Handlers handlers) = 0;
  // From within on_frame too.
  virtual void SetHandlers(Handlers handlers, uint64_t max_frame) = 0;
  // One frame of both parts.  `on_sent` (may be empty) runs once the kernel has taken all of it.
  virtual void Send(Bytes head, Bytes tail = {}, std::function<void()> on_sent = {}) = 0;
  virtual bool sending() const = 0;
  virtual bool closed() const = 0;
  virtual const std::string& peer_address() const = 0;
  // A descriptor of its own for the same connection, so that another loop can go on with it after
  // Close(); what has been read stays read.  Invalid: out of descriptors.
  virtual Fd Duplicate() = 0;
  virtual void Close() = 0;
  // Sends what is queued and says that no more will come; on_closed follows when the other side
  // closes.  Frames that still come are dropped.  So nothing sent is lost to a reset.
  virtual void Finish() = 0;
};

}  // namespace ckpt

#endif  // CKPT_COMM_NET_H_
