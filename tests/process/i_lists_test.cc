// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md: what may be missing (G17, I01, I03, I06, I08, I09), blobs kept as they are (H14), other
// layouts (J02), state that every rank must give (J05).
#include <mutex>

#include "process/process.h"

namespace ckpt_test {
namespace {

using Names = std::vector<std::string>;

// a and b of step 1, replicated.
void SaveAAndB(Ctx& ctx) {
  std::vector<float> a = Values(4), b = Values(4, 10);
  State state(ctx);
  state.Whole("a", {4}, a).Whole("b", {4}, b);
  EXPECT_OK(Save(ctx, state, 1));
}

TEST(PartialLoad, G17_AMissingNameIsAnErrorUnlessAllowedAndIsListed) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    SaveAAndB(ctx);
    std::vector<float> a = Fill(4), c = Fill(4);
    State state(ctx);
    state.Whole("a", {4}, a).Whole("c", {4}, c);
    const Outcome strict = Load(ctx, state);
    EXPECT_STATUS(strict, CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(strict.cause.name, "c") << strict;
    EXPECT_EQ(strict.result.missing, 1u);
    EXPECT_EQ(strict.result.tensors, 0u);
    EXPECT_EQ(state.Missing(), Names{"c"});
    EXPECT_EQ(state.Unused(), Names{"b"});
    EXPECT_EQ(a, Fill(4));
    Publish(rank, "strict", strict);
    const Outcome allowed = Load(ctx, state, {.flags = CKPT_LOAD_ALLOW_MISSING});
    EXPECT_OK(allowed);
    EXPECT_EQ(allowed.result.tensors, 1u);
    EXPECT_EQ(allowed.result.missing, 1u);
    EXPECT_EQ(allowed.result.unused, 1u);
    EXPECT_EQ(state.Missing(), Names{"c"});
    EXPECT_EQ(a, Values(4));
    EXPECT_EQ(c, Fill(4));
    State nothing(ctx);
    const Outcome none = Load(ctx, nothing);
    EXPECT_OK(none);
    EXPECT_EQ(none.result.tensors, 0u);
    EXPECT_EQ(none.result.bytes, 0u);
    EXPECT_EQ(nothing.Unused(), (Names{"a", "b"}));
    const Outcome unused =
        Load(ctx, state, {.flags = CKPT_LOAD_ALLOW_MISSING | CKPT_LOAD_NO_UNUSED});
    EXPECT_STATUS(unused, CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(unused.cause.name, "b") << unused;
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "strict");
}

TEST(PartialLoad, I09_NamesThatAllDifferAreAnErrorAndFillNothing) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    std::mutex mu;
    Names warnings;
    Ctx ctx({.root = scratch / "root", .on_event = [&](const ckpt_event& event) {
               const std::lock_guard<std::mutex> lock(mu);
               if (event.kind == CKPT_EVENT_WARNING) warnings.emplace_back(event.text);
               return 0;
             }});
    ASSERT_INIT(ctx);
    SaveAAndB(ctx);
    std::vector<float> x = Fill(4), y = Fill(4), z = Fill(4);
    State state(ctx);
    state.Whole("x", {4}, x).Whole("y", {4}, y).Whole("z", {4}, z);
    const Outcome o = Load(ctx, state);
    EXPECT_STATUS(o, CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(o.result.tensors, 0u);
    EXPECT_EQ(o.result.missing, 3u);
    EXPECT_EQ(state.Missing(), (Names{"x", "y", "z"}));
    for (const auto* v : {&x, &y, &z}) EXPECT_EQ(*v, Fill(4));
    Publish(rank, "all", o);
    const Outcome allowed = Load(ctx, state, {.flags = CKPT_LOAD_ALLOW_MISSING});
    EXPECT_OK(allowed);
    EXPECT_EQ(allowed.result.tensors, 0u);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("none of the 3"), std::string::npos) << warnings[0];
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "all");
}

TEST(PartialLoad, I03_AnAdapterAloneIsLoadedWithTheBaseOptional) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    std::vector<float> lora = Values(4), base = Fill(4);
    State adapter(ctx);
    adapter.Whole("lora.A", {4}, lora);
    EXPECT_OK(Save(ctx, adapter, 1));
    lora = std::vector<float>(Fill(4));
    State both(ctx);
    both.Whole("lora.A", {4}, lora);
    both.Add({.name = "base.w", .shape = {4}, .data = base.data(), .flags = CKPT_TENSOR_OPTIONAL});
    EXPECT_OK(Load(ctx, both));
    EXPECT_EQ(lora, Values(4));
    EXPECT_EQ(base, Fill(4));
    EXPECT_EQ(both.Missing(), Names{"base.w"});
    // The other way: what is not required may be missing, what is may not.
    State required(ctx);
    required.Add(
        {.name = "lora.B", .shape = {4}, .data = lora.data(), .flags = CKPT_TENSOR_REQUIRED});
    const Outcome o = Load(ctx, required, {.flags = CKPT_LOAD_ALLOW_MISSING});
    EXPECT_STATUS(o, CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(o.cause.name, "lora.B") << o;
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(RequiredNames, I01_ARequiredTensorThatNobodyHoldsIsMissingAtSave) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    std::vector<float> a = Values(4), nothing, frozen = Values(4);
    const auto require = [&](State& state, const std::string& name) {
      state.Add({.name = name,
                 .shape = {4},
                 .kind = CKPT_SHARD_BOX,
                 .offset = {0},
                 .extent = {0},
                 .flags = CKPT_TENSOR_REQUIRED});
    };
    State state(ctx);
    state.Whole("a", {4}, a);
    for (const char* name : {"a", "frozen"}) require(state, name);
    const Outcome o = Save(ctx, state, 1);
    EXPECT_STATUS(o, CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(o.cause.name, "frozen") << o;
    EXPECT_SAYS(o, "frozen");
    Publish(rank, "missing", o);
    EXPECT_EQ(ListOf(scratch / "root", "step-"), std::set<std::string>{});
    rank.Barrier("looked");
    if (rank.is(1)) state.Whole("frozen", {4}, frozen);
    EXPECT_OK(Save(ctx, state, 1));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "missing");
}

TEST(SomeRanksOnly, I06_NamesOfSomeRanksAreLegalAndNothingIsInvented) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<float> m = Values(4), half = Values(2), v = Fill(4);
    State one(ctx), gap(ctx), never(ctx);
    if (rank.is(0)) one.Whole("opt.m", {4}, m);
    EXPECT_OK(Save(ctx, one, 1));
    if (rank.is(0)) gap.Box("opt.m", {4}, {0}, {2}, half);
    const Outcome sharded = Save(ctx, gap, 2);
    EXPECT_STATUS(sharded, CKPT_ERR_COVERAGE);
    EXPECT_EQ(sharded.cause.name, "opt.m") << sharded;
    never.Whole("opt.v", {4}, v);
    const Outcome o = Load(ctx, never);
    EXPECT_STATUS(o, CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(o.cause.name, "opt.v") << o;
    EXPECT_EQ(v, Fill(4));
    Publish(rank, "never", o);
  });
  ASSERT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "never");
  EXPECT_EQ(safetensors::Open(StepPath(root, 1)).tensors.at("opt.m").Floats(), Values(4));
}

std::vector<uint8_t> Bytes(size_t n) {
  std::vector<uint8_t> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(i * 131 + i / 256);
  return out;
}

TEST(Blobs, I08_ExtraStateOfAnySizeIsKeptAndAnOptionalOneMayBeAbsent) {
  Scratch scratch;
  const std::vector<size_t> sizes = {0, 1, 65537};
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    std::vector<std::vector<uint8_t>> blobs;
    for (size_t n : sizes) blobs.push_back(Bytes(n));
    State state(ctx);
    for (size_t k = 0; k < sizes.size(); ++k)
      state.Blob(CKPT_BLOB_SHARED, std::to_string(k) + "._extra_state", blobs[k]);
    EXPECT_OK(Save(ctx, state, 1));
    for (auto& blob : blobs) std::fill(blob.begin(), blob.end(), 0xEE);
    EXPECT_OK(Load(ctx, state));
    for (size_t k = 0; k < sizes.size(); ++k) EXPECT_EQ(blobs[k], Bytes(sizes[k]));
    uint8_t absent[4] = {7, 7, 7, 7};
    uint64_t actual = 0;
    State optional(ctx);
    EXPECT_OK(optional.TryBlob(CKPT_BLOB_SHARED, "x._extra_state", absent, 4, CKPT_BLOB_OPTIONAL,
                               &actual));
    EXPECT_OK(Load(ctx, optional));
    EXPECT_EQ(actual, UINT64_MAX);
    EXPECT_EQ(absent[0], 7);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Blobs, H14_SideFilesAreKeptByteForByteThroughLoadAndResave) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const std::string unicode = "{\"base_model_name_or_path\": \"\xD0\x96 caf\xC3\xA9\"}\n";
  const std::vector<std::pair<std::string, std::vector<uint8_t>>> files = {
      {"adapter_config.json", {unicode.begin(), unicode.end()}},
      {"empty.json", {}},
      {"tokenizer.model", Bytes(1 << 20)}};
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    auto held = files;
    State state(ctx);
    if (rank.is(0))
      for (auto& [name, bytes] : held) state.Blob(CKPT_BLOB_FILE, name, bytes);
    EXPECT_OK(Save(ctx, state, 1));
    for (auto& [name, bytes] : held) std::fill(bytes.begin(), bytes.end(), 0);
    EXPECT_OK(Load(ctx, state));
    EXPECT_OK(Save(ctx, state, 2));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  for (int64_t step : {1, 2})
    for (const auto& [name, bytes] : files)
      EXPECT_EQ(safetensors::ReadBytes(StepPath(root, step) + "/" + name),
                std::string(bytes.begin(), bytes.end()))
          << name;
}

TEST(Blobs, J05_ARequiredBlobThatARankForgetsIsAnErrorThatNamesIt) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    uint8_t loader = 7;
    State state(ctx);
    if (!rank.is(3)) {
      EXPECT_OK(state.TryBlob(CKPT_BLOB_PER_RANK, "loader", &loader, 1, CKPT_BLOB_REQUIRED));
    }
    const Outcome o = Save(ctx, state, 1);
    EXPECT_STATUS(o, CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(o.cause.rank, 3) << o;
    EXPECT_EQ(o.cause.name, "loader") << o;
    Publish(rank, "forgot", o);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "forgot");
}

TEST(Blobs, J05_AnotherLayoutNoteIsAWarningOnLoad) {
  Scratch scratch;
  const std::string root = scratch / "root";
  for (const char* note : {"dp=2", "tp=2"}) {
    const bool first = note[0] == 'd';
    const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
      Names warnings;
      Ctx ctx({.root = root, .layout_note = note, .on_event = [&](const ckpt_event& event) {
                 if (event.kind == CKPT_EVENT_WARNING) warnings.emplace_back(event.text);
                 return 0;
               }});
      ASSERT_INIT(ctx);
      uint8_t loader = static_cast<uint8_t>(rank.id());
      State state(ctx);
      EXPECT_OK(state.TryBlob(CKPT_BLOB_PER_RANK, "loader", &loader, 1));
      if (first) EXPECT_OK(Save(ctx, state, 1));
      EXPECT_OK(Load(ctx, state));
      ASSERT_EQ(warnings.size(), first ? 0u : 1u);
      if (first) return;
      EXPECT_NE(warnings[0].find("dp=2"), std::string::npos) << warnings[0];
      EXPECT_NE(warnings[0].find("tp=2"), std::string::npos) << warnings[0];
    });
    EXPECT_TRUE(r.ok()) << r.report();
  }
}

// m and v of W [8, 12]: rows over `rows` parts, columns over `columns` parts; ranks beyond that
// hold copies (data parallel).
struct Optimizer {
  Optimizer(Ctx& ctx, Rank& rank, int rows, int columns) : state(ctx) {
    const int place = rank.id() % (rows * columns);
    const Part r = Even(8, place / columns, rows), c = Even(12, place % columns, columns);
    offset = {r.offset, c.offset};
    extent = {r.count, c.count};
    m = BoxValues(12, offset, extent, 100);
    v = BoxValues(12, offset, extent, 500);
    state.Box("W.m", {8, 12}, offset, extent, m).Box("W.v", {8, 12}, offset, extent, v);
  }
  Dims offset, extent;
  std::vector<float> m, v;
  State state;
};

TEST(OtherLayouts, J02_TheOptimizerLoadsUnderAnotherMixOfParallelism) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result saved = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    Optimizer dp2_tp2(ctx, rank, 1, 2);
    EXPECT_OK(Save(ctx, dp2_tp2.state, 1));
  });
  ASSERT_TRUE(saved.ok()) << saved.report();
  const std::vector<std::pair<int, int>> splits = {{1, 4}, {2, 2}, {4, 1}};
  const Result r = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    for (const auto& [rows, columns] : splits) {
      Optimizer other(ctx, rank, rows, columns);
      for (auto* x : {&other.m, &other.v}) std::fill(x->begin(), x->end(), kFill);
      EXPECT_OK(Load(ctx, other.state));
      EXPECT_EQ(other.m, BoxValues(12, other.offset, other.extent, 100));
      EXPECT_EQ(other.v, BoxValues(12, other.offset, other.extent, 500));
    }
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

// The same state at new addresses.
TEST(Update, ASaveAfterUpdateReadsTheNewMemory) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<float> first = Values(4), second = Values(4, 50);
    State state(ctx);
    state.Whole("w", {4}, first);
    EXPECT_OK(Save(ctx, state, 1));
    EXPECT_OK(state.Update(0, second.data()));
    std::fill(first.begin(), first.end(), kFill);
    EXPECT_OK(Save(ctx, state, 2));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(safetensors::Open(StepPath(root, 2)).tensors.at("w").Floats(), Values(4, 50));
}

}  // namespace
}  // namespace ckpt_test
