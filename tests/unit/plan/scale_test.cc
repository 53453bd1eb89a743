// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans for many shards and ranks.  Bounds are generous: they catch a wrong order of growth, not a
// slow machine; the times are printed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <functional>

#include "unit/plan/oracle.h"

namespace ckpt {
namespace {

double Seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

enum class Split { kFlat, kBoxes };

// `pieces` ranks, each with one piece of every tensor.
std::vector<RankState> ManyPieces(size_t tensors, int64_t pieces, Split split) {
  std::vector<RankState> ranks(static_cast<size_t>(pieces));
  for (size_t i = 0; i < tensors; ++i) {
    const TensorDesc t =
        *MakeTensor("model", "layer." + std::to_string(i), kF32, {1024, pieces * 16});
    for (int64_t p = 0; p < pieces; ++p) {
      RankState& r = ranks[static_cast<size_t>(p)];
      r.tensors.push_back(t);
      const int64_t side = 32, rows = 1024 / side, columns = pieces * 16 / (pieces / side);
      r.shards.push_back({static_cast<uint32_t>(i),
                          split == Split::kFlat ? *MakeFlat(t, p * 16 * 1024, 16 * 1024)
                                                : *MakeBox(t, {p % side * rows, p / side * columns},
                                                           {rows, columns})});
    }
  }
  return ranks;
}

double MergeSeconds(size_t tensors, int64_t pieces, Split split) {
  const auto ranks = ManyPieces(tensors, pieces, split);
  const double s = Seconds([&] { EXPECT_TRUE(MergeStates(ranks).ok()); });
  std::printf("merge of %zu tensors x %d %s pieces: %.3f s\n", tensors, static_cast<int>(pieces),
              split == Split::kFlat ? "flat" : "box", s);
  return s;
}

TEST(Scale, L01_AMillionPiecesMergeInSecondsAndGrowthIsNearLinear) {
  EXPECT_LT(MergeSeconds(1024, 1024, Split::kFlat), 20);
  EXPECT_LT(MergeSeconds(256, 1024, Split::kBoxes), 20);
  const double once = MergeSeconds(4, 16384, Split::kBoxes);
  const double twice = MergeSeconds(4, 32768, Split::kBoxes);
  EXPECT_LT(twice, 6 * once + 0.5) << "doubling the pieces must not quadruple the time";
}

TEST(Scale, L01_AWholeTensorAmongManyBoxesIsFoundAtOnce) {
  auto ranks = ManyPieces(1, 65536, Split::kBoxes);
  ranks[5].shards[0].geometry = MakeWhole(ranks[5].tensors[0]);
  const double s = Seconds([&] { EXPECT_EQ(MergeStates(ranks).status().code(), Code::kCoverage); });
  std::printf("overlap among 65536 boxes: %.3f s\n", s);
  EXPECT_LT(s, 10);
}

TEST(Scale, AHundredThousandRanksGetAPlan) {
  const int n = 100000;
  testing::World w(n);
  const size_t flat = w.Add("flat", kF32, {int64_t{n} * 1024}),
               all = w.Add("all", kBF16, {1 << 20}), box = w.Add("box", kF32, {128, 500});
  for (int r = 0; r < n; ++r) {
    w.Flat(r, flat, int64_t{r} * 1024, 1024);
    if (r < 500) w.Box(r, box, {0, r}, {128, 1});
  }
  w.WholeOnAll(all);
  w.File("model", 4096, {flat, all});
  w.File("more", 4096, {box});
  SavePlan plan;
  const double s = Seconds([&] { plan = testing::PlanOf(w, {}); });
  uint64_t bytes = 0;
  for (uint64_t b : testing::OwnedBytes(plan)) bytes += b;
  std::printf("plan for %d ranks: %.3f s, %zu extents\n", n, s, testing::ExtentCount(plan));
  EXPECT_EQ(bytes, w.files[0].bytes + w.files[1].bytes);
  EXPECT_LT(s, 60);
}

}  // namespace
}  // namespace ckpt
