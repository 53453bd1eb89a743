// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The wire encoding: round trips, and readers that never leave their input.
#include "util/wire.h"

#include <gtest/gtest.h>

namespace ckpt {
namespace {

Bytes Sample() {
  WireWriter w;
  w.U8(7);
  w.U32(0xdeadbeef);
  w.U64(~uint64_t{0});
  w.I32(-5);
  w.I64(-6);
  w.Str(std::string_view("a\0b", 3));
  w.I64s({1, -2, 3});
  return w.Take();
}

TEST(Wire, EveryKindOfValueComesBack) {
  const Bytes bytes = Sample();
  WireReader r(bytes);
  EXPECT_EQ(r.U8(), 7);
  EXPECT_EQ(r.U32(), 0xdeadbeef);
  EXPECT_EQ(r.U64(), ~uint64_t{0});
  EXPECT_EQ(r.I32(), -5);
  EXPECT_EQ(r.I64(), -6);
  EXPECT_EQ(r.Str(), std::string("a\0b", 3));
  EXPECT_EQ(r.I64s(), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_TRUE(r.AtEnd());
}

TEST(Wire, AfterTheFirstMissingValueAllReadsAreEmpty) {
  const Bytes bytes = Sample();
  for (size_t n = 0; n < bytes.size(); ++n) {
    WireReader r(std::string_view(bytes).substr(0, n));
    r.U8();
    r.U32();
    r.U64();
    r.I32();
    r.I64();
    r.Str();
    r.I64s();
    ASSERT_FALSE(r.ok()) << n;
    ASSERT_EQ(r.U64(), 0u);
    ASSERT_TRUE(r.Str().empty());
  }
}

TEST(Wire, HostileCountsDriveNoAllocation) {
  WireWriter w;
  w.U64(uint64_t{1} << 61);
  for (int kind = 0; kind < 3; ++kind) {
    WireReader r(w.bytes());
    if (kind == 0) {
      EXPECT_TRUE(r.Str().empty());
    }
    if (kind == 1) {
      EXPECT_TRUE(r.I64s().empty());
    }
    if (kind == 2) {
      EXPECT_EQ(r.Count(8), 0u);
    }
    EXPECT_FALSE(r.ok());
  }
}

TEST(Wire, AStatusArrivesWithCauseAndReports) {
  Cause cause{2, 5, "/path", "tensor", "dtype"};
  RankReport report;
  report.rank = 3;
  report.condition = Condition::kDead;
  report.heartbeat_age_ns = 9;
  report.phase_step = 4;
  report.host = "h";
  report.last_call = "ckpt_load";
  const Status sent = Status(Code::kMismatch, "words", cause).WithRanks({report});
  WireWriter w;
  PutStatus(w, sent);
  PutStatus(w, Status());
  WireReader r(w.bytes());
  const Status got = GetStatus(r);
  EXPECT_TRUE(GetStatus(r).ok());
  EXPECT_TRUE(r.AtEnd());
  EXPECT_EQ(got.code(), Code::kMismatch);
  EXPECT_EQ(got.message(), "words");
  EXPECT_EQ(got.cause().rank, 2);
  EXPECT_EQ(got.cause().sys_errno, 5);
  EXPECT_EQ(got.cause().path, "/path");
  EXPECT_EQ(got.cause().name, "tensor");
  EXPECT_EQ(got.cause().field, "dtype");
  ASSERT_EQ(got.ranks().size(), 1u);
  EXPECT_EQ(got.ranks()[0].rank, 3);
  EXPECT_EQ(got.ranks()[0].condition, Condition::kDead);
  EXPECT_EQ(got.ranks()[0].last_call, "ckpt_load");
}

}  // namespace
}  // namespace ckpt
