// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// launch::Run, where googletest's assertions inside a rank count. Covered by launch_test.cc.
#include <gtest/gtest.h>

#include "launch/launch.h"

namespace launch {
namespace {

int FailedParts() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  if (!test) return 0;
  int failed = 0;
  for (int i = 0; i < test->result()->total_part_count(); ++i)
    failed += test->result()->GetTestPartResult(i).failed();
  return failed;
}

}  // namespace

Result Run(const Options& options, const std::function<void(Rank&)>& body) {
  return Launch(options, [&](Rank& rank) {
    const int before = FailedParts();
    body(rank);
    return FailedParts() > before ? 1 : 0;
  });
}

}  // namespace launch
