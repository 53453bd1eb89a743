// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank that is nothing but a proven socket, so that a test can let it die, lie or keep silent.
#ifndef CKPT_TESTS_UNIT_COMM_RAW_RANK_H_
#define CKPT_TESTS_UNIT_COMM_RAW_RANK_H_

#include <string>

#include "comm/bootstrap.h"
#include "comm/message.h"
#include "unit/comm/world.h"

namespace ckpt::testing {

class RawRank {
 public:
  RawRank(int32_t rank, int32_t size, const std::string& job) {
    const auto id = *Options(rank, size, job).identity;
    auto seat = TakeSeat(id, job, Clock::now() + Millis(20000), {});
    EXPECT_TRUE(seat.ok()) << seat.status().message();
    if (!seat.ok()) return;
    seat_ = std::move(*seat);
    HelloMsg hello;
    hello.rank = rank;
    hello.size = size;
    hello.host = "raw";
    hello.library_build = "test";
    hello.remaining_ms = 20000;
    Send(Encode(hello));
  }
  void Send(const Bytes& frame) {
    EXPECT_TRUE(SendFrame(seat_.control.get(), frame, patience_).ok());
  }
  // The next message of this kind; others are skipped.
  template <typename M>
  M Next() {
    for (;;) {
      auto frame = ReceiveFrame(seat_.control.get(), 1 << 20, patience_);
      M out;
      EXPECT_TRUE(frame.ok()) << frame.status().message();
      if (!frame.ok() || Decode(*frame, &out)) return out;
    }
  }
  void Die() { seat_.control = Fd(); }

 private:
  const Patience patience_{Millis(20000), {}};
  Seat seat_;
};

}  // namespace ckpt::testing

#endif  // CKPT_TESTS_UNIT_COMM_RAW_RANK_H_
