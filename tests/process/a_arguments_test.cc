// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section A: with what arguments (A05, A06), and what is in the way (A11).
#include "process/process.h"

namespace ckpt_test {
namespace {

constexpr double kAtOnce = 4;

void ExpectNamesBothSteps(const Outcome& o) {
  EXPECT_STATUS(o, CKPT_ERR_MISMATCH);
  EXPECT_SAYS(o, "step");
  EXPECT_SAYS(o, "100");
  EXPECT_SAYS(o, "101");
  EXPECT_SAYS(o, "rank 3");
  EXPECT_EQ(o.cause.field, "step") << o;
}

TEST(CallingDiscipline, A05_AnotherStepIsNamedAtOnceToThoseBehindAndToTheFirstByItsDeadline) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 4000});
    const Outcome o = t.Save(rank.is(3) ? 101 : 100);
    if (rank.is(3)) {
      EXPECT_STATUS(o, CKPT_ERR_PARTICIPANTS);
      EXPECT_EQ(o.RankSet(), (Ranks{0, 1, 2})) << o;
      EXPECT_SAYS(o, "100");
      EXPECT_SAYS(o, "101");
      EXPECT_LT(o.seconds, 5);
    } else {
      ExpectNamesBothSteps(o);
      EXPECT_LT(o.seconds, 3);
    }
    rank.Barrier("all back");
    EXPECT_EQ(ListOf(root, "step-"), std::set<std::string>{});
    rank.Barrier("looked");
    EXPECT_OK(t.Save(200));
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(CallingDiscipline, A05_ARankAheadIsToldWhenItIsOvertaken) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch / "root", .timeout_ms = 15'000});
    const Outcome o = t.Save(rank.is(3) ? 101 : 100);
    if (rank.is(3)) {
      EXPECT_STATUS(o, CKPT_ERR_MISMATCH);
      EXPECT_SAYS(o, "101");
      EXPECT_SAYS(o, "102");
    } else {
      ExpectNamesBothSteps(o);
    }
    EXPECT_LT(o.seconds, kAtOnce);
    EXPECT_OK(t.Save(102));
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

struct OtherOption {
  std::string field;
  SaveOptions common, other;
};

TEST(CallingDiscipline, A05_OtherTagOrOptionIsNamedOnAllRanksAtOnce) {
  Scratch scratch;
  const std::vector<OtherOption> cases = {
      {"tag", {.step = 1, .tag = "blue"}, {.step = 1, .tag = "green"}},
      {"metadata", {.step = 2, .metadata = "k=blue"}, {.step = 2, .metadata = "k=green"}},
      {"on_existing", {.step = 3}, {.step = 3, .on_existing = CKPT_EXISTING_REFUSE}},
  };
  const Result r = launch::Run({.ranks = 4, .deadline_s = 60}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch / "root", .timeout_ms = 15'000});
    for (const OtherOption& c : cases) {
      rank.Barrier("next field");
      const Outcome o = t.Save(rank.is(1) ? c.other : c.common);
      EXPECT_STATUS(o, CKPT_ERR_MISMATCH);
      EXPECT_EQ(o.cause.field, c.field) << o;
      EXPECT_SAYS(o, c.field);
      EXPECT_SAYS(o, "rank 1");
      EXPECT_FALSE(o.RankSet(CKPT_RANK_DISAGREES).empty()) << o;
      Publish(rank, c.field, o);
      EXPECT_LT(o.seconds, kAtOnce);
      if (c.field == "tag") {
        EXPECT_SAYS(o, "blue");
        EXPECT_SAYS(o, "green");
      }
      rank.Barrier("all failed");
      EXPECT_OK(t.Save(c.common.step + 10));
    }
  });
  EXPECT_TRUE(r.ok()) << r.report();
  for (const OtherOption& c : cases) ExpectSame(r, c.field);
}

TEST(CallingDiscipline, A05_AnotherJobWideSettingIsNamedAtInit) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root",
             .config = rank.is(1) ? "max_file_bytes=1MiB\n" : "max_file_bytes=2MiB\n",
             .timeout_ms = 8000});
    EXPECT_STATUS(ctx.init(), CKPT_ERR_MISMATCH);
    EXPECT_SAYS(ctx.init(), "max_file_bytes");
    EXPECT_SAYS(ctx.init(), "rank 1");
    EXPECT_LT(ctx.init().seconds, kAtOnce);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(CallingDiscipline, A06_NewestAgainstAStepIsAMismatchThatSaysWhoAskedForWhat) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 15'000});
    EXPECT_OK(t.Save(100));
    EXPECT_OK(t.Save(200));
    t.Clear();
    rank.Barrier("saved");
    const Outcome o = rank.is(0) ? t.Load() : t.Load({.step = 100});
    EXPECT_STATUS(o, CKPT_ERR_MISMATCH);
    EXPECT_LT(o.seconds, 1);
    EXPECT_SAYS(o, "rank 0");
    EXPECT_SAYS(o, "rank 1");
    EXPECT_SAYS(o, "100");
    EXPECT_TRUE(o.Says("newest") || o.Says("latest")) << o;
    EXPECT_TRUE(t.Untouched());
    Publish(rank, "mismatch", o);
    rank.Barrier("both failed");
    EXPECT_OK(t.Load({.step = 100}));
    EXPECT_TRUE(t.Holds(0));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "mismatch");
}

void MakeLeftover(const std::string& root, int64_t step) {
  std::filesystem::create_directories(StepPath(root, step) + "/sub");
  safetensors::WriteBytes(StepPath(root, step) + "/model.safetensors", "half of a file");
  safetensors::WriteBytes(StepPath(root, step) + "/sub/rest", "x");
}

TEST(CallingDiscipline, A11_AnUncommittedLeftoverIsReplacedAndRefusalIsOneDecision) {
  Scratch scratch;
  const std::string root = scratch / "root";
  MakeLeftover(root, 30);
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 3000}, 5);
    EXPECT_OK(t.Save(30));
    t.Set(1000);
    const Outcome refused = t.Save({.step = 30, .on_existing = CKPT_EXISTING_REFUSE});
    EXPECT_STATUS(refused, CKPT_ERR_EXISTS);
    EXPECT_SAYS(refused, "30");
    Publish(rank, "refused", refused);
    t.Clear();
    EXPECT_OK(t.Load({.step = 30}));
    EXPECT_TRUE(t.Holds(5));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "refused");
  ExpectNoLeftovers(root);
  EXPECT_FALSE(std::filesystem::exists(StepPath(root, 30) + "/sub"));
  ExpectFileHolds(root, 30, 5);
}

}  // namespace
}  // namespace ckpt_test
