// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Who has come to init, and whether they agree.  Pure; one thread at a time.
// Test: tests/unit/comm/parts_test.cc
#ifndef CKPT_COMM_JOIN_H_
#define CKPT_COMM_JOIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/message.h"

namespace ckpt {

class Join {
 public:
  explicit Join(int32_t size) : hellos_(static_cast<size_t>(size)) {}

  // `address`: from where it came.  An error concerns this process alone: a rank that is taken
  // (INVALID_ARGUMENT) or out of range (MISMATCH).
  Status Add(int32_t rank, HelloMsg hello, std::string address);
  bool complete() const { return joined_ == hellos_.size(); }
  // OK, or MISMATCH on the first thing in which those that came differ: key, values, ranks.
  Status Agreement() const;
  // PARTICIPANTS naming who has not come.
  Status Missing(Millis waited) const;
  // PARTICIPANTS naming a rank that came and went.
  Status Lost(int32_t rank) const;
  // Where each rank's exchange listens.  REQUIRES: complete().
  std::vector<Endpoint> Endpoints() const;

 private:
  struct Member {
    HelloMsg hello;
    std::string address;
  };
  std::vector<std::optional<Member>> hellos_;
  size_t joined_ = 0;
};

}  // namespace ckpt

#endif  // CKPT_COMM_JOIN_H_
