// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain TCP sockets for callers that wait on their own thread: connection set-up and the exchange's
// asking side.  Every descriptor is close-on-exec and non-blocking; no SIGPIPE; EINTR is handled.
// Functions are thread-safe for different descriptors.  Test: tests/unit/comm/stranger_test.cc
#ifndef CKPT_COMM_SOCKET_H_
#define CKPT_COMM_SOCKET_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "util/status.h"
#include "util/sync.h"

namespace ckpt {

class Fd {  // owns a descriptor
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct Endpoint {
  std::string address;  // a name or a number
  uint16_t port = 0;
};

// How long a wait may go on: `stall` without a byte (time in which this process was stopped does
// not count), and only while `check` (may be empty; called at least every 100 ms) gives OK.
struct Patience {
  Millis stall{0};
  std::function<Status()> check;
};

enum class Interface { kLoopback, kAll };

// "10.0.0.1:80", "[fd00::1]:80".
std::string Show(const Endpoint& endpoint);

// `port` 0: any; *bound is the one taken.  COMM with errno and port; the text of a port in use
// names its holder.
Result<Fd> Listen(Interface where, uint16_t port, uint16_t* bound);
// `address`: numeric, one of this host's.
Result<Fd> Listen(const std::string& address, uint16_t port, uint16_t* bound);
// Tries every address of the name in turn.  COMM with the last errno; ETIMEDOUT: no answer.
Result<Fd> Connect(const Endpoint& to, const Patience& patience);
Result<std::pair<Fd, Fd>> SocketPair();

// COMM: closed by the other side, no byte for patience.stall, or the system's error.
Status SendAll(int fd, std::string_view bytes, const Patience& patience);
Status ReceiveAll(int fd, char* out, size_t bytes, const Patience& patience);
// Frames: u32 length + bytes.
Status SendFrame(int fd, std::string_view frame, const Patience& patience);
Result<std::string> ReceiveFrame(int fd, uint64_t max_bytes, const Patience& patience);

// The numeric address of the other side; empty for a socket pair.
std::string PeerAddress(int fd);

}  // namespace ckpt

#endif  // CKPT_COMM_SOCKET_H_
