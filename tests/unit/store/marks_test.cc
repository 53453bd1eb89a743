// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class MarksTest : public RootTest {
 protected:
  void SetUp() override {
    owner_ = Take();
    for (int64_t step : {1, 2}) ASSERT_OK(Save(owner_, {.step = step}));
  }
  int64_t Newest() {
    auto newest = NewestStep(Root(), &warnings_);
    return newest.ok() ? newest->step : static_cast<int64_t>(newest.status().code());
  }
  std::shared_ptr<RootOwner> owner_;
  std::vector<std::string> warnings_;
};

TEST_F(MarksTest, C11_ABadStepIsPassedOverByNewestAndFoundByNumber) {
  ASSERT_OK(MarkBad(*owner_, 2));
  owner_.reset();
  EXPECT_EQ(Newest(), 1);
  auto found = FindStep(Root(), 2);
  ASSERT_OK(found.status());
  EXPECT_TRUE(found->bad);
  EXPECT_FALSE(found->pinned);
  EXPECT_OK(ReadCatalog(StepDir(2)).status());
  EXPECT_EQ(Steps(), (std::vector<int64_t>{2, 1}));
}

TEST_F(MarksTest, C11_SavingABadStepAgainClearsItsMark) {
  ASSERT_OK(MarkBad(*owner_, 2));
  ASSERT_OK(SetPinned(*owner_, 2, Pin::kOn));
  ASSERT_OK(Save(owner_, {.step = 2}));
  EXPECT_EQ(Newest(), 2);
  auto found = FindStep(Root(), 2);
  EXPECT_FALSE(found->bad || found->pinned);
}

TEST_F(MarksTest, WithBadStepsOnlyThereIsNoCheckpoint) {
  for (int64_t step : {1, 2}) ASSERT_OK(MarkBad(*owner_, step));
  auto newest = NewestStep(Root(), nullptr);
  EXPECT_CODE(kNoCheckpoint, newest.status());
  EXPECT_SAYS(newest.status(), "bad");
}

TEST_F(MarksTest, ADamagedNewestStepThatIsMarkedBadIsPassedOver) {
  WriteAll(InStep(2, "ckpt.json"), "");
  EXPECT_EQ(Newest(), static_cast<int64_t>(Code::kCorrupt));
  ASSERT_OK(MarkBad(*owner_, 2));
  EXPECT_EQ(Newest(), 1);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("marked bad"), std::string::npos) << warnings_[0];
}

TEST_F(MarksTest, PinsAreSetTwiceAndTakenAwayTwice) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(SetPinned(*owner_, 1, Pin::kOn));
    EXPECT_TRUE(FindStep(Root(), 1)->pinned);
    EXPECT_TRUE((*ListSteps(Root()))[1].pinned);
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(SetPinned(*owner_, 1, Pin::kOff));
    EXPECT_FALSE(FindStep(Root(), 1)->pinned);
  }
}

TEST_F(MarksTest, OnlyStepsAreMarked) {
  ASSERT_EQ(mkdir(At(StepFolder(7)).c_str(), 0777), 0);
  for (int64_t step : {7, 9, -1}) {
    EXPECT_CODE(kNotFound, MarkBad(*owner_, step));
    EXPECT_CODE(kNotFound, SetPinned(*owner_, step, Pin::kOn));
  }
  EXPECT_TRUE(Names(At(StepFolder(7))).empty());
}

TEST_F(MarksTest, OnlyTheOwnerMarks) {
  ASSERT_EQ(unlink(At(".ckpt/owner.json").c_str()), 0);
  EXPECT_CODE(kOwned, MarkBad(*owner_, 1));
  EXPECT_CODE(kOwned, SetPinned(*owner_, 1, Pin::kOn));
  EXPECT_FALSE(FindStep(Root(), 1)->bad);
}

}  // namespace
}  // namespace ckpt
