// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Proof that both ends of a connection know the job's secret, before anything else is parsed:
//   client -> server  magic, purpose, nonce, tag of the job id
//   server -> client  incarnation, nonce, MAC of the secret alone, MAC
//   client -> server  rank, incarnation, MAC
// The tag says which of several contexts on one port is asked for.  The MAC of the secret alone
// tells another job from another token.  Each other MAC covers both nonces, the purpose, the job
// id, the incarnation, and the server's rank; the client's also its own rank.  Pure functions over
// bytes, apart from the random numbers. Test: tests/unit/comm/parts_test.cc
#ifndef CKPT_COMM_AUTH_H_
#define CKPT_COMM_AUTH_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "util/status.h"
#include "util/wire.h"

namespace ckpt {

constexpr size_t kSecretBytes = 32;
constexpr uint64_t kMaxHandshakeFrame = 256;  // no handshake message is as long

enum class Purpose : uint8_t { kControl = 1, kExchange = 2 };

// What the members of one context share.
struct Credentials {
  std::string secret;        // kSecretBytes
  std::string job_id;        // with context name and number
  uint64_t incarnation = 0;  // of this init: tells peers of an earlier one apart
};

// INTERNAL if the library refuses to start.  Call before any other of these.
Status StartAuth();
std::string RandomSecret();
uint64_t RandomNumber();
std::string SecretFromToken(std::string_view token);
// 32 hexadecimal digits; not reversible to the job id.
std::string HashName(std::string_view job_id);

// The tag of a greeting; empty if it is none.
std::string TagOfGreeting(std::string_view frame);

// One connection's server side.  One thread at a time.
class ServerHandshake {
 public:
  ServerHandshake(Credentials credentials, int32_t own_rank, Purpose purpose)
      : credentials_(std::move(credentials)), own_rank_(own_rank), purpose_(purpose) {}

  // Takes the next frame; `reply` is to be sent if not empty.  An error: drop the connection.
  Status Take(std::string_view frame, Bytes* reply);
  bool done() const { return done_; }
  // The peer's rank.  REQUIRES: done().
  int32_t rank() const { return rank_; }

 private:
  const Credentials credentials_;
  const int32_t own_rank_;
  const Purpose purpose_;
  std::string client_nonce_, server_nonce_;
  bool done_ = false;
  int32_t rank_ = -1;
};

class ClientHandshake {
 public:
  // `credentials.incarnation` 0: taken from the server (a control connection over CKPT_PORT).
  ClientHandshake(Credentials credentials, int32_t own_rank, int32_t server_rank, Purpose purpose);

  Bytes Hello() const;
  // The answer to the server's message, or an error if the server does not know the secret.
  Result<Bytes> Answer(std::string_view challenge);
  uint64_t incarnation() const { return credentials_.incarnation; }

 private:
  Credentials credentials_;
  const int32_t own_rank_, server_rank_;
  const Purpose purpose_;
  const std::string nonce_;
};

}  // namespace ckpt

#endif  // CKPT_COMM_AUTH_H_
