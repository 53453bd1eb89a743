// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Lines for the host come on its own thread, in order, bounded.
#include "util/log.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ckpt {
namespace {

class LogTest : public ::testing::Test {
 protected:
  LogTest() { unsetenv("CKPT_LOG"); }
  std::vector<std::string> lines_;
  Log::Sink sink_ = [this](LogLevel level, const char* component, const char* message) {
    lines_.push_back(std::to_string(static_cast<int>(level)) + component + ":" + message);
  };
};

TEST_F(LogTest, NothingReachesTheSinkBeforeDrainAndThenInOrder) {
  Log log(sink_, LogLevel::kInfo);
  log.Write(LogLevel::kWarn, "io", "one");
  log.Write(LogLevel::kInfo, "io", "two");
  log.Write(LogLevel::kDebug, "io", "above the level");
  EXPECT_TRUE(lines_.empty());
  log.Drain();
  EXPECT_EQ(lines_, (std::vector<std::string>{"2io:one", "3io:two"}));
  log.Drain();
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(LogTest, TheOldestLinesAreDroppedAndCounted) {
  Log log(sink_, LogLevel::kDebug);
  for (int i = 0; i < 1030; ++i) log.Write(LogLevel::kInfo, "x", std::to_string(i));
  log.Drain();
  ASSERT_EQ(lines_.size(), 1025u);
  EXPECT_EQ(lines_[0], "2log:6 older lines were dropped");
  EXPECT_EQ(lines_[1], "3x:6");
}

TEST_F(LogTest, WithoutSinkAndVariableItIsSilentAndWithTheVariableItWritesToStderr) {
  ::testing::internal::CaptureStderr();
  Log(nullptr, LogLevel::kDebug).Write(LogLevel::kError, "io", "silent");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  setenv("CKPT_LOG", "warn", 1);
  ::testing::internal::CaptureStderr();
  Log log(nullptr, LogLevel::kDebug);
  log.Write(LogLevel::kWarn, "io", "heard");
  log.Write(LogLevel::kInfo, "io", "not this");
  log.Drain();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "ckpt io: heard\n");
}

}  // namespace
}  // namespace ckpt
