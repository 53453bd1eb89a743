// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section H, files: metadata (H06), no tensors (H07), index (H11).
#include "process/process.h"

namespace ckpt_test {
namespace {

using HuggingFaceFiles = ForAnyRanks;
INSTANTIATE_TEST_SUITE_P(K09, HuggingFaceFiles, testing::Values(1, 2), RankCount);

TEST_P(HuggingFaceFiles, H06_EveryFileHasFormatPtAndTheUsersPairs) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root, .config = "max_file_bytes=64KiB\n"});
    ASSERT_INIT(ctx);
    State state(ctx);
    const Part rows = Even(128, rank.id(), rank.size());
    std::vector<std::vector<float>> data(4, BoxValues(64, {rows.offset, 0}, {rows.count, 64}));
    for (int k = 0; k < 4; ++k)
      state.Box("t" + std::to_string(k), {128, 64}, {rows.offset, 0}, {rows.count, 64}, data[k]);
    EXPECT_OK(Save(ctx, state, {.step = 1, .metadata = "k=v\nnote=a=b c\n"}));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_GE(group.files.size(), 2u);
  for (const std::string& file : group.files) {
    const auto metadata = safetensors::Read(StepPath(root, 1) + "/" + file).metadata;
    EXPECT_EQ(metadata.at("format"), "pt") << file;
    EXPECT_EQ(metadata.at("k"), "v") << file;
    EXPECT_EQ(metadata.at("note"), "a=b c") << file;
  }
}

TEST_P(HuggingFaceFiles, H07_AStateWithoutTensorsCommitsAndLoads) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<uint8_t> shared = {1, 2, 3}, own = {static_cast<uint8_t>(40 + rank.id())};
    {
      State state(ctx);
      state.Blob(CKPT_BLOB_SHARED, "position", shared).Blob(CKPT_BLOB_PER_RANK, "rng", own);
      EXPECT_OK(Save(ctx, state, 1));
    }
    shared.assign(3, 0);
    own.assign(1, 0);
    State into(ctx);
    into.Blob(CKPT_BLOB_SHARED, "position", shared).Blob(CKPT_BLOB_PER_RANK, "rng", own);
    EXPECT_OK(Load(ctx, into));
    EXPECT_EQ(shared, (std::vector<uint8_t>{1, 2, 3}));
    EXPECT_EQ(own[0], 40 + rank.id());
  });
  ASSERT_TRUE(r.ok()) << r.report();
  for (const std::string& file : List(StepPath(root, 1)))
    if (file.size() > 12 && file.substr(file.size() - 12) == ".safetensors") {
      EXPECT_EQ(safetensors::Read(StepPath(root, 1) + "/" + file).metadata.at("format"), "pt");
    }
}

// safetensors::Open compares the index with the headers; here: after every save, for every group,
// with one file and with several, and with sharded, replicated, empty and scalar tensors.
TEST_P(HuggingFaceFiles, H11_TheIndexIsTheUnionOfTheHeadersAfterEachSave) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const std::vector<std::string> limits = {"5GiB", "32KiB", "1KiB"};
  for (const std::string& limit : limits) {
    const std::string folder = root + limit;
    const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 30}, [&](Rank& rank) {
      Ctx ctx({.root = folder, .config = "max_file_bytes=" + limit + "\n"});
      ASSERT_INIT(ctx);
      for (int64_t step = 1; step <= 2; ++step) {
        State state(ctx);
        const Part cut = Even(80, rank.id(), rank.size());
        std::vector<float> rows = BoxValues(64, {cut.offset, 0}, {cut.count, 64});
        std::vector<float> same = Values(300), scalar = {7}, none;
        std::vector<int64_t> count = {step, 2, 3};
        state.Box("w", {80, 64}, {cut.offset, 0}, {cut.count, 64}, rows);
        state.Whole("b", {300}, same).Whole("s", {}, scalar).Whole("e", {0, 3}, none);
        if (step == 2) state.Whole("late", {300}, same);
        state.Add(
            {.name = "n", .shape = {3}, .dtype = kI64, .data = count.data(), .group = "optimizer"});
        EXPECT_OK(Save(ctx, state, step));
      }
    });
    ASSERT_TRUE(r.ok()) << r.report();
    for (int64_t step = 1; step <= 2; ++step) {
      const auto model = safetensors::Open(StepPath(folder, step));
      EXPECT_EQ(model.tensors.size(), step == 1 ? 4u : 5u);
      EXPECT_EQ(model.total_size, 80u * 64 * 4 + 300 * 4 * (step == 1 ? 1u : 2u) + 4);
      EXPECT_EQ(model.tensors.at("w").Floats(), Values(80 * 64));
      EXPECT_EQ(model.tensors.at("e").shape, (Dims{0, 3}));
      EXPECT_TRUE(model.tensors.at("s").shape.empty());
      const auto optimizer = safetensors::Open(StepPath(folder, step), "optimizer");
      EXPECT_EQ(optimizer.tensors.size(), 1u);
      EXPECT_EQ(optimizer.tensors.at("n").dtype, "I64");
    }
  }
  EXPECT_EQ(safetensors::Open(StepPath(root + "5GiB", 1)).files.size(), 1u);
  EXPECT_GT(safetensors::Open(StepPath(root + "1KiB", 1)).files.size(), 2u);
}

}  // namespace
}  // namespace ckpt_test
