// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The loops around system calls, with calls that are interrupted and that do less than asked.
#include "io/posix.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <vector>

namespace ckpt {
namespace {

// A call that returns these in turn: a count, or -errno.
struct Script {
  std::deque<int> results;
  std::vector<uint64_t> asked = {};
  ssize_t operator()(uint64_t done) {
    asked.push_back(done);
    const int result = results.front();
    results.pop_front();
    if (result >= 0) return result;
    errno = -result;
    return -1;
  }
};

Moved Move(uint64_t n, Script& script) {
  return MoveAll(n, [&](uint64_t done) { return script(done); });
}

TEST(MoveAll, ContinuesAfterShortCountsWhereTheyEnded) {
  Script script{{3, 1, 6}};
  const Moved moved = Move(10, script);
  EXPECT_EQ(moved.bytes, 10u);
  EXPECT_EQ(moved.error, 0);
  EXPECT_EQ(script.asked, (std::vector<uint64_t>{0, 3, 4}));
}

TEST(MoveAll, RepeatsInterruptedCalls) {
  Script script{{-EINTR, 4, -EINTR, -EINTR, 6}};
  EXPECT_EQ(Move(10, script).bytes, 10u);
  EXPECT_TRUE(script.results.empty());
}

TEST(MoveAll, StopsAtTheFirstErrorAndSaysHowFarItCame) {
  Script script{{4, -ENOSPC, 6}};
  const Moved moved = Move(10, script);
  EXPECT_EQ(moved.bytes, 4u);
  EXPECT_EQ(moved.error, ENOSPC);
}

TEST(MoveAll, StopsWhereTheSourceEnds) {
  Script script{{4, 0}};
  const Moved moved = Move(10, script);
  EXPECT_EQ(moved.bytes, 4u);
  EXPECT_EQ(moved.error, 0);
}

TEST(MoveAll, OfNothingCallsNothing) {
  Script script{{}};
  EXPECT_EQ(Move(0, script).bytes, 0u);
  EXPECT_TRUE(script.asked.empty());
}

TEST(IoStatus, TellsAbsentPresentAndFullApart) {
  EXPECT_EQ(IoStatus(ENOENT, "open", "/x").code(), Code::kNotFound);
  EXPECT_EQ(IoStatus(EEXIST, "open", "/x").code(), Code::kExists);
  EXPECT_EQ(IoStatus(ENOTEMPTY, "rename", "/x").code(), Code::kExists);
  EXPECT_EQ(IoStatus(ENOSPC, "write", "/x").code(), Code::kNoSpace);
  EXPECT_EQ(IoStatus(EDQUOT, "write", "/x").code(), Code::kNoSpace);
  EXPECT_EQ(IoStatus(EIO, "write", "/x").code(), Code::kIo);
}

TEST(IoStatus, NamesOperationPathAndErrno) {
  const Status status = IoStatus(EIO, "write", "/data/x");
  EXPECT_EQ(status.message().rfind("write /data/x: ", 0), 0u) << status.message();
  EXPECT_EQ(status.cause().sys_errno, EIO);
  EXPECT_EQ(status.cause().path, "/data/x");
}

TEST(CheckComponent, RefusesWhateverCouldLeaveTheFolder) {
  using std::string_literals::operator""s;
  for (const auto& name : {""s, "."s, ".."s, "a/b"s, "/"s, "/etc"s, "../x"s, "a\0b"s}) {
    EXPECT_EQ(CheckComponent(name, "/d").code(), Code::kInvalidArgument) << name;
  }
  for (const auto& name : {"a"s, "..."s, ".x"s, "a b"s, "\xff"s}) {
    EXPECT_TRUE(CheckComponent(name, "/d").ok()) << name;
  }
}

TEST(Fd, ClosesOnceAndMoves) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const Fd reader(pipe_ends[0]);
  {
    Fd writer(pipe_ends[1]);
    const Fd moved = std::move(writer);
    EXPECT_TRUE(moved.valid());
  }
  EXPECT_EQ(::fcntl(pipe_ends[1], F_GETFD), -1);
  char byte;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace ckpt
