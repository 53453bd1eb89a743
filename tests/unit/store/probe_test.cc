// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class ProbeTest : public RootTest {};

TEST_F(ProbeTest, EachSeesTheOthersByNameUntilTheyAreRemoved) {
  auto owner = Take();
  auto first = WriteProbe(root_, "n1", 0), second = WriteProbe(root_, "n1", 12);
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  EXPECT_NE(*first, *second);
  EXPECT_OK(WriteProbe(root_, "n1", 0).status());  // again: as well
  for (const std::string& name : {*first, *second}) EXPECT_TRUE(*SeesProbe(root_, name));
  EXPECT_FALSE(*SeesProbe(root_, "probe-n1-3"));
  auto other = WriteProbe(root_, "n2", 0);
  ASSERT_OK(RemoveProbes(root_, "n1"));
  EXPECT_FALSE(*SeesProbe(root_, *first));
  EXPECT_TRUE(*SeesProbe(root_, *other));
}

TEST_F(ProbeTest, ARefusedProbeLeavesNoRecord) {
  auto owner = Take();
  ASSERT_OK(WriteProbe(root_, "n1", 0).status());
  ASSERT_OK(RemoveProbes(root_, "n1"));
  owner.reset();
  EXPECT_TRUE(Names(At(".ckpt")).empty());
}

TEST_F(ProbeTest, OnAnotherStorageNothingIsMadeAndNothingIsSeen) {
  Take();
  const std::string elsewhere = base_ + "/elsewhere";
  EXPECT_CODE(kNotFound, WriteProbe(elsewhere, "n1", 1).status());
  EXPECT_FALSE(*SeesProbe(elsewhere, "probe-n1-0"));
  EXPECT_OK(RemoveProbes(elsewhere, "n1"));
  EXPECT_FALSE(Exists(elsewhere));
}

TEST_F(ProbeTest, LeftoverProbesGoWithTheNextOwner) {
  auto owner = Take();
  auto name = WriteProbe(root_, "n1", 0);
  ASSERT_OK(name.status());
  owner.reset();
  EXPECT_TRUE(*SeesProbe(root_, *name));
  owner = Take();
  EXPECT_FALSE(*SeesProbe(root_, *name));
}

TEST_F(ProbeTest, NamesLeadNowhereElse) {
  auto owner = Take();
  EXPECT_CODE(kInvalidArgument, WriteProbe(root_, "../x", 0).status());
  EXPECT_CODE(kInvalidArgument, WriteProbe(root_, "", 0).status());
  EXPECT_CODE(kInvalidArgument, SeesProbe(root_, "owner.json").status());
  EXPECT_CODE(kInvalidArgument, SeesProbe(root_, "probe-../../x").status());
  EXPECT_CODE(kInvalidArgument, RemoveProbes(root_, ""));
}

}  // namespace
}  // namespace ckpt
