// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Ties as the ranks declare them.
#include <gtest/gtest.h>

#include "plan/plan.h"

namespace ckpt {
namespace {

// A rank that holds the named tensors of group "g" and declares these ties.
RankState Brings(const std::vector<std::string>& tensors, const std::vector<AliasDesc>& aliases) {
  RankState s;
  for (const std::string& name : tensors) {
    s.tensors.push_back(*MakeTensor("g", name, kF32, {4}));
    s.shards.push_back({static_cast<uint32_t>(s.shards.size()), MakeWhole(s.tensors.back())});
  }
  s.aliases = aliases;
  return s;
}

TEST(Aliases, ChainsEndAtTheStoredTensorWhicheverRankDeclaresThem) {
  const auto state = MergeStates({Brings({"w"}, {{"g", "b", "a"}}), Brings({}, {{"g", "a", "w"}})});
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->aliases, (GlobalAliases{{{"g", "a"}, "w"}, {{"g", "b"}, "w"}}));
}

TEST(Aliases, AnotherTensorACircleOrNoTensorAtAllIsAnErrorThatNamesTheAlias) {
  const struct {
    std::vector<RankState> ranks;
    Code code;
    int32_t rank;
  } bad[] = {
      {{Brings({"w", "v"}, {{"g", "x", "w"}}), Brings({}, {{"g", "x", "v"}})}, Code::kMismatch, 1},
      {{Brings({"w"}, {{"g", "x", "no"}})}, Code::kInvalidArgument, 0},
      {{Brings({"w"}, {}), Brings({}, {{"g", "x", "y"}, {"g", "y", "x"}})},
       Code::kInvalidArgument,
       1},
      {{Brings({"w", "x"}, {}), Brings({}, {{"g", "x", "w"}})}, Code::kMismatch, 1},
      {{Brings({"w"}, {{"other group", "x", "w"}})}, Code::kInvalidArgument, 0},
  };
  for (const auto& b : bad) {
    const Status status = MergeStates(b.ranks).status();
    EXPECT_EQ(status.code(), b.code) << status.message();
    EXPECT_EQ(status.cause().name, "x");
    EXPECT_EQ(status.cause().rank, b.rank);
    EXPECT_EQ(status.cause().field, "alias");
  }
}

TEST(Aliases, DuplicatedTiesAreTensorsWithTheSameHolders) {
  auto state = MergeStates({Brings({"w", "z"}, {{"g", "a", "z"}}), Brings({"z"}, {})});
  ASSERT_TRUE(state.ok());
  DuplicateTies(&*state);
  EXPECT_TRUE(state->aliases.empty());
  ASSERT_EQ(state->tensors.size(), 3u);
  EXPECT_EQ(state->tensors[0].desc.name, "a");  // still sorted
  ASSERT_EQ(state->tensors[0].pieces.size(), 1u);
  EXPECT_EQ(state->tensors[0].pieces[0].holders.size(), 2u);
  EXPECT_EQ(state->tensors[0].pieces[0].holders[0].shard, 1u);
}

TEST(Required, I01_ATensorThatIsRequiredAndHeldByNobodyIsNotFound) {
  RankState s = Brings({"w"}, {});
  s.tensors.push_back(*MakeTensor("g", "frozen", kF32, {4}));
  s.required = {1};
  const Status status = MergeStates({s}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.cause().name, "frozen");
  s.tensors[1] = *MakeTensor("g", "frozen", kF32, {0});
  EXPECT_TRUE(MergeStates({s}).ok());  // nothing to hold
}

}  // namespace
}  // namespace ckpt
