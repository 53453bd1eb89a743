// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Where chunks end.
#include "plan/cut.h"

#include <gtest/gtest.h>

namespace ckpt {
namespace {

std::string Text(const std::vector<Chunk>& chunks) {
  std::string out;
  for (const Chunk& c : chunks) {
    out +=
        std::to_string(c.begin) + "-" + std::to_string(c.end) + ":" + std::to_string(c.owner) + " ";
  }
  return out;
}

TEST(AlignChunks, BoundariesGoToTheNearestMultipleAndEmptyChunksVanish) {
  EXPECT_EQ(Text(AlignChunks({{0, 90, 0}, {90, 130, 1}, {130, 300, 2}}, 64)),
            "0-64:0 64-128:1 128-300:2 ");
  EXPECT_EQ(Text(AlignChunks({{0, 70, 0}, {70, 80, 1}, {80, 300, 0}}, 64)), "0-300:0 ");
  EXPECT_EQ(Text(AlignChunks({{0, 290, 0}, {290, 300, 1}}, 64)), "0-300:0 ");
  EXPECT_EQ(Text(AlignChunks({{0, 10, 0}, {10, 20, 1}}, 64)), "0-20:1 ");
  EXPECT_EQ(Text(AlignChunks({}, 64)), "");
}

TEST(CutByQuota, RanksFollowEachOtherAcrossFilesAndCutsAreAligned) {
  RankSets sets;
  const uint32_t set = sets.Intern({3, 5});
  const auto files =
      CutByQuota({{{0, 1000, set}}, {{0, 1000, set}}}, sets, {{1300, 700}}, {64, 1, 0});
  EXPECT_EQ(Text(files[0]), "0-1000:3 ");
  EXPECT_EQ(Text(files[1]), "0-320:3 320-1000:5 ");
}

TEST(CutByQuota, ACutNearTheEndOfASegmentMovesThere) {
  RankSets sets;
  const uint32_t set = sets.Intern({0, 1});
  const uint64_t mib = 1 << 20;
  const auto files = CutByQuota({{{0, 64 * mib, set}}, {{0, 64 * mib, set}}}, sets,
                                {{64 * mib + 5000, 64 * mib - 5000}}, {4096, 256 * 1024, 0});
  EXPECT_EQ(files[0].size() + files[1].size(), 2u);
}

}  // namespace
}  // namespace ckpt
