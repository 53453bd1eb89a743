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
    const Status status = Save(owner_, {.step = 5,
                                        .on_existing = policy,
                                        .lineage = lineage,
                                        .fill = 'b',
                                        .warnings = &warnings_});
    ExpectClean();
    return status;
  }
  std::shared_ptr<RootOwner> owner_;
  std::vector<std::string> warnings_;
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

TEST_F(ExistingTest, B18_ReplaceReplacesAnotherLineagesStepAndSaysSo) {
  EXPECT_OK(Again(OnExisting::kReplace, "lineage-b"));
  EXPECT_EQ(FillOf(5), 'b');
  EXPECT_EQ(FindStep(Root(), 5)->record->lineage, "lineage-b");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("another lineage, lineage-a"), std::string::npos) << warnings_[0];
  EXPECT_NE(warnings_[0].find("step-000000000005"), std::string::npos) << warnings_[0];
}

TEST_F(ExistingTest, ReplacingOnesOwnStepWarnsOfNothing) {
  EXPECT_OK(Again(OnExisting::kReplace));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ExistingTest, B18_KeepIsOkWithoutWriting) {
  for (const char* lineage : {"lineage-a", "lineage-b"}) {
    auto save = StepTransaction::Begin(owner_, {5, OnExisting::kKeep, lineage});
    ASSERT_OK(save.status());
    EXPECT_EQ(*save, nullptr);
    ExpectClean();
  }
  EXPECT_EQ(FillOf(5), 'a');
  EXPECT_OK(Save(owner_, {.step = 6, .on_existing = OnExisting::kKeep}));
  EXPECT_EQ(FillOf(6), 'x');
}

TEST_F(ExistingTest, KeepMakesAStepOfAFolderWithoutRecord) {
  ASSERT_EQ(unlink(InStep(5, "ckpt.json").c_str()), 0);
  EXPECT_OK(Again(OnExisting::kKeep));
  EXPECT_EQ(FillOf(5), 'b');
}

TEST_F(ExistingTest, ADamagedStepIsCorruptUnderKeep) {
  WriteAll(InStep(5, "ckpt.json"), "");
  EXPECT_CODE(kCorrupt, Again(OnExisting::kKeep));
  EXPECT_EQ(ReadAll(InStep(5, "ckpt.json")), "");
}

TEST_F(ExistingTest, AStepThatAppearsDuringASaveUnderKeepIsKept) {
  auto save = StepTransaction::Begin(owner_, {8, OnExisting::kKeep, "lineage-b"});
  ASSERT_OK(save.status());
  const Prepared p = Fill(*owner_, **save, {.step = 8, .lineage = "lineage-b", .fill = 'b'});
  ASSERT_OK(Save(owner_, {.step = 8, .fill = 'a'}));
  EXPECT_OK((*save)->Commit(
      p.record, p.index_files, [] { return Status(); }, [] { return false; }, nullptr));
  (*save)->Finish(nullptr);
  EXPECT_EQ(FillOf(8), 'a');
  ExpectClean();
}

TEST_F(ExistingTest, ADamagedStepIsReplacedByReplaceAloneAndNeverSilently) {
  const std::string good = ReadAll(InStep(5, "ckpt.json"));
  WriteAll(InStep(5, "ckpt.json"), good.substr(0, 50));
  for (const OnExisting policy : {OnExisting::kAuto, OnExisting::kRefuse}) {
    const Status status = Again(policy);
    EXPECT_CODE(kExists, status);
    EXPECT_SAYS(status, "CORRUPT");
  }
  EXPECT_EQ(ReadAll(InStep(5, "ckpt.json")), good.substr(0, 50));
  EXPECT_OK(Again(OnExisting::kReplace));
  EXPECT_EQ(FillOf(5), 'b');
  EXPECT_OK(ReadCatalog(StepDir(5)).status());
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("CORRUPT"), std::string::npos) << warnings_[0];
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
