// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Shards in normal form, and what is refused.
#include <gtest/gtest.h>

#include <limits>

#include "meta/meta.h"

namespace ckpt {
namespace {

TensorDesc Tensor(Dims shape) { return *MakeTensor("model", "w", kF32, std::move(shape)); }
Geometry Flat(int64_t begin, int64_t count) { return {false, begin, count, {}, {}}; }

TEST(Geometry, ABoxWithContiguousElementsIsAFlatRange) {
  EXPECT_EQ(*MakeBox(Tensor({4, 6}), {1, 0}, {2, 6}), Flat(6, 12));
  EXPECT_EQ(*MakeBox(Tensor({4, 6}), {2, 1}, {1, 3}), Flat(13, 3));
  EXPECT_EQ(*MakeBox(Tensor({1, 6}), {0, 1}, {1, 3}), Flat(1, 3));
  EXPECT_EQ(*MakeBox(Tensor({2, 3, 1, 4}), {1, 1, 0, 0}, {1, 2, 1, 4}), Flat(16, 8));
  EXPECT_EQ(*MakeBox(Tensor({}), {}, {}), Flat(0, 1));
  EXPECT_EQ(*MakeBox(Tensor({4, 6}), {0, 0}, {4, 6}), MakeWhole(Tensor({4, 6})));
}

TEST(Geometry, AColumnBlockStaysABox) {
  const auto g = MakeBox(Tensor({4, 6}), {0, 2}, {4, 3});
  ASSERT_TRUE(g.ok());
  EXPECT_TRUE(g->is_box);
  EXPECT_EQ(Elements(*g), 12);
}

TEST(Geometry, G10_EmptyShardsAreAllEqualWhereverTheyLie) {
  const TensorDesc t = Tensor({4, 6});
  EXPECT_EQ(*MakeBox(t, {4, 0}, {0, 6}), Geometry{});
  EXPECT_EQ(*MakeBox(t, {1, 2}, {3, 0}), Geometry{});
  EXPECT_EQ(*MakeFlat(t, 24, 0), Geometry{});
  EXPECT_EQ(MakeWhole(Tensor({0, 3})), Geometry{});
  EXPECT_EQ(*MakeBox(Tensor({0, 3}), {0, 0}, {0, 3}), Geometry{});
}

TEST(Geometry, NegativeIsInvalidAndOutsideIsAShapeError) {
  const TensorDesc t = Tensor({4, 6});
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(MakeBox(t, {-1, 0}, {2, 6}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(MakeBox(t, {1, 0}, {2, -6}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(MakeBox(t, {3, 0}, {2, 6}).status().code(), Code::kShape);
  EXPECT_EQ(MakeBox(t, {max, 0}, {max, 6}).status().code(), Code::kShape);
  EXPECT_EQ(MakeBox(t, {5, 0}, {0, 6}).status().code(), Code::kShape);
  EXPECT_EQ(MakeBox(t, {0}, {4}).status().code(), Code::kShape);
  EXPECT_EQ(MakeBox(t, {0, 0}, {4}).status().code(), Code::kShape);
  EXPECT_EQ(MakeFlat(t, -1, 2).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(MakeFlat(t, 0, -2).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(MakeFlat(t, 20, 5).status().code(), Code::kShape);
  EXPECT_EQ(MakeFlat(t, max, max).status().code(), Code::kShape);
  EXPECT_EQ(MakeFlat(t, 25, 0).status().code(), Code::kShape);
  const Status s = MakeBox(t, {3, 0}, {2, 6}).status();
  EXPECT_EQ(s.cause().name, "w");
  EXPECT_NE(s.message().find("[3, 0]"), std::string::npos) << s.message();
}

TEST(Geometry, CheckGeometryRefusesWhatIsNotInNormalForm) {
  const TensorDesc t = Tensor({4, 6});
  EXPECT_TRUE(CheckGeometry(t, *MakeBox(t, {0, 2}, {4, 3})).ok());
  EXPECT_FALSE(CheckGeometry(t, {true, 0, 0, {0, 0}, {4, 6}}).ok());
  EXPECT_FALSE(CheckGeometry(t, {false, 3, 0, {}, {}}).ok());
  EXPECT_FALSE(CheckGeometry(t, {false, 0, 25, {}, {}}).ok());
  EXPECT_FALSE(CheckGeometry(t, {true, 0, 0, {0, 0, 0}, {1, 1, 1}}).ok());
  EXPECT_FALSE(CheckGeometry(t, {true, 1, 2, {0, 2}, {4, 3}}).ok());
}

TEST(Geometry, IsDescribedAsARangeOrAsSlices) {
  const TensorDesc t = Tensor({4, 16});
  EXPECT_EQ(Describe(t, *MakeBox(t, {0, 8}, {4, 8})), "[0:4, 8:16]");
  EXPECT_EQ(Describe(t, *MakeFlat(t, 12, 4)), "elements 12..15");
  EXPECT_EQ(Describe(t, *MakeFlat(t, 12, 1)), "element 12");
  EXPECT_EQ(Describe(t, Geometry{}), "no elements");
}

TEST(Geometry, TheHullSpansFromTheFirstToTheLastByte) {
  const TensorDesc t = Tensor({4, 6});
  EXPECT_EQ(Hull(t, *MakeBox(t, {1, 2}, {2, 3})), (ByteRange{8 * 4, 17 * 4}));
  EXPECT_EQ(Hull(t, Flat(3, 2)), (ByteRange{12, 20}));
  EXPECT_EQ(Hull(t, Geometry{}), ByteRange{});
}

TEST(Geometry, ARunIsAsLongAsTheTrailingDimensionsAllow) {
  const TensorDesc t = Tensor({4, 6, 5});
  EXPECT_EQ(RunBytes(t, *MakeBox(t, {0, 2, 0}, {4, 3, 5})), 60u);
  EXPECT_EQ(RunBytes(t, *MakeBox(t, {0, 2, 1}, {4, 3, 2})), 8u);
  EXPECT_EQ(RunBytes(t, *MakeBox(t, {0, 0, 1}, {4, 6, 2})), 8u);
  EXPECT_EQ(RunBytes(t, Flat(7, 9)), 36u);
}

}  // namespace
}  // namespace ckpt
