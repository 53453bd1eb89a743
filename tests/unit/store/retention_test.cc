// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "store/retention.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class RetentionTest : public RootTest {
 protected:
  void SetUp() override { owner_ = Take(); }
  void SaveSteps(const std::vector<int64_t>& steps, uint64_t keep_last,
                 const std::string& lineage = "lineage-a") {
    for (int64_t step : steps) {
      ASSERT_OK(
          Save(owner_,
               {.step = step, .lineage = lineage, .keep_last = keep_last, .warnings = &warnings_}));
    }
  }
  using S = std::vector<int64_t>;
  std::shared_ptr<RootOwner> owner_;
  std::vector<std::string> warnings_;
};

TEST_F(RetentionTest, D03_TheNewestBySequenceStayWhateverTheNumbers) {
  SaveSteps({9900, 10000, 10100}, 2);
  EXPECT_EQ(Steps(), (S{10100, 10000}));
  SaveSteps({99, 100, 999999999999}, 2);
  EXPECT_EQ(Steps(), (S{999999999999, 100}));
  SaveSteps({7}, 2);  // after a rollback
  EXPECT_EQ(Steps(), (S{7, 999999999999}));
  ExpectClean();
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(RetentionTest, D04_StepsOfAnotherLineageAreNeitherCountedNorRemoved) {
  SaveSteps({500, 600, 700}, 0, "run-a");
  SaveSteps({100}, 3, "run-b");
  EXPECT_EQ(Steps(), (S{100, 700, 600, 500}));
  SaveSteps({110, 120, 130}, 3, "run-b");
  EXPECT_EQ(Steps(), (S{130, 120, 110, 700, 600, 500}));
}

TEST_F(RetentionTest, D06_WithoutALimitAllStay) {
  SaveSteps({1, 2, 3}, 0);
  EXPECT_EQ(Steps(), (S{3, 2, 1}));
}

TEST_F(RetentionTest, D01_TheStepJustCommittedStaysAndTheOldOneGoesAfterIt) {
  SaveSteps({1}, 1);
  SaveSpec spec{.step = 2, .keep_last = 1};
  spec.enter_commit = [&] {
    EXPECT_EQ(Steps(), S{1});
    return Status();
  };
  ASSERT_OK(Save(owner_, spec));
  EXPECT_EQ(Steps(), S{2});
}

TEST_F(RetentionTest, PinnedStepsAreNeverRemoved) {
  SaveSteps({1, 2}, 0);
  ASSERT_OK(SetPinned(*owner_, 1, Pin::kOn));
  SaveSteps({3, 4}, 1);
  EXPECT_EQ(Steps(), (S{4, 1}));
  ASSERT_OK(SetPinned(*owner_, 1, Pin::kOff));
  SaveSteps({5}, 1);
  EXPECT_EQ(Steps(), S{5});
}

TEST_F(RetentionTest, BadStepsDoNotCountAndGo) {
  SaveSteps({1, 2, 3}, 0);
  ASSERT_OK(MarkBad(*owner_, 3));
  ASSERT_OK(MarkBad(*owner_, 2));
  ASSERT_OK(SetPinned(*owner_, 2, Pin::kOn));
  SaveSteps({4}, 2);
  EXPECT_EQ(Steps(), (S{4, 2, 1}));  // 2 is pinned
}

TEST_F(RetentionTest, DamagedStepsAreNeverRemoved) {
  SaveSteps({1, 2}, 0);
  WriteAll(InStep(1, "ckpt.json"), "");
  SaveSteps({3, 4}, 1);
  EXPECT_EQ(Steps(), (S{4, -2}));
}

TEST_F(RetentionTest, WhatWeDidNotMakeStays) {
  std::filesystem::create_directories(At("step-000000000007"));  // no record
  std::filesystem::create_directories(At("mine"));
  WriteAll(At("notes.txt"), "kept");
  WriteAll(At(StepFolder(8)), "a file");
  SaveSteps({1, 2, 3}, 1);
  EXPECT_EQ(Names(root_), (std::vector<std::string>{".ckpt", "LATEST", "mine", "notes.txt",
                                                    StepFolder(3), StepFolder(7), StepFolder(8)}));
}

TEST_F(RetentionTest, AStepThatALoadOfThisProcessReadsIsSkippedUntilItIsDone) {
  SaveSteps({1, 2}, 0);
  {
    const Dir step = StepDir(1);
    const StepInUse first(step), second(step);
    SaveSteps({3}, 1);
    EXPECT_EQ(Steps(), (S{3, 1}));
    EXPECT_OK(ReadCatalog(step).status());
  }
  SaveSteps({4}, 1);
  EXPECT_EQ(Steps(), S{4});
}

TEST_F(RetentionTest, AReplacedStepThatIsBeingReadIsRemovedByALaterSave) {
  SaveSteps({1}, 0);
  {
    const Dir step = StepDir(1);
    const StepInUse reading(step);
    ASSERT_OK(Save(owner_, {.step = 1, .fill = 'b'}));
    EXPECT_OK(step.OpenFile("model.safetensors", FileMode::kRead, DirectIo::kOff).status());
    EXPECT_EQ(FillOf(1), 'b');
  }
  SaveSteps({2}, 0);
  ExpectClean();
}

TEST_F(RetentionTest, StepsThatAreGoneAlreadyAreNoMatter) {
  SaveSteps({1, 2}, 0);
  SaveSpec spec{.step = 3, .keep_last = 1, .warnings = &warnings_};
  spec.enter_commit = [&] {
    std::filesystem::remove_all(At(StepFolder(1)));
    return Status();
  };
  ASSERT_OK(Save(owner_, spec));
  EXPECT_EQ(Steps(), S{3});
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(RetentionTest, AnOwnerThatLostTheRootRemovesNothing) {
  SaveSteps({1, 2}, 0);
  auto save = StepTransaction::Begin(owner_, {3, OnExisting::kAuto, "lineage-a", 1});
  ASSERT_OK(save.status());
  const Prepared p = Fill(*owner_, **save, {.step = 3});
  ASSERT_OK((*save)->Commit(
      p.record, p.index_files, [] { return Status(); }, [] { return false; }, nullptr));
  ASSERT_EQ(unlink(At(".ckpt/owner.json").c_str()), 0);
  (*save)->Finish(&warnings_);
  EXPECT_EQ(Steps(), (S{3, 2, 1}));
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(RetentionTest, KnownListsTheStepsSeenAtTheCommit) {
  SaveSteps({1, 2, 3}, 2);
  EXPECT_EQ(FindStep(Root(), 3)->record->known, (std::vector<std::pair<uint64_t, std::string>>{
                                                    {2, StepFolder(2)}, {1, StepFolder(1)}}));
}

}  // namespace
}  // namespace ckpt
