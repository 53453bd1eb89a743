// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// How a tensor falls apart into stretches, and a file into segments.
#include "plan/spans.h"

#include <gtest/gtest.h>

#include "plan/segments.h"
#include "unit/plan/world.h"

namespace ckpt {
namespace {

using testing::World;

GlobalState Merged(const World& w) { return std::move(MergeStates(w.ranks)).value(); }

TEST(Spans, RowBlocksOfATwoDimensionalSplitAreIndependent) {
  World w(4);
  const size_t t = w.Add("w", kU8, {8, 8});
  for (int r = 0; r < 4; ++r) w.Box(r, t, {r / 2 * 4, r % 2 * 4}, {4, 4});
  const TensorSpans s = MakeSpans(Merged(w).tensors[0], 16);
  ASSERT_EQ(s.spans.size(), 2u);
  EXPECT_EQ(s.spans[0].range, (ByteRange{0, 32}));
  EXPECT_EQ(s.spans[0].count, 2u);
}

TEST(Spans, LongRunsAreSpansOfOnePieceEach) {
  World w(2);
  w.Slices(w.Add("w", kU8, {3, 8}), 1, {5, 3});
  const GlobalState state = Merged(w);
  EXPECT_EQ(MakeSpans(state.tensors[0], 3).spans.size(), 6u);
  EXPECT_EQ(MakeSpans(state.tensors[0], 4).spans.size(), 1u);
}

TEST(Segments, ShortNeighboursAreJoinedAndTheHeaderKeepsItsBlocks) {
  World w(3);
  std::vector<size_t> of;
  for (int i = 0; i < 7; ++i) {
    of.push_back(w.Add("t" + std::to_string(i), kU8, {100}));
    w.Whole(i % 3, of.back());
  }
  w.File("model", 10, of);
  const GlobalState state = Merged(w);
  PlannedFile file{&w.files[0], {}, {}};
  for (const GlobalTensor& t : state.tensors) {
    file.tensors.push_back(&t);
    file.spans.push_back(MakeSpans(t, 300));
  }
  RankSets sets;
  const auto segments = MakeSegments(file, {0, 1, 2}, {64, 300, 1}, &sets);
  ASSERT_EQ(segments.size(), 2u) << "the groups have equal holders, so they are one";
  EXPECT_EQ(segments[0].end, 64u);
  EXPECT_EQ(sets[segments[0].set], std::vector<int32_t>{1});
  EXPECT_EQ(segments[1].end, 710u);
  EXPECT_EQ(sets[segments[1].set], (std::vector<int32_t>{0, 1, 2}));
}

TEST(Segments, HoldersThatMayNotWriteAreLeftOutUnlessNoneMay) {
  World w(3);
  const size_t a = w.Add("a", kU8, {100}), b = w.Add("b", kU8, {100});
  w.Whole(0, a);
  w.Whole(1, a);
  w.Whole(1, b);
  w.File("model", 64, {a, b});
  const GlobalState state = Merged(w);
  PlannedFile file{&w.files[0], {&state.tensors[0], &state.tensors[1]}, {}};
  for (const GlobalTensor* t : file.tensors) file.spans.push_back(MakeSpans(*t, 1));
  RankSets sets;
  const auto segments = MakeSegments(file, {0, 2}, {64, 1, 0}, &sets);
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(sets[segments[1].set], std::vector<int32_t>{0});
  EXPECT_EQ(sets[segments[2].set], (std::vector<int32_t>{0, 2}));
}

}  // namespace
}  // namespace ckpt
