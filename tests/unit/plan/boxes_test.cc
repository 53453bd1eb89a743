// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Overlap of boxes against all pairs, including arrangements that no straight cut takes apart.
#include "plan/boxes.h"

#include <gtest/gtest.h>

#include "unit/plan/world.h"

namespace ckpt {
namespace {

TEST(Boxes, AFlatRangeBecomesAFewBoxesWithTheSameElements) {
  const TensorDesc t = *MakeTensor("g", "w", kU8, {3, 4, 5});
  for (int64_t begin = 0; begin < 60; ++begin) {
    for (int64_t count = 1; begin + count <= 60; ++count) {
      BoxSet boxes(3);
      boxes.Add(t, *MakeFlat(t, begin, count), 7);
      ASSERT_LE(boxes.size(), 5u);
      int64_t volume = 0;
      for (size_t i = 0; i < boxes.size(); ++i) {
        int64_t v = 1;
        for (size_t k = 0; k < 3; ++k) v *= boxes.hi(i, k) - boxes.lo(i, k);
        volume += v;
        const int64_t first = (boxes.lo(i, 0) * 4 + boxes.lo(i, 1)) * 5 + boxes.lo(i, 2);
        const int64_t last =
            ((boxes.hi(i, 0) - 1) * 4 + boxes.hi(i, 1) - 1) * 5 + boxes.hi(i, 2) - 1;
        ASSERT_TRUE(first >= begin && last < begin + count);
      }
      ASSERT_EQ(volume, count);
      ASSERT_FALSE(FindOverlap(boxes));
    }
  }
}

// A pinwheel: four boxes around one, which no straight line separates; side by side n times.
BoxSet Pinwheels(const TensorDesc& t, int64_t n, int64_t grow) {
  BoxSet boxes(2);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t x = 3 * i;
    boxes.Add(t, *MakeBox(t, {0, x}, {1, 2}), 0);
    boxes.Add(t, *MakeBox(t, {0, x + 2}, {2 + (i == n - 1 ? grow : 0), 1}), 1);
    boxes.Add(t, *MakeBox(t, {2, x + 1}, {1, 2}), 2);
    boxes.Add(t, *MakeBox(t, {1, x}, {2, 1}), 3);
    boxes.Add(t, *MakeBox(t, {1, x + 1}, {1, 1}), 4);
  }
  return boxes;
}

TEST(Boxes, APinwheelIsDisjointUntilOneOfItsBoxesGrows) {
  for (const int64_t n : {1, 2, 50}) {
    const TensorDesc t = *MakeTensor("g", "w", kU8, {4, 3 * n});
    EXPECT_FALSE(FindOverlap(Pinwheels(t, n, 0)));
    const auto found = FindOverlap(Pinwheels(t, n, 1));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->first / 5, found->second / 5);
  }
}

TEST(Boxes, RandomSetsAreJudgedAsByAllPairs) {
  int disjoint = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 rng(seed);
    const TensorDesc t = *MakeTensor("g", "w", kU8, {12, 12, 12});
    BoxSet boxes(3);
    for (uint64_t i = 2 + rng() % 12; i > 0; --i) {
      Dims offset(3), extent(3);
      for (size_t k = 0; k < 3; ++k) {
        offset[k] = static_cast<int64_t>(rng() % 10);
        extent[k] = static_cast<int64_t>(1 + rng() % 5);
        extent[k] = std::min(extent[k], 12 - offset[k]);
      }
      extent[rng() % 3] = 1;
      const Geometry box{true, 0, 0, offset, extent};
      boxes.Add(t, box, static_cast<uint32_t>(i));
    }
    bool overlap = false;
    const auto meet = [&](size_t a, size_t b) {
      for (size_t k = 0; k < 3; ++k) {
        if (boxes.lo(a, k) >= boxes.hi(b, k) || boxes.lo(b, k) >= boxes.hi(a, k)) return false;
      }
      return true;
    };
    for (size_t i = 0; i < boxes.size(); ++i) {
      for (size_t j = 0; j < i; ++j) overlap = overlap || meet(i, j);
    }
    const auto found = FindOverlap(boxes);
    ASSERT_EQ(found.has_value(), overlap) << "seed " << seed;
    if (found) {
      ASSERT_TRUE(meet(found->first, found->second));
    }
    disjoint += overlap ? 0 : 1;
  }
  EXPECT_GT(disjoint, 100);
}

}  // namespace
}  // namespace ckpt
