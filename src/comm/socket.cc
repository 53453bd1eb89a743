// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Sockets with patience.  Test: tests/unit/comm/stranger_test.cc
#include "comm/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "comm/interfaces.h"
#include "util/text.h"
#include "util/wire.h"

namespace ckpt {
namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr Millis kSlice{50};

Status SocketError(int err, std::string_view what) {
  Cause cause;
  cause.sys_errno = err;
  return Status(Code::kComm, Cat(what, ": ", ErrnoText(err)), std::move(cause));
}

void SetNoDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Counts the time without a byte in slices, so that a stop of this process adds one slice only.
class Stall {
 public:
  explicit Stall(const Patience& patience) : patience_(patience) {}
  void Reset() { waited_ = Millis{0}; }

  // Waits for `events`; OK means: try again.
  Status Wait(int fd, short events) {
    if (patience_.check) CKPT_RETURN_IF_ERROR(patience_.check());
    if (waited_ >= patience_.stall) {
      return SocketError(ETIMEDOUT, Cat("no byte for ", patience_.stall.count(), " ms"));
    }
    const Millis slice = std::min(kSlice, patience_.stall - waited_);
    pollfd p{fd, events, 0};
    const TimePoint start = Clock::now();
    if (::poll(&p, 1, static_cast<int>(slice.count())) > 0) return Status();
    const auto spent = std::chrono::duration_cast<Millis>(Clock::now() - start);
    waited_ += std::clamp(spent, Millis{1}, kSlice);
    return Status();
  }

 private:
  const Patience& patience_;
  Millis waited_{0};
};

Result<Fd> ListenOn(int family, const sockaddr* address, socklen_t length) {
  Fd fd(::socket(family, kSocketFlags, 0));
  if (!fd.valid()) return SocketError(errno, "socket");
  const int on = 1, off = 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(fd.get(), address, length) != 0) return SocketError(errno, "bind");
  if (::listen(fd.get(), SOMAXCONN) != 0) return SocketError(errno, "listen");
  return fd;
}

Result<Fd> ListenIpv4(uint32_t address, uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  in.sin_port = htons(port);
  return ListenOn(AF_INET, reinterpret_cast<const sockaddr*>(&in), sizeof in);
}

Result<Fd> ListenEverywhere(uint16_t port) {
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_addr = in6addr_any;
  in6.sin6_port = htons(port);
  auto fd = ListenOn(AF_INET6, reinterpret_cast<const sockaddr*>(&in6), sizeof in6);
  if (fd.ok() || fd.status().cause().sys_errno == EADDRINUSE) return fd;
  return ListenIpv4(INADDR_ANY, port);
}

Result<Fd> ConnectTo(const addrinfo& target, const Patience& patience) {
  Fd fd(::socket(target.ai_family, kSocketFlags, 0));
  if (!fd.valid()) return SocketError(errno, "socket");
  SetNoDelay(fd.get());
  if (::connect(fd.get(), target.ai_addr, target.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS && errno != EINTR) return SocketError(errno, "connect");
  Stall stall(patience);
  for (;;) {
    pollfd p{fd.get(), POLLOUT, 0};
    if (::poll(&p, 1, 0) > 0) break;
    if (const Status wait = stall.Wait(fd.get(), POLLOUT); !wait.ok()) {
      return wait.WithMessage(Cat("connect: ", wait.message()));
    }
  }
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return SocketError(error, "connect");
  return fd;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

std::string Show(const Endpoint& endpoint) {
  const bool colons = endpoint.address.find(':') != std::string::npos;
  return Cat(colons ? "[" : "", endpoint.address, colons ? "]:" : ":", endpoint.port);
}

namespace {

Result<Fd> Bound(Result<Fd> fd, const std::string& address, uint16_t port, uint16_t* bound) {
  if (!fd.ok()) {
    std::string text = Cat("cannot listen on TCP port ", port, address.empty() ? "" : " of ",
                           address, ": ", fd.status().message());
    if (fd.status().cause().sys_errno == EADDRINUSE) text += Cat("; ", WhoListens(port));
    return fd.status().WithMessage(std::move(text));
  }
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (::getsockname(fd->get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return SocketError(errno, "getsockname");
  }
  *bound = name.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(name).sin6_port)
                                      : ntohs(reinterpret_cast<const sockaddr_in&>(name).sin_port);
  return fd;
}

}  // namespace

Result<Fd> Listen(Interface where, uint16_t port, uint16_t* bound) {
  auto fd =
      where == Interface::kLoopback ? ListenIpv4(INADDR_LOOPBACK, port) : ListenEverywhere(port);
  return Bound(std::move(fd), "", port, bound);
}

Result<Fd> Listen(const std::string& address, uint16_t port, uint16_t* bound) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(address.c_str(), Cat(port).c_str(), &hints, &list);
  if (error != 0) return Status(Code::kComm, Cat("address ", address, ": ", ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  return Bound(ListenOn(list->ai_family, list->ai_addr, list->ai_addrlen), address, port, bound);
}

Result<Fd> Connect(const Endpoint& to, const Patience& patience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(to.address.c_str(), Cat(to.port).c_str(), &hints, &list);
  if (error != 0) {
    return Status(Code::kComm, Cat("host ", to.address, ": ", ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  Status last(Code::kComm, Cat("host ", to.address, " has no address"));
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    auto fd = ConnectTo(*a, patience);
    if (fd.ok()) return fd;
    last = fd.status();
  }
  return last;
}

Result<std::pair<Fd, Fd>> SocketPair() {
  int fds[2] = {-1, -1};
  if (::socketpair(AF_UNIX, kSocketFlags, 0, fds) != 0) return SocketError(errno, "socketpair");
  return std::pair<Fd, Fd>(Fd(fds[0]), Fd(fds[1]));
}

Status SendAll(int fd, std::string_view bytes, const Patience& patience) {
  Stall stall(patience);
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
      stall.Reset();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      CKPT_RETURN_IF_ERROR(stall.Wait(fd, POLLOUT));
    } else if (errno != EINTR) {
      return SocketError(errno, "send");
    }
  }
  return Status();
}

Status ReceiveAll(int fd, char* out, size_t bytes, const Patience& patience) {
  Stall stall(patience);
  while (bytes > 0) {
    const ssize_t n = ::recv(fd, out, bytes, 0);
    if (n > 0) {
      out += n;
      bytes -= static_cast<size_t>(n);
      stall.Reset();
    } else if (n == 0) {
      return SocketError(ECONNRESET, "the connection was closed");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      CKPT_RETURN_IF_ERROR(stall.Wait(fd, POLLIN));
    } else if (errno != EINTR) {
      return SocketError(errno, "receive");
    }
  }
  return Status();
}

Status SendFrame(int fd, std::string_view frame, const Patience& patience) {
  WireWriter w;
  w.U32(static_cast<uint32_t>(frame.size()));
  Bytes bytes = w.Take();
  bytes.append(frame);
  return SendAll(fd, bytes, patience);
}

Result<std::string> ReceiveFrame(int fd, uint64_t max_bytes, const Patience& patience) {
  char head[4];
  CKPT_RETURN_IF_ERROR(ReceiveAll(fd, head, sizeof head, patience));
  const uint32_t length = WireReader(std::string_view(head, sizeof head)).U32();
  if (length > max_bytes) {
    return Status(Code::kComm, Cat("malformed frame: ", length, " bytes, at most ", max_bytes));
  }
  std::string frame(length, '\0');
  CKPT_RETURN_IF_ERROR(ReceiveAll(fd, frame.data(), frame.size(), patience));
  return frame;
}

std::string PeerAddress(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  char text[NI_MAXHOST];
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return "";
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text, sizeof text, nullptr,
                    0, NI_NUMERICHOST) != 0) {
    return "";
  }
  const std::string_view v(text);
  return std::string(v.starts_with("::ffff:") ? v.substr(7) : v);
}

}  // namespace ckpt
