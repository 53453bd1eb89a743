// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class CommitTest : public RootTest {};

TEST_F(CommitTest, MakesAStepThatIsWholeAndNothingElse) {
  auto owner = Take();
  std::vector<std::string> warnings;
  ASSERT_OK(Save(owner, {.step = 100, .warnings = &warnings}));
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(Names(root_), (std::vector<std::string>{".ckpt", "LATEST", "step-000000000100"}));
  EXPECT_EQ(Names(At(StepFolder(100))),
            (std::vector<std::string>{"ckpt.json", "config.json", "model.safetensors",
                                      "model.safetensors.index.json"}));
  EXPECT_EQ(ReadAll(At("LATEST")), "step-000000000100\n");
  EXPECT_OK(ReadCatalog(StepDir(100)).status());
}

TEST_F(CommitTest, C03_NothingIsVisibleBeforeTheRename) {
  auto owner = Take();
  ASSERT_OK(Save(owner, {.step = 1}));
  SaveSpec spec{.step = 2};
  spec.enter_commit = [&] {
    EXPECT_EQ(Steps(), std::vector<int64_t>{1});
    EXPECT_EQ(ReadAll(At("LATEST")), "step-000000000001\n");
    return Status();
  };
  ASSERT_OK(Save(owner, spec));
  EXPECT_EQ(Steps(), (std::vector<int64_t>{2, 1}));
}

TEST_F(CommitTest, AnErrorOfEnterCommitIsReturnedAndNothingIsPublished) {
  auto owner = Take();
  ASSERT_OK(Save(owner, {.step = 1, .fill = 'a'}));
  SaveSpec spec{.step = 1, .fill = 'b'};
  spec.enter_commit = [] { return Status(Code::kParticipants, "rank 3 left"); };
  const Status status = Save(owner, spec);
  EXPECT_CODE(kParticipants, status);
  EXPECT_EQ(status.message(), "rank 3 left");
  EXPECT_EQ(FillOf(1), 'a');
  ExpectClean();
}

TEST_F(CommitTest, B15_AnotherSaveOfTheSameStepAfterARestartIsThePolicysAnswer) {
  ASSERT_OK(Save(Take(), {.step = 70, .fill = 'a'}));
  WriteAll(At("LATEST"), "step-000000000060\n");  // the pointer stayed behind
  EXPECT_EQ(NewestStep(Root(), nullptr)->step, 70);
  EXPECT_OK(Save(Take(), {.step = 70, .fill = 'b'}));
  EXPECT_EQ(FillOf(70), 'b');
}

TEST_F(CommitTest, D01_ReplacingKeepsTheOldStepUntilTheNewOneIsThere) {
  auto owner = Take();
  ASSERT_OK(Save(owner, {.step = 5, .fill = 'a'}));
  SaveSpec spec{.step = 5, .fill = 'b'};
  spec.enter_commit = [&] {
    EXPECT_EQ(FillOf(5), 'a');
    EXPECT_TRUE(ReadCatalog(StepDir(5)).ok());
    return Status();
  };
  ASSERT_OK(Save(owner, spec));
  EXPECT_EQ(FillOf(5), 'b');
  ExpectClean();
}

TEST_F(CommitTest, AFolderWithStrangeContentsInTheOldStepGoesWithIt) {
  auto owner = Take();
  ASSERT_OK(Save(owner, {.step = 5}));
  WriteAll(base_ + "/precious", "kept");
  std::filesystem::create_directories(InStep(5, "notes/deep"));
  ASSERT_EQ(symlink((base_ + "/precious").c_str(), InStep(5, "link").c_str()), 0);
  ASSERT_OK(Save(owner, {.step = 5}));
  EXPECT_FALSE(Exists(InStep(5, "notes")));
  EXPECT_EQ(ReadAll(base_ + "/precious"), "kept");
  ExpectClean();
}

TEST_F(CommitTest, SeveralFilesPerGroupAreWholeToo) {
  ASSERT_OK(Save(Take(), {.step = 1, .max_file_bytes = 1}));
  auto c = ReadCatalog(StepDir(1));
  ASSERT_OK(c.status());
  EXPECT_EQ(c->files.size(), 2u);
  EXPECT_EQ(c->files[1].name, "model-00002-of-00002.safetensors");
}

TEST_F(CommitTest, SameStateGivesTheSameBytes) {
  auto owner = Take();
  ASSERT_OK(Save(owner, {.step = 1}));
  ASSERT_OK(Save(owner, {.step = 2}));
  for (const char* file : {"model.safetensors", "model.safetensors.index.json"}) {
    EXPECT_EQ(ReadAll(InStep(1, file)), ReadAll(InStep(2, file)));
  }
}

}  // namespace
}  // namespace ckpt
