// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One listening socket per process and CKPT_PORT, for all contexts whose ranks come to it.
// Whichever context's loop accepts a connection hands it to the one that its greeting asks for.
// Closed when the last context has let go.  Thread-safe.  Test: tests/unit/comm/shared_port_test.cc
#ifndef CKPT_COMM_SHARED_PORT_H_
#define CKPT_COMM_SHARED_PORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "comm/socket.h"
#include "util/status.h"
#include "util/sync.h"
#include "util/wire.h"

namespace ckpt {

class SharedPort {
 public:
  // A connection that has sent `greeting`.  Runs on a thread of another context: must only queue.
  using OnGreeting = std::function<void(Fd connection, Bytes greeting)>;

  // That of `place` in this process; made by `listen` if there is none.  A forked child has none.
  static Result<std::shared_ptr<SharedPort>> Open(const std::string& place,
                                                  const std::function<Result<Fd>()>& listen);
  explicit SharedPort(Fd listening) : listening_(std::move(listening)) {}

  // For the loop of one context.  Invalid: out of descriptors.
  Fd Duplicate() const;

  // From now on greetings with `tag` go to `on_greeting`, until Remove with the number given back,
  // after which it is not called again.
  uint64_t Add(const std::string& tag, OnGreeting on_greeting) CKPT_EXCLUDES(mu_);
  void Remove(uint64_t number) CKPT_EXCLUDES(mu_);
  // False: nobody asked for that tag, and `connection` was not looked at.
  bool Hand(const std::string& tag, const std::function<Fd()>& connection, Bytes greeting)
      CKPT_EXCLUDES(mu_);

 private:
  struct Taker {
    std::string tag;
    OnGreeting on_greeting;
  };
  const Fd listening_;
  Mutex mu_;
  uint64_t next_ CKPT_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Taker> takers_ CKPT_GUARDED_BY(mu_);
};

}  // namespace ckpt

#endif  // CKPT_COMM_SHARED_PORT_H_
