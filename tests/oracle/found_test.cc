// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the oracle has found, the smallest case of each.
#include "process/process.h"

namespace ckpt_test {
namespace {

constexpr int kRanks = 2;

Result RunOn(const std::string& root, const std::string& config,
             const std::function<void(Rank&, Ctx&)>& body) {
  return launch::Run({.ranks = kRanks, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root, .config = config});
    ASSERT_INIT(ctx);
    body(rank, ctx);
  });
}

// Only one link was followed. Tied weights load "also from a checkpoint that has only the alias".
TEST(Found, AChainOfTiesIsFollowedOnLoad) {
  const Scratch scratch;
  const Result r = RunOn(scratch / "root", "", [](Rank& rank, Ctx& ctx) {
    std::vector<float> head = Values(4), embed = Fill(4);
    State saved(ctx), into(ctx);
    saved.Whole("head", {4}, head);
    EXPECT_OK(Save(ctx, saved, 1));
    into.Whole("embed", {4}, embed);
    EXPECT_OK(into.TryAlias("between", "embed"));
    EXPECT_OK(into.TryAlias("head", "between"));
    const Outcome o = Load(ctx, into);
    rank.Put("status", StatusName(o.status));
    EXPECT_TRUE(!o.ok() || embed == head);
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(r.get(0, "status"), "CKPT_OK");
}

// What ties=duplicate stored under every name, loaded with the ties that it was saved with.
TEST(Found, AChainOfDuplicatedTiesIsUsedByTheLoadThatDeclaresIt) {
  const Scratch scratch;
  const Result r = RunOn(scratch / "root", "ties=duplicate\n", [](Rank& rank, Ctx& ctx) {
    std::vector<float> embed = Values(4);
    State state(ctx);
    state.Whole("embed", {4}, embed);
    EXPECT_OK(state.TryAlias("between", "embed"));
    EXPECT_OK(state.TryAlias("head", "between"));
    EXPECT_OK(Save(ctx, state, 1));
    EXPECT_OK(Load(ctx, state));
    rank.Put("unused", testing::PrintToString(state.Unused()));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(r.get(0, "unused"), "{}");
}

// The checkpoint records "head" as a tie of "embed"; the state knows it as one of "new".
TEST(Found, ARecordedTieIsFoundForTheTensorThatItIsDeclaredATieOf) {
  const Scratch scratch;
  const Result r = RunOn(scratch / "root", "", [](Rank& rank, Ctx& ctx) {
    std::vector<float> embed = Values(4), other = Fill(4);
    State saved(ctx), into(ctx);
    saved.Whole("embed", {4}, embed);
    EXPECT_OK(saved.TryAlias("head", "embed"));
    EXPECT_OK(Save(ctx, saved, 1));
    into.Whole("new", {4}, other);
    EXPECT_OK(into.TryAlias("head", "new"));
    const Outcome o = Load(ctx, into);
    rank.Put("status", StatusName(o.status));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(r.get(0, "status"), "CKPT_OK");
}

// A name is unique in its group only.
TEST(Found, NamesMissingInTwoGroupsAreTwo) {
  const Scratch scratch;
  const Result r = RunOn(scratch / "root", "", [](Rank& rank, Ctx& ctx) {
    std::vector<float> a = Values(4);
    State saved(ctx), into(ctx);
    EXPECT_OK(Save(ctx, saved, 1));
    for (const char* group : {"model", "optimizer"})
      into.Add({.name = "w", .shape = {4}, .data = a.data(), .group = group});
    const Outcome o = Load(ctx, into, {.flags = CKPT_LOAD_ALLOW_MISSING});
    rank.Put("missing", std::to_string(o.result.missing));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(r.get(0, "missing"), "2");
}

// Escaped and cut it is in the message only.
TEST(Found, CauseNameOfARefusedTensorIsItsName) {
  const Scratch scratch;
  const Result r = RunOn(scratch / "root", "", [](Rank& rank, Ctx& ctx) {
    State state(ctx);
    const std::string name = "tab\t" + std::string(300, 'n');
    const Outcome o = state.TryAdd({.name = name, .shape = {-4}});
    rank.Put("name", o.cause.name == name ? "same" : o.cause.name);
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(r.get(0, "name"), "same");
}

}  // namespace
}  // namespace ckpt_test
