// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums and products that do not fit, and rounding.
#include "util/checked.h"

#include <gtest/gtest.h>

namespace ckpt {
namespace {

constexpr uint64_t kMax = ~uint64_t{0};

TEST(Checked, WhatDoesNotFitIsNothing) {
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedMul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1), kMax - (uint64_t{1} << 32) + 1);
  EXPECT_EQ(CheckedMul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
}

TEST(Checked, RoundingKeepsMultiples) {
  EXPECT_EQ(RoundDown(4096, 4096), 4096u);
  EXPECT_EQ(RoundDown(4095, 4096), 0u);
  EXPECT_EQ(RoundUp(4096, 4096), 4096u);
  EXPECT_EQ(RoundUp(4097, 4096), 8192u);
  EXPECT_EQ(RoundUp(0, 7), 0u);
}

}  // namespace
}  // namespace ckpt
