// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md K09, its N=1 part: one rank is a normal case, however it is reached.
#include "process/process.h"

namespace ckpt_test {
namespace {

enum class Way { kWorldOfOne, kNoVariables, kSelf, kSelfInALargerWorld };

std::string Name(const testing::TestParamInfo<Way>& info) {
  switch (info.param) {
    case Way::kWorldOfOne:
      return "WorldOfOne";
    case Way::kNoVariables:
      return "NoVariables";
    case Way::kSelf:
      return "Self";
    case Way::kSelfInALargerWorld:
      return "SelfInALargerWorld";
  }
  return "?";
}

class OneRank : public testing::TestWithParam<Way> {
 protected:
  // `body` gets what a context needs to be alone.
  Result Run(const std::function<void(Rank&, CtxOptions)>& body) {
    launch::Options o{.ranks = 1, .deadline_s = 30};
    if (GetParam() == Way::kNoVariables)
      o.env = {{"RANK", ""},
               {"WORLD_SIZE", ""},
               {"LOCAL_RANK", ""},
               {"LOCAL_WORLD_SIZE", ""},
               {"CKPT_JOB_ID", ""}};
    if (GetParam() == Way::kSelfInALargerWorld)
      o.env = {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "5"}, {"LOCAL_WORLD_SIZE", "8"}};
    return launch::Run(o, [&](Rank& rank) {
      ckpt_comm self{};
      self.struct_size = sizeof self;
      self.kind = CKPT_COMM_SELF;
      const bool explicit_self = GetParam() == Way::kSelf || GetParam() == Way::kSelfInALargerWorld;
      body(rank, {.root = root(), .comm = explicit_self ? &self : nullptr});
    });
  }
  std::string root() const { return scratch_ / "root"; }

 private:
  Scratch scratch_;
};

INSTANTIATE_TEST_SUITE_P(K09, OneRank,
                         testing::Values(Way::kWorldOfOne, Way::kNoVariables, Way::kSelf,
                                         Way::kSelfInALargerWorld),
                         Name);

TEST_P(OneRank, K09_SavesReplacesRefusesLoadsAndEnds) {
  const Result r = Run([&](Rank& rank, CtxOptions options) {
    Trainer t(rank, options, 1);
    EXPECT_STATUS(t.Load(), CKPT_ERR_NO_CHECKPOINT);
    EXPECT_OK(t.Save(10));
    t.Set(2);
    EXPECT_OK(t.Save(20));
    EXPECT_STATUS(t.Save({.step = 20, .on_existing = CKPT_EXISTING_REFUSE}), CKPT_ERR_EXISTS);
    t.Set(3);
    EXPECT_OK(t.Save(20));  // our own lineage: replaced
    t.Clear();
    EXPECT_STATUS(t.Load({.step = 999}), CKPT_ERR_NOT_FOUND);
    EXPECT_TRUE(t.Untouched());
    const Outcome newest = t.Load();
    EXPECT_OK(newest);
    EXPECT_EQ(newest.result.step, 20);
    EXPECT_TRUE(t.Holds(3));
    EXPECT_OK(t.Load({.step = 10}));
    EXPECT_TRUE(t.Holds(1));
    int64_t latest = 0;
    EXPECT_OK(t.ctx.Latest(&latest));
    EXPECT_EQ(latest, 20);
    EXPECT_OK(t.ctx.Finalize());
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root(), "step-"), (std::set{StepName(10), StepName(20)}));
  ExpectFileHolds(root(), 20, 3);
  ExpectNoLeftovers(root());
}

TEST_P(OneRank, K09_ErrorsNameTheirCauseAndTheNextSaveWorks) {
  const Result r = Run([&](Rank& rank, CtxOptions options) {
    Trainer t(rank, options);
    EXPECT_OK(t.Save(1));
    State gap(t.ctx);
    std::vector<float> data = Values(3);
    gap.Box("gap", {4}, {0}, {3}, data);
    EXPECT_STATUS(Save(t.ctx, gap, 2), CKPT_ERR_COVERAGE);
    std::vector<float> wide = Fill(80);
    State shape(t.ctx);
    shape.Whole("w", {16, 5}, wide);
    EXPECT_STATUS(Load(t.ctx, shape), CKPT_ERR_SHAPE);
    EXPECT_EQ(wide, Fill(80));
    const std::string file = StepPath(root(), 1) + "/model.safetensors";
    const std::string good = safetensors::ReadBytes(file);
    safetensors::WriteBytes(file, good.substr(0, good.size() - 1));
    t.Clear();
    EXPECT_STATUS(t.Load(), CKPT_ERR_CORRUPT);
    EXPECT_TRUE(t.Untouched());
    t.Set(9);
    EXPECT_OK(t.Save(3));
    EXPECT_OK(t.Load());
    EXPECT_TRUE(t.Holds(9));
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

// Same state, same bytes: one rank's group files are those of four.
TEST_P(OneRank, K09_OneRankWritesTheFilesThatFourWrite) {
  const Result one = Run([&](Rank& rank, CtxOptions options) {
    Trainer t(rank, options, 4);
    EXPECT_OK(t.Save(1));
  });
  ASSERT_TRUE(one.ok()) << one.report();
  Scratch scratch;
  const Result four = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch.path()}, 4);
    EXPECT_OK(t.Save(1));
  });
  ASSERT_TRUE(four.ok()) << four.report();
  for (const char* file : {"model.safetensors", "model.safetensors.index.json"})
    EXPECT_EQ(safetensors::ReadBytes(StepPath(root(), 1) + "/" + file),
              safetensors::ReadBytes(StepPath(scratch.path(), 1) + "/" + file))
        << file;
}

}  // namespace
}  // namespace ckpt_test
