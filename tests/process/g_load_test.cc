// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section G, loading: another dtype (G15) or shape (G16) changes nobody's memory.
#include <bit>
#include <limits>

#include "process/process.h"

namespace ckpt_test {
namespace {

using LoadChecks = ForAnyRanks;
INSTANTIATE_TEST_SUITE_P(K09, LoadChecks, testing::Values(1, 2), RankCount);

// Of bf16's kind (8 significant bits), between two of it, and exactly halfway, to either side.
const std::vector<float> kT = {
    0,
    -0.0f,
    1,
    1 + 1 / 256.0f,
    1 + 3 / 256.0f,
    -1 - 3 / 256.0f,
    1 + 1 / 256.0f + 1 / 65536.0f,
    -3.14159274f,
    1e-40f,
    65504,
    3.4e38f,
    std::numeric_limits<float>::infinity(),
};

// The nearest bf16, of two equally near the even one.
std::vector<uint16_t> NearestEvenBf16(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float v : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    out.push_back(static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16));
  }
  return out;
}

// Saves "t" f32 [4,3] and "u" f32 [5], replicated, as step 1.
void SaveTAndU(Ctx& ctx) {
  std::vector<float> t = kT, u = Values(5, 50);
  State state(ctx);
  state.Whole("t", {4, 3}, t).Whole("u", {5}, u);
  EXPECT_OK(Save(ctx, state, 1));
}

TEST_P(LoadChecks, G15_AnotherDtypeIsAnErrorOnAllRanksUnlessConversionIsAskedFor) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    SaveTAndU(ctx);
    std::vector<uint16_t> half(12, 0xABCD);
    std::vector<float> u = Fill(5);
    State state(ctx);
    state.Add({.name = "t", .shape = {4, 3}, .dtype = kBf16, .data = half.data()});
    state.Whole("u", {5}, u);

    const Outcome plain = Load(ctx, state);
    EXPECT_STATUS(plain, CKPT_ERR_DTYPE);
    EXPECT_EQ(plain.cause.name, "t") << plain;
    EXPECT_SAYS(plain, "t");
    Publish(rank, "dtype", plain);
    EXPECT_EQ(half, std::vector<uint16_t>(12, 0xABCD));
    EXPECT_EQ(u, Fill(5));
    const Outcome convert = Load(ctx, state, {.flags = CKPT_LOAD_CONVERT});
    EXPECT_OK(convert);
    Publish(rank, "convert", convert);
    EXPECT_EQ(half, NearestEvenBf16(kT));
    EXPECT_EQ(u, Values(5, 50));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "dtype");
  ExpectSame(r, "convert");
}

TEST_P(LoadChecks, G15_AnotherDtypeOnOneRankFailsAll) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    SaveTAndU(ctx);
    std::vector<uint16_t> half(12, 0xABCD);
    std::vector<float> u = Fill(5);
    State state(ctx);
    const int last = rank.size() - 1;
    if (rank.is(last))
      state.Add({.name = "t", .shape = {4, 3}, .dtype = kBf16, .data = half.data()});
    state.Whole("u", {5}, u);
    const Outcome o = Load(ctx, state);
    EXPECT_STATUS(o, CKPT_ERR_DTYPE);
    EXPECT_EQ(o.cause.rank, last) << o;
    EXPECT_EQ(half, std::vector<uint16_t>(12, 0xABCD));
    EXPECT_EQ(u, Fill(5));
    Publish(rank, "dtype", o);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "dtype");
}

TEST_P(LoadChecks, G16_AnotherShapeIsAnErrorOnAllRanksAndNothingIsFilled) {
  const std::vector<Dims> shapes = {{4, 4}, {3, 4}, {12}};
  Scratch scratch;
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    SaveTAndU(ctx);
    for (size_t k = 0; k < shapes.size(); ++k) {
      std::vector<float> t = Fill(16), u = Fill(5);
      State state(ctx);
      state.Whole("t", shapes[k], t).Whole("u", {5}, u);
      const Outcome o = Load(ctx, state);
      EXPECT_STATUS(o, CKPT_ERR_SHAPE);
      EXPECT_EQ(o.cause.name, "t") << o;
      EXPECT_SAYS(o, "t");
      EXPECT_EQ(t, Fill(16));
      EXPECT_EQ(u, Fill(5));
      Publish(rank, std::to_string(k), o);
    }
    std::vector<float> t = Fill(12), u = Fill(5);
    State state(ctx);
    state.Whole("t", {4, 3}, t).Whole("u", {5}, u);
    EXPECT_OK(Load(ctx, state));
    EXPECT_EQ(t, kT);
    EXPECT_EQ(u, Values(5, 50));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  for (size_t k = 0; k < shapes.size(); ++k) ExpectSame(r, std::to_string(k));
}

}  // namespace
}  // namespace ckpt_test
