// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Status and Result: what they carry, and that copies do not change each other.
#include "util/status.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace ckpt {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Status(Code::kInvalidArgument, "odd");
  return n / 2;
}
Result<int> Quarter(int n) {
  CKPT_ASSIGN_OR_RETURN(const int half, Half(n));
  return Half(half);
}
Status IsEven(int n) {
  CKPT_RETURN_IF_ERROR(Half(n).status());
  return Status();
}

TEST(Status, OkHasNoWords) {
  const Status s;
  EXPECT_TRUE(s.ok());
  EXPECT_EQ(s.code(), Code::kOk);
  EXPECT_TRUE(s.message().empty());
  EXPECT_EQ(s.cause().rank, -1);
  EXPECT_TRUE(Status(Code::kOk, "ignored").ok());
}

TEST(Status, WithRankNamesTheFirstRankOnlyAndLeavesTheOriginalAlone) {
  const Status s(Code::kIo, "write failed");
  const Status named = s.WithRank(3);
  EXPECT_EQ(s.cause().rank, -1);
  EXPECT_EQ(named.cause().rank, 3);
  EXPECT_EQ(named.WithRank(5).cause().rank, 3);
  EXPECT_TRUE(Status().WithRank(1).ok());
}

TEST(Status, WithMessageAndWithRanksKeepTheRest) {
  Cause cause;
  cause.path = "/x";
  const Status s = Status(Code::kCorrupt, "a", cause).WithRanks({RankReport{}}).WithMessage("b");
  EXPECT_EQ(s.message(), "b");
  EXPECT_EQ(s.cause().path, "/x");
  EXPECT_EQ(s.ranks().size(), 1u);
}

TEST(Status, ErrnoChoosesTheCodeAndIsKept) {
  EXPECT_EQ(ErrnoStatus(ENOSPC, "write", "/f").code(), Code::kNoSpace);
  EXPECT_EQ(ErrnoStatus(EDQUOT, "write", "/f").code(), Code::kNoSpace);
  EXPECT_EQ(ErrnoStatus(ENOMEM, "read", "/f").code(), Code::kNoMemory);
  const Status s = ErrnoStatus(EIO, "pwrite", "/f");
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_EQ(s.cause().sys_errno, EIO);
  EXPECT_EQ(s.cause().path, "/f");
  EXPECT_NE(s.message().find("pwrite /f: "), std::string::npos);
  EXPECT_NE(s.message().find("EIO"), std::string::npos);
}

TEST(Status, EveryCodeHasItsAbiName) {
  EXPECT_EQ(CodeName(Code::kOutcomeUnknown), "OUTCOME_UNKNOWN");
  EXPECT_EQ(CodeName(static_cast<Code>(-99)), "UNKNOWN");
}

TEST(Result, IsAValueOrAStatusAndTheMacrosReturnEarly) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
  EXPECT_FALSE(Quarter(3).ok());
  EXPECT_TRUE(IsEven(2).ok());
  EXPECT_EQ(IsEven(1).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ckpt
