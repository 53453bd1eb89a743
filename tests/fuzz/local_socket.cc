// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "fuzz/target.h"

namespace ckpt::fuzz {

Fd ListenLocally(std::string* name) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // No name given: the kernel picks an unused one outside the file system (unix(7), autobind).
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  Require(::bind(fd.get(), any, sizeof(sa_family_t)) == 0 && ::listen(fd.get(), 64) == 0,
          "a local socket can listen");
  socklen_t length = sizeof address;
  Require(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0,
          "a local socket has a name");
  name->assign(reinterpret_cast<const char*>(&address), length);
  return fd;
}

Fd ConnectLocally(const std::string& name) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Require(::connect(fd.get(), reinterpret_cast<const sockaddr*>(name.data()),
                    static_cast<socklen_t>(name.size())) == 0,
          "a local socket can be reached");
  return fd;
}

}  // namespace ckpt::fuzz
