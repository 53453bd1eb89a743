// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What MergeStates accepts, refuses and says; randomly damaged splits against counting.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "unit/plan/world.h"

namespace ckpt {
namespace {

using testing::World;

Status Merged(const World& w) { return MergeStates(w.ranks).status(); }
bool Says(const Status& s, std::string_view words) {
  return s.message().find(words) != std::string::npos;
}

TEST(MergeStates, EqualShardsOnSeveralRanksAreReplicasInAscendingOrder) {
  World w(3);
  const size_t t = w.Add("w", kF32, {4, 4});
  w.WholeOnAll(t);
  const auto state = MergeStates(w.ranks);
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(state->tensors.at(0).pieces.size(), 1u);
  const auto& holders = state->tensors[0].pieces[0].holders;
  ASSERT_EQ(holders.size(), 3u);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(holders[static_cast<size_t>(r)].rank, r);
}

TEST(MergeStates, TensorsAreSortedByGroupAndName) {
  World w(1);
  for (const auto& [name, group] : {std::pair("b", "model"), {"a", "optim"}, {"a", "model"}}) {
    w.Whole(0, w.Add(name, kF32, {2}, group));
  }
  const auto state = MergeStates(w.ranks);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->tensors[0].desc.name, "a");
  EXPECT_EQ(state->tensors[1].desc.name, "b");
  EXPECT_EQ(state->tensors[2].desc.group, "optim");
}

TEST(MergeStates, AnotherDtypeOrShapeIsAMismatchWithBothValues) {
  World w(3);
  w.Whole(0, w.Add("w", kF32, {2, 3}));
  w.Whole(2, w.Add("w", kBF16, {2, 3}));
  const Status dtype = Merged(w);
  EXPECT_EQ(dtype.code(), Code::kMismatch);
  EXPECT_EQ(dtype.cause().name, "w");
  EXPECT_EQ(dtype.cause().field, "dtype");
  EXPECT_EQ(dtype.cause().rank, 2);
  EXPECT_TRUE(Says(dtype, "rank 0 gives dtype F32, rank 2 gives BF16")) << dtype.message();

  World v(2);
  v.Whole(0, v.Add("w", kF32, {2, 3}));
  v.Whole(1, v.Add("w", kF32, {3, 2}));
  const Status shape = Merged(v);
  EXPECT_EQ(shape.cause().field, "shape");
  EXPECT_TRUE(Says(shape, "rank 0 gives shape [2, 3], rank 1 gives [3, 2]")) << shape.message();
}

TEST(MergeStates, G20_ATensorThatNobodyHoldsIsACoverageError) {
  World w(2);
  const size_t t = w.Add("w", kF32, {64, 128});
  w.Give(0, t, {});
  w.Give(1, t, {});
  const Status s = Merged(w);
  EXPECT_EQ(s.code(), Code::kCoverage);
  EXPECT_EQ(s.cause().name, "w");
  EXPECT_TRUE(Says(s, "8192 elements")) << s.message();
  w.Whole(1, t);
  EXPECT_TRUE(Merged(w).ok());
}

TEST(MergeStates, G10_TensorsWithoutElementsNeedNoHolder) {
  World w(2);
  for (const Dims& shape : {Dims{0}, Dims{2, 0}, Dims{0, 3}}) {
    w.Give(0, w.Add("t" + std::to_string(w.tensors.size()), kF32, shape), {});
  }
  EXPECT_TRUE(Merged(w).ok());
}

TEST(MergeStates, G09_AReplicatedScalarKeepsItsShapeAndAShardedOneHasTheGlobalShape) {
  World w(8);
  w.WholeOnAll(w.Add("scalar", kF32, {1}));
  w.WholeOnAll(w.Add("bias", kF32, {1152}));
  w.Slices(w.Add("sharded", kF32, {8}), 0, std::vector<int64_t>(8, 1));
  const auto state = MergeStates(w.ranks);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->tensors[0].desc.shape, Dims{1152});
  EXPECT_EQ(state->tensors[1].desc.shape, Dims{1});
  EXPECT_EQ(state->tensors[1].pieces.size(), 1u);
  EXPECT_EQ(state->tensors[2].pieces.size(), 8u);
}

TEST(MergeStates, G12_AnyUnevenSplitIsComplete) {
  for (const auto& rows : {Dims{2, 1, 1, 1}, Dims{0, 0, 4, 1}, Dims{1, 3, 1, 0}}) {
    World w(4);
    w.Slices(w.Add("w", kF32, {5, 10}), 0, rows);
    EXPECT_TRUE(Merged(w).ok());
  }
  World w(4);
  w.Slices(w.Add("w", kF32, {5, 10}), 1, {3, 3, 3, 1});
  EXPECT_TRUE(Merged(w).ok());
}

TEST(Coverage, AGapIsNamedWithTensorAndRange) {
  World w(3);
  const size_t t = w.Add("w", kF32, {4, 8});
  w.Box(0, t, {0, 0}, {4, 3});
  w.Box(2, t, {0, 4}, {4, 4});
  const Status s = Merged(w);
  EXPECT_EQ(s.code(), Code::kCoverage);
  EXPECT_EQ(s.cause().name, "w");
  EXPECT_EQ(s.cause().field, "gap");
  EXPECT_TRUE(Says(s, "element 3 (of 32; from index [0, 3])")) << s.message();
  EXPECT_TRUE(Says(s, "rank 0, 2")) << s.message();
}

TEST(Coverage, AnOverlapNamesBothRanksAndTheCommonPart) {
  World w(6);
  const size_t t = w.Add("w", kF32, {4, 8});
  w.Box(1, t, {0, 0}, {4, 5});
  w.Box(5, t, {0, 4}, {4, 4});
  const Status boxes = Merged(w);
  EXPECT_EQ(boxes.code(), Code::kCoverage);
  EXPECT_EQ(boxes.cause().field, "overlap");
  EXPECT_TRUE(Says(boxes, "rank 1") && Says(boxes, "rank 5")) << boxes.message();
  EXPECT_TRUE(Says(boxes, "[0:4, 4:5]")) << boxes.message();

  World v(2);
  const size_t f = v.Add("w", kF32, {16});
  v.Flat(0, f, 0, 10);
  v.Flat(1, f, 8, 8);
  EXPECT_TRUE(Says(Merged(v), "overlap in elements 8..9")) << Merged(v).message();
}

TEST(Coverage, H04_OneRankGivingBytesTwiceIsNamed) {
  World w(2);
  const size_t t = w.Add("w", kF32, {16});
  w.Whole(1, t);
  w.Whole(1, t);
  const Status same = Merged(w);
  EXPECT_EQ(same.code(), Code::kCoverage);
  EXPECT_EQ(same.cause().rank, 1);
  EXPECT_EQ(same.cause().field, "duplicate");
  EXPECT_TRUE(Says(same, "rank 1 gives elements 0..15 twice")) << same.message();

  World v(2);
  const size_t u = v.Add("w", kF32, {4, 8});
  v.Flat(1, u, 0, 12);
  v.Box(1, u, {0, 4}, {4, 4});
  EXPECT_EQ(Merged(v).cause().rank, 1);
  EXPECT_TRUE(Says(Merged(v), "twice")) << Merged(v).message();
}

// Valid iff every element is in exactly one of the distinct shards and no rank repeats one.
bool ValidByCounting(const World& w, size_t tensor) {
  std::map<int64_t, std::set<Geometry>> of_element;
  for (const RankState& r : w.ranks) {
    std::set<Geometry> own;
    for (const RankState::Shard& s : r.shards) {
      if (Elements(s.geometry) == 0) continue;
      if (!own.insert(s.geometry).second) return false;
      for (int64_t e : testing::ElementsOf(w.tensors[tensor], s.geometry)) {
        of_element[e].insert(s.geometry);
      }
    }
  }
  for (const auto& [e, shards] : of_element) {
    if (shards.size() != 1) return false;
  }
  return static_cast<int64_t>(of_element.size()) == MakeWhole(w.tensors[tensor]).count;
}

Geometry Nudged(const TensorDesc& t, Geometry g, std::mt19937_64& rng) {
  if (!g.is_box) {
    const int64_t more = g.begin + g.count < MakeWhole(t).count ? 1 : 0;
    return *MakeFlat(t, g.begin, rng() % 2 == 0 ? g.count + more : g.count - 1);
  }
  const size_t k = rng() % g.extent.size();
  const bool grow = rng() % 2 == 0 && g.offset[k] + g.extent[k] < t.shape[k];
  g.extent[k] += grow ? 1 : -1;
  return *MakeBox(t, g.offset, g.extent);
}

TEST(Coverage, RandomlyDamagedSplitsAreJudgedAsByCounting) {
  int valid = 0, invalid = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 rng(seed);
    World w(static_cast<int>(2 + rng() % 4));
    Dims shape(rng() % 4);
    for (int64_t& n : shape) n = static_cast<int64_t>(1 + rng() % 6);
    const size_t t = w.Add("w", kU8, shape);
    const auto rank = [&] { return static_cast<int>(rng() % w.ranks.size()); };
    std::vector<Geometry> pieces = testing::RandomPieces(w.tensors[t], rng);
    for (uint64_t i = rng() % 3; i > 0; --i) {
      Geometry& g = pieces[rng() % pieces.size()];
      const uint64_t kind = rng() % 4;
      if (kind == 0) g = Geometry{};
      if (kind == 1) w.Give(rank(), t, g);
      if (kind >= 2 && Elements(g) > 0) g = Nudged(w.tensors[t], g, rng);
    }
    for (const Geometry& g : pieces) w.Give(rank(), t, g);
    const Status s = Merged(w);
    ASSERT_EQ(s.ok(), ValidByCounting(w, t)) << "seed " << seed << ": " << s.message();
    ASSERT_TRUE(s.ok() || s.code() == Code::kCoverage);
    ++(s.ok() ? valid : invalid);
  }
  EXPECT_GT(valid, 500);
  EXPECT_GT(invalid, 500);
}

TEST(Coverage, TheFirstGapIsTheOneThatCountingFinds) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 rng(seed);
    World w(2);
    const size_t t = w.Add("w", kBF16, {5, 4, 6});
    std::set<int64_t> held;
    for (const Geometry& g : testing::RandomPieces(w.tensors[t], rng)) {
      if (rng() % 3 == 0) continue;
      w.Give(static_cast<int>(rng() % 2), t, g);
      for (int64_t e : testing::ElementsOf(w.tensors[t], g)) held.insert(e);
    }
    int64_t begin = 0;
    while (held.count(begin) > 0) ++begin;
    int64_t end = begin;
    while (end < 120 && held.count(end) == 0) ++end;
    const Status s = Merged(w);
    if (begin == 120 || held.empty()) continue;
    const std::string gap = Describe(w.tensors[t], *MakeFlat(w.tensors[t], begin, end - begin));
    ASSERT_TRUE(Says(s, "no rank holds " + gap + " (of 120")) << seed << ": " << s.message();
  }
}

}  // namespace
}  // namespace ckpt
