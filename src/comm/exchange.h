// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Request and reply between ranks, on connections of their own.  A reply is one chunk; whoever
// wants more asks again, so that memory stays bounded on both sides.
//   request: u64 round, u64 bytes wanted, length-prefixed request
//   reply:   u8 1 + the bytes, or u8 0 + a Status
// Test: tests/unit/comm/exchange_test.cc
#ifndef CKPT_COMM_EXCHANGE_H_
#define CKPT_COMM_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/auth.h"
#include "comm/socket.h"
#include "util/status.h"
#include "util/sync.h"

namespace ckpt {

// Answers peers on the thread `ckpt-xchg`, which exists only while a round is served.  Connections
// and requests that come earlier wait in the kernel.  Thread-safe.
class ExchangeServer {
 public:
  using Provider = std::function<Status(std::string_view request, std::string* reply)>;

  ExchangeServer(Fd listening, Credentials credentials, int32_t own_rank);
  ~ExchangeServer();

  void Start(uint64_t round, Provider provider);
  // Returns once no provider call is running.  Not from within a provider.
  void Stop(uint64_t round);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Asks peers on the callers' own threads; keeps idle connections.  Thread-safe.
class ExchangeClient {
 public:
  ExchangeClient(std::vector<Endpoint> peers, Credentials credentials, int32_t own_rank,
                 Millis stall_timeout);

  // Fills `reply` with exactly `bytes` bytes.  `closed`: whether the round is over, asked at least
  // every 100 ms.
  Status Ask(uint64_t round, int32_t peer, std::string_view request, char* reply, size_t bytes,
             const std::function<bool()>& closed) CKPT_EXCLUDES(mu_);

 private:
  Result<Fd> Open(int32_t peer, const Patience& patience);
  Fd TakeIdle(int32_t peer) CKPT_EXCLUDES(mu_);
  // The peer's own error in *answer; the result is that of the transport.  *touched: bytes came.
  static Status Converse(int fd, std::string_view frame, char* reply, size_t bytes,
                         const Patience& patience, Status* answer, bool* touched);

  const std::vector<Endpoint> peers_;
  const Credentials credentials_;
  const int32_t own_rank_;
  const Millis stall_timeout_;
  Mutex mu_;
  std::vector<std::vector<Fd>> idle_ CKPT_GUARDED_BY(mu_);
};

}  // namespace ckpt

#endif  // CKPT_COMM_EXCHANGE_H_
