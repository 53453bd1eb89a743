// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section G, saving: shapes and values of pieces (G09, G12, G18, G20).
#include "process/process.h"

namespace ckpt_test {
namespace {

using Replicas = ForAnyRanks;
INSTANTIATE_TEST_SUITE_P(K09, Replicas, testing::Values(1, 8), RankCount);

TEST_P(Replicas, G09_ReplicatedTensorsKeepTheirShapeAndShardsGiveTheGlobalOne) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const int ranks = GetParam();
  const Result r = launch::Run({.ranks = ranks, .deadline_s = 60}, [&](Rank& rank) {
    Ctx ctx({.root = root, .timeout_ms = 10'000});
    ASSERT_INIT(ctx);
    State state(ctx);
    std::vector<float> one = {4.5f}, many = Values(1152, 1);
    std::vector<float> row = BoxValues(3, {rank.id(), 0}, {1, 3});
    std::vector<float> mine = {static_cast<float>(rank.id())};
    state.Whole("one", {1}, one).Whole("many", {1152}, many);
    state.Box("W", {ranks, 3}, {rank.id(), 0}, {1, 3}, row);
    state.Box("one per rank", {ranks}, {rank.id()}, {1}, mine);
    EXPECT_OK(Save(ctx, state, 1));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_EQ(group.tensors.at("one").shape, Dims{1});
  EXPECT_EQ(group.tensors.at("one").Floats(), std::vector<float>{4.5f});
  EXPECT_EQ(group.tensors.at("many").shape, Dims{1152});
  EXPECT_EQ(group.tensors.at("many").Floats(), Values(1152, 1));
  EXPECT_EQ(group.tensors.at("W").shape, (Dims{ranks, 3}));
  EXPECT_EQ(group.tensors.at("W").Floats(), Values(3 * ranks));
  EXPECT_EQ(group.tensors.at("one per rank").shape, Dims{ranks});
  EXPECT_EQ(group.tensors.at("one per rank").Floats(), Values(ranks));
  EXPECT_EQ(group.tensors.size(), 4u);
}

struct Split {
  int dimension;
  Dims parts;
};

TEST(ShapesAndValues, G12_UnevenSplitsGiveTheWholeTensorWithoutPadding) {
  const std::vector<Split> splits = {
      {0, {2, 1, 1, 1}}, {0, {0, 0, 4, 1}}, {0, {1, 3, 1, 0}}, {1, {3, 3, 3, 1}}};
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 4, .deadline_s = 60}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    for (size_t k = 0; k < splits.size(); ++k) {
      const Split& split = splits[k];
      Dims offset = {0, 0}, extent = {5, 10};
      for (int i = 0; i < rank.id(); ++i) offset[split.dimension] += split.parts[i];
      extent[split.dimension] = split.parts[rank.id()];
      std::vector<float> piece = BoxValues(10, offset, extent);
      State state(ctx);
      state.Box("t", {5, 10}, offset, extent, piece);
      EXPECT_OK(Save(ctx, state, static_cast<int64_t>(k)));
      std::fill(piece.begin(), piece.end(), kFill);
      EXPECT_OK(Load(ctx, state));
      EXPECT_EQ(piece, BoxValues(10, offset, extent));
    }
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const std::string first = safetensors::ReadBytes(StepPath(root, 0) + "/model.safetensors");
  for (size_t k = 0; k < splits.size(); ++k) {
    const std::string step = StepPath(root, static_cast<int64_t>(k));
    const auto group = safetensors::Open(step);
    EXPECT_EQ(group.tensors.at("t").shape, (Dims{5, 10}));
    EXPECT_EQ(group.tensors.at("t").Floats(), Values(50));
    EXPECT_EQ(safetensors::Read(step + "/model.safetensors").data_bytes, 200u);
    EXPECT_EQ(safetensors::ReadBytes(step + "/model.safetensors"), first) << "split " << k;
  }
}

TEST(ShapesAndValues, G18_DifferentDataUnderOneNameIsAReplicaErrorUnlessDeclaredAsShards) {
  Scratch scratch;
  const std::string root = scratch / "root", name = "experts.0.w";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<float> data = Values(2, static_cast<float>(1 + 2 * rank.id()));
    State replica(ctx), shard(ctx);
    replica.Whole(name, {2}, data);
    shard.Box(name, {4}, {2 * rank.id()}, {2}, data);
    const Outcome o = Save(ctx, replica, 1);
    EXPECT_STATUS(o, CKPT_ERR_REPLICA);
    EXPECT_EQ(o.cause.name, name) << o;
    EXPECT_SAYS(o, name);
    EXPECT_EQ(o.RankSet(), (Ranks{0, 1})) << o;
    Publish(rank, "replica", o);
    EXPECT_EQ(ListOf(root, "step-"), std::set<std::string>{});
    rank.Barrier("looked");
    EXPECT_OK(Save(ctx, shard, 2));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "replica");
  ExpectNoLeftovers(root);
  EXPECT_EQ(safetensors::Open(StepPath(root, 2)).tensors.at(name).Floats(), Values(4, 1));
}

TEST(ShapesAndValues, G20_ATensorThatNobodyHoldsIsACoverageErrorAtSave) {
  Scratch scratch;
  const std::string root = scratch / "root", name = "lora.A";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<float> nothing, all = Values(64 * 128);
    State stubs(ctx), held(ctx);
    stubs.Box(name, {64, 128}, {0, 0}, {0, 128}, nothing);
    const Outcome o = Save(ctx, stubs, 1);
    EXPECT_STATUS(o, CKPT_ERR_COVERAGE);
    EXPECT_EQ(o.cause.name, name) << o;
    EXPECT_EQ(o.cause.rank, -1) << o;  // nobody is to blame for a gap
    EXPECT_SAYS(o, name);
    Publish(rank, "coverage", o);
    EXPECT_EQ(ListOf(root, "step-"), std::set<std::string>{});
    rank.Barrier("looked");
    if (rank.is(0)) held.Whole(name, {64, 128}, all);
    if (rank.is(1)) held.Box(name, {64, 128}, {0, 0}, {0, 128}, nothing);
    EXPECT_OK(Save(ctx, held, 2));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "coverage");
  EXPECT_EQ(safetensors::Open(StepPath(root, 2)).tensors.at(name).Floats(), Values(64 * 128));
}

// The neighbours of G20: a gap and an overlap, with tensor and ranks named.
TEST(ShapesAndValues, G20_AGapAndAnOverlapAreCoverageErrorsToo) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    for (const int64_t second : {3, 5}) {  // rank 0 holds [0, 4) of 8
      const Part part = rank.is(0) ? Part{0, 4} : Part{second, 8 - second};
      std::vector<float> data = Values(part.count, static_cast<float>(part.offset));
      State state(ctx);
      state.Box("w", {8}, {part.offset}, {part.count}, data);
      const Outcome o = Save(ctx, state, 1);
      EXPECT_STATUS(o, CKPT_ERR_COVERAGE);
      EXPECT_EQ(o.cause.name, "w") << o;
      if (second == 5) {
        EXPECT_EQ(o.cause.rank, -1) << o;  // nobody is to blame for a gap
      }
      Publish(rank, std::to_string(second), o);
    }
  });
  ASSERT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "3");
  ExpectSame(r, "5");
}

}  // namespace
}  // namespace ckpt_test
