// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class ExistingTest : public RootTest {
 protected:
  void SetUp() override {
    owner_ = Take();
    ASSERT_OK(Save(owner_, {.step = 5, .fill = 'a'}));
  }
  Status Again(OnExisting policy, const std::string& lineage = "lineage-a") {
    const Status status =
        Save(owner_, {.step = 5, .on_existing = policy, .lineage = lineage, .fill = 'b'});
    ExpectClean();
    return status;
  }
  std::shared_ptr<RootOwner> owner_;
};

TEST_F(ExistingTest, B18_AutoReplacesAStepOfItsOwnLineage) {
  EXPECT_OK(Again(OnExisting::kAuto));
  EXPECT_EQ(FillOf(5), 'b');
  EXPECT_EQ(FindStep(Root(), 5)->record->sequence, 2u);
  EXPECT_TRUE(FindStep(Root(), 5)->record->known.empty());
  EXPECT_OK(ReadCatalog(StepDir(5)).status());
}

TEST_F(ExistingTest, ReplaceReplacesAStepOfItsOwnLineage) {
  EXPECT_OK(Again(OnExisting::kReplace));
  EXPECT_EQ(FillOf(5), 'b');
}

TEST_F(ExistingTest, AutoRefusesAnotherLineagesStepNamingItAndItsTime) {
  const Status status = Again(OnExisting::kAuto, "lineage-b");
  EXPECT_CODE(kExists, status);
  EXPECT_SAYS(status, "lineage-a");
  EXPECT_SAYS(status, "2023-11-14 22:13:20 UTC");
  EXPECT_EQ(FillOf(5), 'a');
}

TEST_F(ExistingTest, RefuseRefusesEvenItsOwn) {
  EXPECT_CODE(kExists, Again(OnExisting::kRefuse));
  EXPECT_EQ(FillOf(5), 'a');
}

TEST_F(ExistingTest, WhatIsNotBuiltYetIsUnsupportedInWords) {
  const Status keep = Again(OnExisting::kKeep);
  EXPECT_CODE(kUnsupported, keep);
  EXPECT_SAYS(keep, "KEEP");
  const Status replace = Again(OnExisting::kReplace, "lineage-b");
  EXPECT_CODE(kUnsupported, replace);
  EXPECT_SAYS(replace, "lineage-a");
  EXPECT_EQ(FillOf(5), 'a');
}

TEST_F(ExistingTest, ADamagedStepIsNeverReplacedSilently) {
  const std::string good = ReadAll(InStep(5, "ckpt.json"));
  WriteAll(InStep(5, "ckpt.json"), good.substr(0, 50));
  for (const OnExisting policy : {OnExisting::kAuto, OnExisting::kRefuse}) {
    const Status status = Again(policy);
    EXPECT_CODE(kExists, status);
    EXPECT_SAYS(status, "CORRUPT");
  }
  EXPECT_CODE(kUnsupported, Again(OnExisting::kReplace));
  EXPECT_EQ(ReadAll(InStep(5, "ckpt.json")), good.substr(0, 50));
}

TEST_F(ExistingTest, SomethingElseWithAStepsNameIsInTheWay) {
  WriteAll(At(StepFolder(6)), "a file");
  ASSERT_EQ(symlink(StepFolder(5).c_str(), At(StepFolder(7)).c_str()), 0);
  for (const int64_t step : {6, 7}) {
    const Status status = Save(owner_, {.step = step});
    EXPECT_CODE(kExists, status);
    EXPECT_SAYS(status, "no folder");
  }
  EXPECT_EQ(ReadAll(At(StepFolder(6))), "a file");
  EXPECT_EQ(FillOf(5), 'a');
}

TEST_F(ExistingTest, AStepThatAppearsDuringTheSaveIsJudgedAgainAtItsCommit) {
  auto save = StepTransaction::Begin(owner_, {8, OnExisting::kAuto, "lineage-b"});
  ASSERT_OK(save.status());
  const Prepared p = Fill(*owner_, **save, {.step = 8, .lineage = "lineage-b"});
  ASSERT_OK(Save(owner_, {.step = 8, .fill = 'a'}));
  EXPECT_CODE(kExists,
              (*save)->Commit(
                  p.record, p.index_files, [] { return Status(); }, [] { return false; }, nullptr));
  EXPECT_EQ(FillOf(8), 'a');
  ExpectClean();
}

}  // namespace
}  // namespace ckpt
