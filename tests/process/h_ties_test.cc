// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section H, names: given twice (H04), renamed (H08), tied (H09).
#include "process/process.h"

namespace ckpt_test {
namespace {

TEST(Names, H04_ATensorGivenTwiceByOneRankIsItsErrorOnAllRanks) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    std::vector<float> data = Values(8);
    for (const bool whole : {true, false}) {
      State state(ctx);
      if (rank.is(1) && whole) state.Whole("w", {8}, data).Whole("w", {8}, data);
      if (rank.is(1) && !whole) {
        std::vector<float> part = Values(5);
        state.Box("w", {8}, {0}, {5}, part).Box("w", {8}, {3}, {5}, part);
      }
      const Outcome o = Save(ctx, state, 1);
      EXPECT_STATUS(o, CKPT_ERR_COVERAGE);
      EXPECT_EQ(o.cause.name, "w") << o;
      EXPECT_EQ(o.cause.rank, 1) << o;
      EXPECT_SAYS(o, "rank 1");
      Publish(rank, whole ? "whole" : "parts", o);
    }
    State state(ctx);
    state.Whole("w", {8}, data);
    EXPECT_OK(Save(ctx, state, 1));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "whole");
  ExpectSame(r, "parts");
}

TEST(Names, SeveralShardsOfOneTensorOnARankMakeItWhole) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    State state(ctx);
    std::vector<std::vector<float>> rows;  // every second one is this rank's
    for (int64_t i = rank.id(); i < 10; i += 2) rows.push_back(BoxValues(3, {i, 0}, {1, 3}));
    for (int64_t k = 0; k < 5; ++k)
      state.Box("w", {10, 3}, {2 * k + rank.id(), 0}, {1, 3}, rows[k]);
    EXPECT_OK(Save(ctx, state, 1));
    for (auto& row : rows) row.assign(3, kFill);
    EXPECT_OK(Load(ctx, state));
    for (int64_t k = 0; k < 5; ++k)
      EXPECT_EQ(rows[k], BoxValues(3, {2 * k + rank.id(), 0}, {1, 3})) << k;
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(safetensors::Open(StepPath(root, 1)).tensors.at("w").Floats(), Values(30));
}

TEST(Names, H08_ARenamedPrefixIsAppliedOnLoadAndItsAbsenceIsHinted) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    std::vector<float> a = Values(4), b = Fill(4);
    State wrapped(ctx), plain(ctx), mapped(ctx);
    wrapped.Whole("_orig_mod.a", {4}, a);
    EXPECT_OK(Save(ctx, wrapped, 1));
    plain.Whole("a", {4}, b);
    const Outcome o = Load(ctx, plain);
    EXPECT_STATUS(o, CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(o.cause.name, "a") << o;
    EXPECT_SAYS(o, "_orig_mod.a");
    EXPECT_EQ(plain.Missing(), std::vector<std::string>{"a"});
    EXPECT_EQ(b, Fill(4));
    Publish(rank, "missing", o);
    mapped.Whole("a", {4}, b);
    EXPECT_OK(mapped.Rename("", "_orig_mod."));
    EXPECT_OK(Load(ctx, mapped));
    EXPECT_EQ(b, Values(4));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "missing");
}

TEST(Names, H08_ARenamedPrefixIsAppliedOnSaveAndCollisionsAreErrors) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<float> a = Values(4), b = Values(4, 9);
    State wrapped(ctx), both(ctx);
    wrapped.Whole("_orig_mod.a", {4}, a).Whole("module._orig_mod.b", {4}, b);
    EXPECT_OK(wrapped.Rename("_orig_mod.", ""));
    EXPECT_OK(wrapped.Rename("module._orig_mod.", ""));
    EXPECT_OK(Save(ctx, wrapped, 1));
    both.Whole("a", {4}, a);
    if (rank.is(1)) {
      both.Whole("_orig_mod.a", {4}, b);
      EXPECT_OK(both.Rename("_orig_mod.", ""));
    }
    const Outcome o = Save(ctx, both, 2);
    EXPECT_STATUS(o, CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(o.cause.name, "a") << o;
    EXPECT_EQ(o.cause.rank, 1) << o;
    EXPECT_SAYS(o, "_orig_mod.a");
    Publish(rank, "collision", o);
    State empty(ctx);
    empty.Whole("a", {4}, a);
    EXPECT_OK(empty.Rename("a", ""));
    EXPECT_STATUS(Save(ctx, empty, 2), CKPT_ERR_INVALID_ARGUMENT);
  });
  ASSERT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "collision");
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_EQ(group.tensors.size(), 2u);
  EXPECT_EQ(group.tensors.at("a").Floats(), Values(4));
  EXPECT_EQ(group.tensors.at("b").Floats(), Values(4, 9));
}

// embed.w [32, 8], cut by rows over the ranks.
struct Tied {
  Tied(Ctx& ctx, Rank& rank) : part(Even(32, rank.id(), rank.size())), state(ctx) {
    data = BoxValues(8, {part.offset, 0}, {part.count, 8});
    state.Box("embed.w", {32, 8}, {part.offset, 0}, {part.count, 8}, data);
  }
  Part part;
  std::vector<float> data;
  State state;
};

TEST(Ties, H09_ATiedTensorIsStoredOnceAndLoadsUnderBothNames) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    Tied tied(ctx, rank);
    EXPECT_OK(tied.state.TryAlias("lm_head.w", "embed.w"));
    EXPECT_OK(tied.state.TryAlias("out.w", "lm_head.w"));  // of an alias
    EXPECT_OK(Save(ctx, tied.state, 1));
    std::fill(tied.data.begin(), tied.data.end(), kFill);
    EXPECT_OK(Load(ctx, tied.state));
    EXPECT_EQ(tied.data, BoxValues(8, {tied.part.offset, 0}, {tied.part.count, 8}));
    EXPECT_TRUE(tied.state.Unused().empty());
    std::vector<float> embed = Fill(256), head = Fill(256), out = Fill(256);
    State apart(ctx);
    apart.Whole("embed.w", {32, 8}, embed).Whole("lm_head.w", {32, 8}, head);
    apart.Whole("out.w", {32, 8}, out);
    EXPECT_OK(Load(ctx, apart));
    for (const auto* v : {&embed, &head, &out}) EXPECT_EQ(*v, Values(256));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_EQ(group.tensors.size(), 1u);  // the index lacks the aliases
  EXPECT_EQ(group.total_size, 1024u);
  const auto file = safetensors::Read(StepPath(root, 1) + "/model.safetensors");
  EXPECT_EQ(file.metadata.at("lm_head.w"), "embed.w");
  EXPECT_EQ(file.metadata.at("out.w"), "embed.w");
  EXPECT_EQ(file.data_bytes, 1024u);
}

// Nothing is guessed from pointers: equal and overlapping memory are tensors of their own.
TEST(Ties, H09_SharedMemoryThatIsNotDeclaredIsStoredUnderEachName) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<float> data = Values(12);
    State state(ctx);
    state.Add({.name = "a", .shape = {8}, .data = data.data()});
    state.Add({.name = "equal", .shape = {8}, .data = data.data()});
    state.Add({.name = "overlapping", .shape = {8}, .data = data.data() + 4});
    EXPECT_OK(Save(ctx, state, 1));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_EQ(group.total_size, 96u);
  EXPECT_EQ(group.tensors.at("a").Floats(), Values(8));
  EXPECT_EQ(group.tensors.at("equal").Floats(), Values(8));
  EXPECT_EQ(group.tensors.at("overlapping").Floats(), Values(8, 4));
}

TEST(Ties, H09_DuplicateStoresThemUnderEveryName) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root, .config = "ties=duplicate\n"});
    ASSERT_INIT(ctx);
    Tied tied(ctx, rank);
    EXPECT_OK(tied.state.TryAlias("lm_head.w", "embed.w"));
    EXPECT_OK(Save(ctx, tied.state, 1));
    std::fill(tied.data.begin(), tied.data.end(), kFill);
    EXPECT_OK(Load(ctx, tied.state, {.flags = CKPT_LOAD_NO_UNUSED}));
    EXPECT_EQ(tied.data, BoxValues(8, {tied.part.offset, 0}, {tied.part.count, 8}));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_EQ(group.tensors.size(), 2u);
  EXPECT_EQ(group.tensors.at("embed.w").Floats(), Values(256));
  EXPECT_EQ(group.tensors.at("lm_head.w").Floats(), Values(256));
  EXPECT_EQ(safetensors::Read(StepPath(root, 1) + "/model.safetensors").metadata.count("lm_head.w"),
            0u);
}

// A checkpoint that has the tensor under the other name only, as another trainer may keep it.
TEST(Ties, H09_TheOtherNameWillDoWhenTheCheckpointHasOnlyThat) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    std::vector<float> head = Values(256);
    State other(ctx);
    other.Whole("lm_head.w", {32, 8}, head);
    EXPECT_OK(Save(ctx, other, 1));
    Tied tied(ctx, rank);
    std::fill(tied.data.begin(), tied.data.end(), kFill);
    EXPECT_OK(tied.state.TryAlias("lm_head.w", "embed.w"));
    EXPECT_OK(Load(ctx, tied.state, {.flags = CKPT_LOAD_NO_UNUSED}));
    EXPECT_EQ(tied.data, BoxValues(8, {tied.part.offset, 0}, {tied.part.count, 8}));
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

// Ties of the state and of the checkpoint compose: x is y's other name here, y is z's there.
TEST(Ties, H09_TiesOfTheStateAndOfTheCheckpointCompose) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    std::vector<float> z = Values(8), x = Fill(8), a = Fill(8);
    State saved(ctx), chained(ctx), long_chain(ctx);
    saved.Whole("z", {8}, z);
    EXPECT_OK(saved.TryAlias("y", "z"));
    EXPECT_OK(Save(ctx, saved, 1));
    chained.Whole("x", {8}, x);
    EXPECT_OK(chained.TryAlias("y", "x"));
    EXPECT_OK(Load(ctx, chained));
    EXPECT_EQ(x, Values(8));
    long_chain.Whole("a", {8}, a);
    EXPECT_OK(long_chain.TryAlias("b", "a"));
    EXPECT_OK(long_chain.TryAlias("z", "b"));
    EXPECT_OK(Load(ctx, long_chain, {.flags = CKPT_LOAD_NO_UNUSED}));
    EXPECT_EQ(a, Values(8));
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

// Untied after a while: from then on both are stored, each with its own values.
TEST(Ties, H09_ATieThatIsNoLongerDeclaredIsNotKept) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    Tied tied(ctx, rank);
    EXPECT_OK(tied.state.TryAlias("lm_head.w", "embed.w"));
    EXPECT_OK(Save(ctx, tied.state, 1));
    std::vector<float> embed = Values(256), head = Values(256, 1000);
    State apart(ctx);
    apart.Whole("embed.w", {32, 8}, embed).Whole("lm_head.w", {32, 8}, head);
    EXPECT_OK(Save(ctx, apart, 2));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 2));
  EXPECT_EQ(group.tensors.at("lm_head.w").Floats(), Values(256, 1000));
  EXPECT_EQ(safetensors::Read(StepPath(root, 2) + "/model.safetensors").metadata.count("lm_head.w"),
            0u);
}

TEST(Ties, H09_TiesThatDisagreeOrStandForNothingAreErrorsOnAllRanks) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    const auto attempt = [&](const std::string& key, ckpt_status want, auto&& declare) {
      std::vector<float> a = Values(4), b = Values(4);
      State state(ctx);
      state.Whole("a", {4}, a).Whole("b", {4}, b);
      declare(state, a);
      const Outcome o = Save(ctx, state, 1);
      EXPECT_EQ(o.status, want) << key << "\n" << o;
      EXPECT_EQ(o.cause.name, "x") << o;
      Publish(rank, key, o);
    };
    attempt("disagree", CKPT_ERR_MISMATCH, [&](State& state, std::vector<float>&) {
      EXPECT_OK(state.TryAlias("x", rank.is(0) ? "a" : "b"));
    });
    attempt("nothing", CKPT_ERR_INVALID_ARGUMENT,
            [&](State& state, std::vector<float>&) { EXPECT_OK(state.TryAlias("x", "no.such")); });
    attempt("circle", CKPT_ERR_INVALID_ARGUMENT, [&](State& state, std::vector<float>&) {
      EXPECT_OK(state.TryAlias("x", "y"));
      EXPECT_OK(state.TryAlias("y", "x"));
    });
    attempt("tensor too", CKPT_ERR_MISMATCH, [&](State& state, std::vector<float>& data) {
      if (rank.is(0)) EXPECT_OK(state.TryAlias("x", "a"));
      if (rank.is(1)) state.Whole("x", {4}, data);
    });
  });
  EXPECT_TRUE(r.ok()) << r.report();
  for (const char* key : {"disagree", "nothing", "circle", "tensor too"}) ExpectSame(r, key);
}

// Only one rank declares it: as any name, a tie may be given by some ranks.
TEST(Ties, H09_OneRankMayDeclareTheTie) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    Tied tied(ctx, rank);
    if (rank.is(1)) EXPECT_OK(tied.state.TryAlias("lm_head.w", "embed.w"));
    EXPECT_OK(Save(ctx, tied.state, 1));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto file = safetensors::Read(StepPath(root, 1) + "/model.safetensors");
  EXPECT_EQ(file.metadata.at("lm_head.w"), "embed.w");
}

}  // namespace
}  // namespace ckpt_test
