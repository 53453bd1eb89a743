// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The door: accepts connections, lets in those that prove the job's secret, drops the others on the
// first malformed byte or after a while of silence.  Belongs to its loop's thread.
// Test: tests/unit/comm/stranger_test.cc
#ifndef CKPT_COMM_LISTENER_H_
#define CKPT_COMM_LISTENER_H_

#include <functional>
#include <memory>

#include "comm/auth.h"
#include "comm/net.h"
#include "comm/shared_port.h"

namespace ckpt {

class Listener {
 public:
  // A connection whose peer has proved to be `rank`; the receiver sets its handlers at once.
  using OnPeer = std::function<void(int32_t rank, std::shared_ptr<Conn> conn)>;

  // `port`: what `listening` is a duplicate of, if other contexts may listen there too.
  Listener(Loop& loop, Fd listening, Credentials credentials, int32_t own_rank, Purpose purpose,
           OnPeer on_peer, std::shared_ptr<SharedPort> port = {});
  ~Listener();

 private:
  struct Pending;
  struct Impl;
  std::shared_ptr<Impl> impl_;
  const std::shared_ptr<SharedPort> port_;
  uint64_t number_ = 0;  // in port_
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace ckpt

#endif  // CKPT_COMM_LISTENER_H_
