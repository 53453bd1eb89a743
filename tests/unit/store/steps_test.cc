// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "store/steps.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class StepsTest : public RootTest {
 protected:
  void SaveSteps(const std::vector<int64_t>& steps) {
    auto owner = Take();
    for (int64_t step : steps) ASSERT_OK(Save(owner, {.step = step}));
  }
  void Truncate(int64_t step, size_t bytes) {
    WriteAll(InStep(step, "ckpt.json"), ReadAll(InStep(step, "ckpt.json")).substr(0, bytes));
  }
  // The newest step, or the error's code as a negative number.
  int64_t Newest(std::vector<std::string>* warnings = nullptr) {
    auto newest = NewestStep(Root(), warnings);
    return newest.ok() ? newest->step : static_cast<int64_t>(newest.status().code());
  }
  static constexpr auto kNone = static_cast<int64_t>(Code::kNoCheckpoint);
  static constexpr auto kBad = static_cast<int64_t>(Code::kCorrupt);
};

TEST_F(StepsTest, B10_AnEmptyRootHasNoCheckpointAndAMissingStepIsNotFound) {
  EXPECT_CODE(kNoCheckpoint, NewestStep(Dir(), nullptr).status());
  ASSERT_EQ(mkdir(root_.c_str(), 0777), 0);
  EXPECT_EQ(Newest(), kNone);
  SaveSteps({10, 20});
  EXPECT_CODE(kNotFound, FindStep(Root(), 999).status());
  EXPECT_CODE(kNotFound, FindStep(Root(), -1).status());
  auto found = FindStep(Root(), 10);
  ASSERT_OK(found.status());
  EXPECT_EQ(found->record->step, 10);
  EXPECT_EQ(found->folder, "step-000000000010");
}

TEST_F(StepsTest, D03_TheHighestSequenceIsNewestWhateverTheNumbers) {
  SaveSteps({9900, 10000, 10100, 999999999999, 1000000000000});
  EXPECT_EQ(Newest(), 1000000000000);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1000000000000, 999999999999, 10100, 10000, 9900}));
  SaveSteps({99});  // after a rollback
  EXPECT_EQ(Newest(), 99);
  SaveSteps({10000});  // again: replaced, and newest now
  EXPECT_EQ(Steps().front(), 10000);
}

TEST_F(StepsTest, C02_B17_OnlyFoldersWithARecordAreSteps) {
  SaveSteps({1});
  ASSERT_EQ(mkdir(At(StepFolder(5)).c_str(), 0777), 0);
  WriteAll(InStep(5, "model.safetensors"), "half");
  ASSERT_EQ(mkdir(At(".staging-0123").c_str(), 0777), 0);
  WriteAll(At(".staging-0123/ckpt.json"), ReadAll(InStep(1, "ckpt.json")));
  WriteAll(At(StepFolder(6)), "a file");
  ASSERT_EQ(symlink(StepFolder(1).c_str(), At(StepFolder(7)).c_str()), 0);
  ASSERT_EQ(mkdir(At("step-8").c_str(), 0777), 0);
  EXPECT_EQ(Steps(), std::vector<int64_t>{1});
  EXPECT_EQ(Newest(), 1);
  const Status no_record = FindStep(Root(), 5).status();
  EXPECT_CODE(kNotFound, no_record);
  EXPECT_SAYS(no_record, "the folder has no ckpt.json");
  EXPECT_CODE(kNotFound, FindStep(Root(), 6).status());
  EXPECT_CODE(kNotFound, FindStep(Root(), 7).status());
}

TEST_F(StepsTest, B11_AllDamagedIsCorruptNotNone) {
  SaveSteps({1, 2});
  Truncate(1, 0);
  Truncate(2, 0);
  EXPECT_EQ(Newest(), kBad);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{-3, -2}));
  const Status status = NewestStep(Root(), nullptr).status();
  EXPECT_SAYS(status, "step-000000000002/ckpt.json");
}

TEST_F(StepsTest, B11_ADamagedNewestIsCorrupt) {
  SaveSteps({1, 2});
  Truncate(2, 100);
  EXPECT_EQ(Newest(), kBad);
  EXPECT_CODE(kCorrupt, FindStep(Root(), 2).status());
  EXPECT_OK(FindStep(Root(), 1).status());
}

TEST_F(StepsTest, ADamagedStepThatALaterCommitKnewIsPassedOverWithAWarning) {
  SaveSteps({1, 2, 3});
  Truncate(2, 0);
  std::vector<std::string> warnings;
  EXPECT_EQ(Newest(&warnings), 3);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("step-000000000002"), std::string::npos) << warnings[0];
}

TEST_F(StepsTest, ASaveAfterTheDamageProvesItOlder) {
  SaveSteps({1, 2});
  Truncate(2, 0);
  EXPECT_EQ(Newest(), kBad);
  SaveSteps({3});
  EXPECT_EQ(Newest(), 3);
}

// 5 was known to 6's commit, but that was an earlier 5.
TEST_F(StepsTest, ADamagedStepThatWasReplacedSinceIsNotCalledOlder) {
  SaveSteps({5, 6, 5});
  std::string text = ReadAll(InStep(5, "ckpt.json"));
  text[text.size() - 30] ^= 1;
  WriteAll(InStep(5, "ckpt.json"), text);
  EXPECT_EQ(Newest(), kBad);
  SaveSteps({7});
  EXPECT_EQ(Newest(), 7);
  EXPECT_EQ(FindStep(Root(), 7)->record->sequence, 4u);
}

TEST_F(StepsTest, B11_FallingBackPassesOverADamagedNewestStepAndSaysSo) {
  SaveSteps({1, 2, 3});
  Truncate(3, 100);
  std::vector<std::string> warnings;
  auto newest = NewestStep(Root(), &warnings, OnDamage::kFallBack);
  ASSERT_OK(newest.status());
  EXPECT_EQ(newest->step, 2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("step-000000000003"), std::string::npos) << warnings[0];
}

TEST_F(StepsTest, B11_FallingBackWithDamagedStepsOnlyIsCorruptNotNone) {
  SaveSteps({1, 2});
  Truncate(1, 0);
  Truncate(2, 0);
  EXPECT_CODE(kCorrupt, NewestStep(Root(), nullptr, OnDamage::kFallBack).status());
  EXPECT_CODE(kCorrupt, StepsForFallback(Root(), nullptr).status());
  EXPECT_CODE(kNoCheckpoint, StepsForFallback(Dir(), nullptr).status());
}

TEST_F(StepsTest, StepsToFallBackToAreTheValidOnesThatAreNotBadNewestFirst) {
  SaveSteps({50, 10, 40, 20, 30});
  Truncate(20, 0);
  ASSERT_OK(MarkBad(*Take(), 40));
  auto steps = StepsForFallback(Root(), nullptr);
  ASSERT_OK(steps.status());
  std::vector<int64_t> numbers;
  for (const StepEntry& s : *steps) numbers.push_back(s.step);
  EXPECT_EQ(numbers, (std::vector<int64_t>{30, 10, 50}));
}

TEST_F(StepsTest, ANewerFormatIsUnsupportedAndNotSkipped) {
  SaveSteps({1});
  std::string text = ReadAll(InStep(1, "ckpt.json"));
  EXPECT_EQ(SequenceHint(text), 1u);
  EXPECT_EQ(SequenceHint(text.substr(0, 20)), 0u);
  EXPECT_EQ(SequenceHint("\"sequence\": 99999999999999999999999"), 0u);
}

TEST_F(StepsTest, L06_ARootThatCannotBeListedIsAnErrorNotEmpty) {
  ASSERT_EQ(mkdir(root_.c_str(), 0777), 0);
  Dir gone = Root();
  close(gone.fd());  // listing now fails with EBADF
  EXPECT_CODE(kIo, ListSteps(gone).status());
  EXPECT_CODE(kIo, NewestStep(gone, nullptr).status());
  // The number may be somebody else's by the time `gone` closes it.
  ASSERT_EQ(dup2(0, gone.fd()), gone.fd());
}

class LatestTest : public StepsTest {
 protected:
  void SetUp() override {
    SaveSteps({1, 2});
    ASSERT_EQ(ReadAll(At("LATEST")), "step-000000000002\n");
    ASSERT_EQ(unlink(At("LATEST").c_str()), 0);
  }
};

TEST_F(LatestTest, B08_WhateverItIsTheNewestStepIsFound) {
  const std::string latest = At("LATEST");
  const std::function<void()> plants[] = {
      [] {},  // absent
      [&] { WriteAll(latest, ""); },
      [&] { WriteAll(latest, "step-000000000001\n"); },  // stale
      [&] { WriteAll(latest, std::string(100'000, 'x')); },
      [&] { WriteAll(latest, "\xff\n../../etc\n"); },
      [&] { ASSERT_EQ(symlink("LATEST", latest.c_str()), 0); },
      [&] { ASSERT_EQ(symlink("nowhere", latest.c_str()), 0); },
      [&] { ASSERT_EQ(mkfifo(latest.c_str(), 0600), 0); },
      [&] { ASSERT_EQ(mkdir(latest.c_str(), 0700), 0); },
  };
  for (const auto& plant : plants) {
    plant();
    std::vector<std::string> warnings;
    EXPECT_EQ(Newest(&warnings), 2);
    EXPECT_TRUE(warnings.empty());
    remove(latest.c_str());
  }
}

TEST_F(LatestTest, B08_AWarningSaysThatTheStepItNamesIsGone) {
  WriteAll(At("LATEST"), "step-000000000003\n");
  std::vector<std::string> warnings;
  EXPECT_EQ(Newest(&warnings), 2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("step-000000000003"), std::string::npos) << warnings[0];
}

TEST_F(LatestTest, B08_ASaveReplacesALinkAndWarnsAboutAFolder) {
  WriteAll(At("target"), "kept");
  ASSERT_EQ(symlink("target", At("LATEST").c_str()), 0);
  SaveSteps({3});
  EXPECT_EQ(ReadAll(At("LATEST")), "step-000000000003\n");
  EXPECT_EQ(ReadAll(At("target")), "kept");
  ASSERT_EQ(unlink(At("LATEST").c_str()), 0);
  ASSERT_EQ(mkdir(At("LATEST").c_str(), 0777), 0);
  std::vector<std::string> warnings;
  EXPECT_OK(Save(Take(), {.step = 4, .warnings = &warnings}));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("LATEST"), std::string::npos) << warnings[0];
  EXPECT_EQ(Newest(), 4);
}

TEST(TimeText, IsUtc) { EXPECT_EQ(TimeText(1'700'000'000'123'456'789), "2023-11-14 22:13:20 UTC"); }

}  // namespace
}  // namespace ckpt
