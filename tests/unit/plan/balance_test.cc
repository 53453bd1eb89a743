// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Water filling on sets that do and do not overlap.
#include "plan/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace ckpt {
namespace {

using Ranks = std::vector<int32_t>;

std::vector<uint64_t> Loads(const std::vector<Ranks>& groups, const std::vector<uint64_t>& bytes,
                            size_t world, uint64_t min_run = 1) {
  RankSets sets;
  for (const Ranks& g : groups) sets.Intern(g);
  const Quotas quotas = Balance(sets, bytes, world, min_run);
  std::vector<uint64_t> load(world, 0);
  for (uint32_t s = 0; s < sets.size(); ++s) {
    EXPECT_EQ(std::accumulate(quotas[s].begin(), quotas[s].end(), uint64_t{0}), bytes[s]);
    for (size_t i = 0; i < quotas[s].size(); ++i) {
      load[static_cast<size_t>(sets[s][i])] += quotas[s][i];
    }
  }
  return load;
}

TEST(Balance, ReplicatedBytesFillUpTheRanksThatHaveLess) {
  EXPECT_EQ(Loads({{0}, {1}, {0, 1, 2}}, {30, 10, 50}, 3), (std::vector<uint64_t>{30, 30, 30}));
  EXPECT_EQ(Loads({{0}, {0, 1, 2}}, {100, 40}, 3), (std::vector<uint64_t>{100, 20, 20}));
}

TEST(Balance, OverlappingSetsReachACommonLevel) {
  for (const uint64_t load : Loads({{0, 1}, {1, 2}}, {30000, 30000}, 3)) {
    EXPECT_NEAR(static_cast<double>(load), 20000, 200);
  }
}

TEST(Balance, ASetWithLittleToWriteUsesFewRanks) {
  const auto load = Loads({{0, 1, 2, 3}}, {1000}, 4, 400);
  EXPECT_EQ(std::count(load.begin(), load.end(), uint64_t{500}), 2);
  EXPECT_EQ(Loads({{0, 1, 2, 3}}, {300}, 4, 400), (std::vector<uint64_t>{300, 0, 0, 0}));
}

}  // namespace
}  // namespace ckpt
