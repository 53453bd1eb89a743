// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// From an identity to a proven connection with rank 0: through a file on one host, or through
// CKPT_PORT and CKPT_TOKEN.  Runs and waits on the caller's thread.
// Test: tests/unit/comm/bootstrap_test.cc
#ifndef CKPT_COMM_BOOTSTRAP_H_
#define CKPT_COMM_BOOTSTRAP_H_

#include <functional>
#include <optional>
#include <string>

#include "comm/auth.h"
#include "comm/comm.h"
#include "comm/shared_port.h"
#include "comm/socket.h"

namespace ckpt {

// Removes the rendezvous file when it goes.
class Publication {
 public:
  Publication(std::string folder, std::string name, uint64_t incarnation)
      : folder_(std::move(folder)), name_(std::move(name)), incarnation_(incarnation) {}
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;
  ~Publication();

 private:
  const std::string folder_, name_;
  const uint64_t incarnation_;
};

// What a rank has in hand once it can talk to the coordinator.
struct Seat {
  Fd control;                 // this rank's end
  Fd listening, coordinator;  // rank 0: where the others come, and the other end of `control`
  std::shared_ptr<SharedPort> port;  // rank 0 with CKPT_PORT: of `listening`
  Credentials credentials;
  std::string coordinator_address;           // as this rank knows it
  std::string own_address;                   // that of CKPT_INTERFACE; empty: all
  std::unique_ptr<Publication> publication;  // rank 0: until all have joined
};

// Where a rank listens: the loopback on one host; else `own_address`, or everywhere if it is empty.
Result<Fd> ListenFor(const JobIdentity& identity, const std::string& own_address, uint16_t port,
                     uint16_t* bound);

// `job_id`: with context name and number.  PARTICIPANTS when rank 0 does not show up by `deadline`;
// COMM, IO, INVALID_ARGUMENT as the parts give them.
Result<Seat> TakeSeat(const JobIdentity& identity, const std::string& job_id, TimePoint deadline,
                      const std::function<void()>& pump);

// The client's side of the challenge on a fresh connection.
Status ProveSecret(int fd, ClientHandshake* handshake, const Patience& patience);

}  // namespace ckpt

#endif  // CKPT_COMM_BOOTSTRAP_H_
