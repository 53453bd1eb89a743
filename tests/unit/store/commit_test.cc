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

TEST_F(CommitTest, AFailedRenameRemovesTheNewFilesOnlyIfNobodyWasToldUnknown) {
  auto owner = Take();
  for (const bool told : {false, true}) {
    SaveSpec spec{.step = told ? 2 : 1};
    spec.enter_commit = [&] {
      EXPECT_EQ(mkdir(At(StepFolder(spec.step)).c_str(), 0777), 0);
      return Status();
    };
    spec.abandoned = [&] { return told; };
    const Status status = Save(owner, spec);
    EXPECT_EQ(CodeName(status.code()), CodeName(told ? Code::kOutcomeUnknown : Code::kExists));
    if (!told) ExpectClean();
  }
  const std::string kept = Names(root_)[1];
  EXPECT_TRUE(kept.starts_with(".staging-")) << kept;
  EXPECT_TRUE(Exists(At(kept) + "/ckpt.json"));
}

TEST_F(CommitTest, WithoutFinishTheStepIsValidAndTheNextOwnerRemovesTheOldOne) {
  auto owner = Take();
  ASSERT_OK(Save(owner, {.step = 1}));
  ASSERT_OK(Save(owner, {.step = 5, .fill = 'a'}));
  bool asked = false;
  SaveSpec spec{.step = 5, .fill = 'b', .finish = false};
  spec.abandoned = [&] { return asked = true; };
  ASSERT_OK(Save(owner, spec));
  EXPECT_FALSE(asked);
  EXPECT_EQ(FillOf(5), 'b');
  EXPECT_OK(ReadCatalog(StepDir(5)).status());
  EXPECT_TRUE(Names(root_)[1].starts_with(".staging-"));  // the old one
  owner.reset();
  owner = Take();
  ExpectClean();
  EXPECT_EQ(FillOf(5), 'b');
  EXPECT_OK(ReadCatalog(StepDir(5)).status());
  ASSERT_OK(Save(owner, {.step = 6}));
  EXPECT_EQ(Steps(), (std::vector<int64_t>{6, 5, 1}));
}

TEST_F(CommitTest, FinishRemovesTheReplacedStepAndWritesLatestOnce) {
  auto owner = Take();
  ASSERT_OK(Save(owner, {.step = 1, .fill = 'a'}));
  ASSERT_OK(Save(owner, {.step = 2}));
  auto save = StepTransaction::Begin(owner, {1, OnExisting::kAuto, "lineage-a"});
  ASSERT_OK(save.status());
  const Prepared p = Fill(*owner, **save, {.step = 1, .fill = 'b'});
  std::vector<std::string> warnings;
  (*save)->Finish(&warnings);  // before Commit: nothing
  EXPECT_TRUE(Exists(At((*save)->staging_folder())));
  ASSERT_OK((*save)->Commit(
      p.record, p.index_files, [] { return Status(); }, [] { return false; }, &warnings));
  EXPECT_EQ(ReadAll(At((*save)->staging_folder()) + "/model.safetensors").back(), 'a');
  EXPECT_EQ(ReadAll(At("LATEST")), "step-000000000002\n");
  (*save)->Finish(&warnings);
  ExpectClean();
  EXPECT_EQ(FillOf(1), 'b');
  EXPECT_EQ(ReadAll(At("LATEST")), "step-000000000001\n");
  WriteAll(At("LATEST"), "mine");
  (*save)->Finish(&warnings);
  EXPECT_EQ(ReadAll(At("LATEST")), "mine");
  EXPECT_TRUE(warnings.empty());
}

TEST_F(CommitTest, ALateFinishDoesNotSetLatestBack) {
  auto owner = Take();
  auto save = StepTransaction::Begin(owner, {1, OnExisting::kAuto, "lineage-a"});
  ASSERT_OK(save.status());
  const Prepared p = Fill(*owner, **save, {.step = 1});
  ASSERT_OK((*save)->Commit(
      p.record, p.index_files, [] { return Status(); }, [] { return false; }, nullptr));
  ASSERT_OK(Save(owner, {.step = 2}));
  (*save)->Finish(nullptr);
  EXPECT_EQ(ReadAll(At("LATEST")), "step-000000000002\n");
  EXPECT_EQ(Steps(), (std::vector<int64_t>{2, 1}));
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
