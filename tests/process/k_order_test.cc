// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md K07: calls in the wrong order, several contexts, an incomplete world.
#include "process/process.h"

namespace ckpt_test {
namespace {

TEST(OrderOfCalls, K07_SaveLoadAndFinalizeWithoutAContextAreInvalidArguments) {
  const Result r = launch::Run({}, [](Rank&) {
    const Api& lib = Lib();
    ckpt_error* e = nullptr;
    ckpt_save_options save{};
    save.struct_size = sizeof save;
    ckpt_load_options load{};
    load.struct_size = sizeof load;
    const auto call = [&](ckpt_status status) {
      Outcome o = Take(status, e);
      e = nullptr;
      EXPECT_FALSE(o.message.empty());
      return o;
    };
    EXPECT_STATUS(call(lib.ckpt_save_collective(nullptr, nullptr, &save, nullptr, nullptr, &e)),
                  CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_STATUS(call(lib.ckpt_load(nullptr, nullptr, &load, nullptr, nullptr, &e)),
                  CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_STATUS(call(lib.ckpt_finalize(nullptr, 1, &e)), CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_STATUS(call(lib.ckpt_wait(nullptr, CKPT_AT_COMMITTED, 0, &e)),
                  CKPT_ERR_INVALID_ARGUMENT);
    ckpt_state* state = nullptr;
    EXPECT_STATUS(call(lib.ckpt_state_new(nullptr, &state, &e)), CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(state, nullptr);
    lib.ckpt_ctx_free(nullptr);
    lib.ckpt_state_free(nullptr);
    lib.ckpt_request_free(nullptr);
    lib.ckpt_reader_free(nullptr);
    lib.ckpt_error_free(nullptr);
    EXPECT_EQ(lib.ckpt_save_collective(nullptr, nullptr, &save, nullptr, nullptr, nullptr),
              CKPT_ERR_INVALID_ARGUMENT);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(OrderOfCalls, K07_TwoContextsWorkIndependently) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer a(rank, {.root = scratch / "a", .name = "a"}, 1);
    Trainer b(rank, {.root = scratch / "b", .name = "b"}, 2);
    EXPECT_OK(a.Save(10));
    EXPECT_OK(b.Save(20));
    EXPECT_OK(a.ctx.Finalize());
    EXPECT_OK(b.Save(21));
    b.Clear();
    EXPECT_OK(b.Load({.step = 20}));
    EXPECT_TRUE(b.Holds(2));
    EXPECT_OK(b.ctx.Finalize());
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectFileHolds(scratch / "a", 10, 1);
  ExpectFileHolds(scratch / "b", 21, 2);
}

TEST(OrderOfCalls, K07_TwoLiveContextsOfOneNameAndALaterThirdWork) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    {
      Trainer first(rank, {.root = scratch / "a"}, 1), second(rank, {.root = scratch / "b"}, 2);
      EXPECT_OK(second.Save(1));
      EXPECT_OK(first.Save(1));
      EXPECT_OK(first.ctx.Finalize());
      EXPECT_OK(second.ctx.Finalize());
    }
    Trainer third(rank, {.root = scratch / "a"}, 3);
    EXPECT_OK(third.Load());
    EXPECT_TRUE(third.Holds(1));
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(OrderOfCalls, K07_EverythingAfterFinalizeIsAStateErrorAndFreesWork) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch / "root"});
    EXPECT_OK(t.Save(1));
    EXPECT_OK(t.ctx.Finalize());
    EXPECT_STATUS(t.Save(2), CKPT_ERR_STATE);
    EXPECT_STATUS(t.Load(), CKPT_ERR_STATE);
    EXPECT_STATUS(t.ctx.Finalize(), CKPT_ERR_STATE);
    int64_t step = 0;
    EXPECT_STATUS(t.ctx.Latest(&step), CKPT_ERR_STATE);
    ckpt_state* state = nullptr;
    EXPECT_EQ(Lib().ckpt_state_new(t.ctx.get(), &state, nullptr), CKPT_ERR_STATE);
    t.ctx.Phase("after", 3);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(scratch / "root", "step-"), std::set{StepName(1)});
}

TEST(OrderOfCalls, K07_SaveAgainstFinalizeIsAMismatchOnBoth) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch / "root", .timeout_ms = 15'000});
    const Outcome o = rank.is(0) ? t.Save(1) : t.ctx.Finalize(15'000);
    EXPECT_STATUS(o, CKPT_ERR_MISMATCH);
    EXPECT_SAYS(o, "finalize");
    EXPECT_LT(o.seconds, 4);
    rank.Barrier("end");
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(OrderOfCalls, K07_ARankThatLeftIsNamedAtOnce) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch / "root", .timeout_ms = 15'000});
    EXPECT_OK(t.Save(1));
    rank.Barrier("saved");
    if (rank.is(2)) {
      t.ctx.Free();
      return rank.Barrier("end");
    }
    const Outcome o = t.Save(2);
    EXPECT_STATUS(o, CKPT_ERR_PARTICIPANTS);
    EXPECT_EQ(o.RankSet(CKPT_RANK_LEFT), Ranks{2}) << o;
    EXPECT_LT(o.seconds, 4);
    rank.Barrier("end");
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

// WORLD_SIZE=4, three ranks come. `absent` is the one that does not.
void ExpectInitNames(int absent) {
  std::vector<launch::Env> env(3);
  for (int i = 0; i < 3; ++i) {
    const std::string rank = std::to_string(i < absent ? i : i + 1);
    env[i] = {{"RANK", rank}, {"LOCAL_RANK", rank}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "4"}};
  }
  Scratch scratch;
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30, .rank_env = env}, [&](Rank&) {
    Ctx ctx({.root = scratch / "root", .timeout_ms = 2000});
    EXPECT_STATUS(ctx.init(), CKPT_ERR_PARTICIPANTS);
    EXPECT_EQ(ctx.get(), nullptr);
    EXPECT_EQ(ctx.init().RankSet(), Ranks{absent}) << ctx.init();
    EXPECT_LT(ctx.init().seconds, 4);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(OrderOfCalls, K07_InitOfAnIncompleteWorldTimesOutAndNamesTheAbsentRank) { ExpectInitNames(3); }
TEST(OrderOfCalls, K07_InitWithoutRank0TimesOutAndNamesIt) { ExpectInitNames(0); }

}  // namespace
}  // namespace ckpt_test
