// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of the case list that are about planning a save, each judged by the oracle as well.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "unit/plan/oracle.h"

namespace ckpt {
namespace {

using testing::Judge;
using testing::OwnedBytes;
using testing::PlanOf;
using testing::World;

double MaxOverMean(const std::vector<uint64_t>& bytes) {
  const double sum = static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}));
  const double most = static_cast<double>(*std::max_element(bytes.begin(), bytes.end()));
  return most * static_cast<double>(bytes.size()) / sum;
}

uint64_t ExchangedBytes(const SavePlan& plan) {
  uint64_t bytes = 0;
  for (size_t r = 0; r < plan.ranks.size(); ++r) {
    for (const PlanExtent& e : plan.ranks[r].extents) {
      for (const PlanPart& p : e.parts) {
        const PlacedTensor& t = plan.ranks[r].tensors[p.tensor];
        if (p.source_rank == static_cast<int32_t>(r)) continue;
        bytes +=
            BytesWithin(t.desc, p.geometry, {p.range.begin - t.offset, p.range.end - t.offset});
      }
    }
  }
  return bytes;
}

TEST(SavePlan, G09_ReplicatedAndShardedTensorsOfEightRanksArePlannedOnce) {
  World w(8);
  const size_t scalar = w.Add("scalar", kF32, {1}), bias = w.Add("bias", kF32, {1152}),
               sharded = w.Add("w", kF32, {16, 4});
  w.WholeOnAll(scalar);
  w.WholeOnAll(bias);
  w.Slices(sharded, 0, std::vector<int64_t>(8, 2));
  w.File("model", 4096, {bias, scalar, sharded});
  Judge(w, PlanOf(w, {}), {});
}

TEST(SavePlan, G10_EmptyTensorsEmptyFilesAndHeadersAloneArePlanned) {
  World w(2);
  const size_t a = w.Add("a", kF32, {0}), b = w.Add("b", kF32, {2, 0}),
               c = w.Add("c", kF32, {0, 3}), side = w.Add("empty.json", kU8, {0}, "");
  w.Give(0, a, {});
  w.Know(1, b);
  w.Know(1, c);
  w.Give(1, side, {});
  w.File("model", 4096, {a, b, c});
  w.File("none", 4096, {});
  w.File("empty.json", 0, {side});
  const SavePlan plan = PlanOf(w, {});
  Judge(w, plan, {});
  EXPECT_EQ(testing::ExtentCount(plan), 2u);
  EXPECT_TRUE(plan.ranks[0].extents[0].parts.empty());
}

TEST(SavePlan, G12_UnevenSplitsGiveTheSameFiles) {
  const SavePlanOptions options{16, 8, 0};
  for (const auto& rows : {Dims{2, 1, 1, 1}, Dims{0, 0, 4, 1}, Dims{1, 3, 1, 0}}) {
    World w(4);
    const size_t t = w.Add("w", kF32, {5, 10});
    w.Slices(t, 0, rows);
    w.File("model", 64, {t});
    Judge(w, PlanOf(w, options), options);
  }
  World w(4);
  const size_t t = w.Add("w", kF32, {5, 10});
  w.Slices(t, 1, {3, 3, 3, 1});
  w.File("model", 64, {t});
  Judge(w, PlanOf(w, options), options);
}

TEST(SavePlan, G20_OneRankThatHoldsAllIsEnough) {
  World w(2);
  const size_t t = w.Add("w", kF32, {64, 128});
  w.Give(0, t, {});
  w.Whole(1, t);
  w.File("model", 4096, {t});
  const SavePlan plan = PlanOf(w, {});
  Judge(w, plan, {});
  EXPECT_EQ(OwnedBytes(plan), (std::vector<uint64_t>{4096, 64 * 128 * 4}));
}

TEST(SavePlan, I04_PairsThatReplicateCrosswiseAllWriteAndAllIsWritten) {
  World w(4);
  const size_t n = 1 << 18;
  const size_t dense = w.Add("dense", kU8, {2, n}), expert = w.Add("expert", kU8, {2, n});
  for (const auto& [rank, half] : {std::pair(0, 0), {1, 0}, {2, 1}, {3, 1}}) {
    w.Box(rank, dense, {half, 0}, {1, n});
  }
  for (const auto& [rank, half] : {std::pair(0, 0), {2, 0}, {1, 1}, {3, 1}}) {
    w.Box(rank, expert, {half, 0}, {1, n});
  }
  w.File("model", 4096, {dense, expert});
  const SavePlanOptions options{4096, 4096, 0};
  const SavePlan plan = PlanOf(w, options);
  Judge(w, plan, options);
  EXPECT_LT(MaxOverMean(OwnedBytes(plan)), 1.02);
  EXPECT_LT(ExchangedBytes(plan), 4 * 4096u) << "only blocks at cuts travel";
}

TEST(SavePlan, L04_ReplicatedTensorsAreSpreadWithinOnePercentInFewExtents) {
  World w(4);
  std::vector<size_t> all;
  for (int i = 0; i < 64; ++i) {
    all.push_back(w.Add("t" + std::to_string(100 + i), kF32, {1 << 20}));
    w.WholeOnAll(all.back());
  }
  w.File("model", 8192, all);
  const SavePlan plan = PlanOf(w, {});
  EXPECT_LT(MaxOverMean(OwnedBytes(plan)), 1.01);
  EXPECT_LE(testing::ExtentCount(plan), 5u);
  EXPECT_EQ(ExchangedBytes(plan), 0u);
}

TEST(SavePlan, L04_SmallTensorsInSeveralFilesAreSpreadToo) {
  World w(4);
  for (int f = 0; f < 5; ++f) {
    std::vector<size_t> all;
    for (int i = 0; i < 600; ++i) {
      all.push_back(w.Add("t" + std::to_string(1000 * f + i), kBF16, {100, 257}));
      w.WholeOnAll(all.back());
    }
    w.File("model" + std::to_string(f), 4096 * 10, all);
  }
  const SavePlan plan = PlanOf(w, {});
  EXPECT_LT(MaxOverMean(OwnedBytes(plan)), 1.01);
  EXPECT_LE(testing::ExtentCount(plan), 13u);
}

TEST(SavePlan, L08_EachByteOfAThousandPiecesIsWrittenOnce) {
  World w(4);
  const size_t t = w.Add("w", kF32, {1 << 24});
  const int64_t piece = (1 << 24) / 1000 + 1;
  for (int64_t at = 0, i = 0; at < 1 << 24; at += piece, ++i) {
    w.Flat(static_cast<int>(i % 4), t, at, std::min<int64_t>(piece, (1 << 24) - at));
  }
  w.File("model", 4096, {t});
  const SavePlan plan = PlanOf(w, {});
  const auto owned = OwnedBytes(plan);
  EXPECT_EQ(std::accumulate(owned.begin(), owned.end(), uint64_t{0}), 4096 + (uint64_t{64} << 20));
  EXPECT_LT(MaxOverMean(owned), 1.01);
}

TEST(SavePlan, ZeroOneFlatShardsAreWrittenByTheirHoldersAlone) {
  World w(4);
  const size_t t = w.Add("m", kF32, {1 << 20});
  for (int r = 0; r < 4; ++r) w.Flat(r, t, int64_t{r} << 18, 1 << 18);
  w.File("optim", 4096, {t});
  const SavePlan plan = PlanOf(w, {});
  EXPECT_EQ(ExchangedBytes(plan), 0u);
  for (int r = 0; r < 4; ++r) EXPECT_EQ(plan.ranks[static_cast<size_t>(r)].extents.size(), 1u);
}

}  // namespace
}  // namespace ckpt
