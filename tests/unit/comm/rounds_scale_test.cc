// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Thousands of ranks against the real state machine: what people read fits a terminal, and a round
// that succeeds costs every rank the same few bytes whatever their number.
#include <gtest/gtest.h>

#include "comm/message.h"
#include "comm/rounds.h"
#include "comm/rounds_world.h"

namespace ckpt {
namespace {

TEST(RoundsScale, TheWordsOfALateRoundFitATerminalForAnyNumberOfRanks) {
  for (const int32_t size : {4, 4096}) {
    World w(size);
    w.Call({0}, Save(100));
    for (int32_t r = size / 2; r < size; ++r) w.muted.insert(r);
    w.Wait(Millis(1600));
    const auto late = w.Take(Outgoing::Kind::kLate);  // at half of the 3 s deadline
    ASSERT_EQ(late.size(), 1u);
    EXPECT_LT(late[0].text.size(), 100u) << late[0].text;
    w.Wait(Millis(3000));
    const Status s = w.Result(0);
    EXPECT_EQ(s.code(), Code::kParticipants);
    EXPECT_EQ(s.ranks().size(), static_cast<size_t>(size - 1)) << "the reports are complete";
    EXPECT_LT(s.message().size(), 1000u) << s.message();
    if (size == 4) continue;
    EXPECT_NE(s.message().find("ranks 2051-4095: unresponsive"), std::string::npos) << s.message();
    EXPECT_NE(s.message().find("ranks 4-2047: alive elsewhere"), std::string::npos) << s.message();
  }
}

TEST(RoundsScale, ScatteredRanksAreCutOffWithACount) {
  World w(4096);
  std::vector<int32_t> even;
  for (int32_t r = 0; r < 4096; r += 2) even.push_back(r);
  w.Call(even, Save(100));
  w.Wait(Millis(4000));
  const Status s = w.Same(even);
  EXPECT_EQ(s.code(), Code::kParticipants);
  EXPECT_EQ(s.ranks().size(), 2048u);
  EXPECT_LT(s.message().size(), 1000u) << s.message();
  EXPECT_NE(s.message().find("12, 14 and 2040 more"), std::string::npos) << s.message();
}

struct Traffic {
  size_t messages = 0, bytes = 0;
  void Add(const Bytes& frame) {
    ++messages;
    bytes += 4 + frame.size();  // with the frame's length
  }
};

// A whole gate, as the frames that would cross the network, both ways.
Traffic Gate(int32_t size) {
  Traffic traffic;
  RoundsOptions o;
  o.size = size;
  Rounds rounds(o);
  const TimePoint now = TimePoint{} + Millis(1000);
  for (int32_t r = 0; r < size; ++r) {
    const ArriveMsg arrive{1, Save(100, {{"tag", "a"}, {"options", "0123456789abcdef"}}), Status()};
    traffic.Add(Encode(arrive));
    rounds.Arrive(now, r, arrive.call_id, arrive.call, arrive.local);
  }
  int32_t ok = 0;
  for (const Outgoing& out : rounds.TakeOutgoing()) {
    EXPECT_EQ(out.kind, Outgoing::Kind::kVerdict);
    ok += out.status.ok() ? 1 : 0;
    traffic.Add(Encode(VerdictMsg{out.call_id, out.round, out.status}));
  }
  EXPECT_EQ(ok, size);
  return traffic;
}

TEST(RoundsScale, AGateCostsEveryRankTheSameFewBytes) {
  for (const int32_t size : {8, 256, 4096}) {
    const Traffic t = Gate(size);
    const auto n = static_cast<size_t>(size);
    EXPECT_EQ(t.messages, 2 * n);
    EXPECT_LE(t.bytes, 256 * n);
    EXPECT_EQ(t.bytes / n, Gate(8).bytes / 8) << "linear in the number of ranks";
    RecordProperty("bytes_per_rank", static_cast<int>(t.bytes / n));
  }
}

}  // namespace
}  // namespace ckpt
