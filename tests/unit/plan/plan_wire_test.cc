// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank's plan as bytes: damage is refused, never carried out.
#include <gtest/gtest.h>

#include "unit/plan/oracle.h"

namespace ckpt {
namespace {

using testing::World;

RankPlan Example() {
  World w(2);
  const size_t a = w.Add("a", kF32, {8, 6}), b = w.Add("b", kU8, {100}),
               side = w.Add("config.json", kU8, {9}, "");
  w.Slices(a, 1, {2, 4});
  w.Flat(0, b, 0, 30);
  w.Flat(1, b, 30, 70);
  w.Whole(0, side);
  w.File("model", 64, {a, b});
  w.File("config.json", 0, {side});
  return testing::PlanOf(w, {64, 1000, 0}).ranks[0];
}

TEST(PlanWire, APlanArrivesAsItWasSentSideFilesIncluded) {
  const RankPlan sent = Example();
  const auto got = DecodeRankPlan(EncodeRankPlan(sent));
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->tensors.size(), sent.tensors.size());
  EXPECT_EQ(got->extents.size(), sent.extents.size());
  EXPECT_EQ(EncodeRankPlan(*got), EncodeRankPlan(sent));
  EXPECT_TRUE(DecodeRankPlan(EncodeRankPlan({})).ok());
}

TEST(PlanWire, EveryTruncationAndEveryAppendedByteIsRefused) {
  const Bytes bytes = EncodeRankPlan(Example());
  for (size_t n = 0; n < bytes.size(); ++n) {
    ASSERT_EQ(DecodeRankPlan(bytes.substr(0, n)).status().code(), Code::kComm) << n;
  }
  EXPECT_EQ(DecodeRankPlan(bytes + "x").status().code(), Code::kComm);
}

TEST(PlanWire, RandomDamageIsRefusedOrStaysWithinExtentsAndTensors) {
  const Bytes good = EncodeRankPlan(Example());
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    std::mt19937_64 rng(seed);
    Bytes bytes = good;
    for (uint64_t i = 0; i <= rng() % 3; ++i)
      bytes[rng() % bytes.size()] = static_cast<char>(rng());
    const auto plan = DecodeRankPlan(bytes);
    if (!plan.ok()) {
      ASSERT_EQ(plan.status().code(), Code::kComm);
      continue;
    }
    for (const PlanExtent& e : plan->extents) {
      ASSERT_LE(e.header_bytes, e.range.size());
      for (const PlanPart& p : e.parts) {
        const PlacedTensor& t = plan->tensors.at(p.tensor);
        ASSERT_TRUE(p.range.begin >= e.range.begin && p.range.end <= e.range.end);
        ASSERT_TRUE(p.range.begin >= t.offset && p.range.end <= t.offset + t.desc.bytes);
        ASSERT_TRUE(CheckGeometry(t.desc, p.geometry).ok());
      }
    }
  }
}

TEST(PlanWire, HostileCountsAndDimensionsAreRefused) {
  WireWriter w;
  w.U64(~uint64_t{0});
  EXPECT_EQ(DecodeRankPlan(w.bytes()).status().code(), Code::kComm);
  RankPlan many = Example();
  many.tensors[0].desc.shape = Dims(65, 1);
  EXPECT_EQ(DecodeRankPlan(EncodeRankPlan(many)).status().code(), Code::kComm);
  RankPlan far = Example();
  far.tensors[0].offset = ~uint64_t{0} - 3;
  EXPECT_EQ(DecodeRankPlan(EncodeRankPlan(far)).status().code(), Code::kComm);
}

}  // namespace
}  // namespace ckpt
