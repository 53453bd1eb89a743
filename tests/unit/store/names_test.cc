// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "store/names.h"

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

TEST(StepFolderName, HasTwelveDigitsOrMore) {
  EXPECT_EQ(StepFolder(0), "step-000000000000");
  EXPECT_EQ(StepFolder(100), "step-000000000100");
  EXPECT_EQ(StepFolder(1234567890123), "step-1234567890123");
}

TEST(StepFolderName, IsReadBackAndHasOneSpelling) {
  for (int64_t step :
       {int64_t{0}, int64_t{7}, int64_t{999999999999}, int64_t{1000000000000}, INT64_MAX}) {
    EXPECT_EQ(ParseStepFolder(StepFolder(step)), step);
  }
  for (const char* name : {"step-", "step-1", "step-0000000000001", "step-00000000000x", "step",
                           "step-+00000000001", "Step-000000000001", "step-000000000001 ",
                           "step-9223372036854775808", "step-99999999999999999999999"}) {
    EXPECT_EQ(ParseStepFolder(name), std::nullopt) << name;
  }
}

TEST(TempNames, B17_CannotBeMistakenForASteps) {
  for (const std::string& name : {StagingFolder(NewId()), TrashFolder(NewId())}) {
    EXPECT_EQ(ParseStepFolder(name), std::nullopt);
    EXPECT_EQ(name[0], '.');
  }
  EXPECT_NE(NewId(), NewId());
}

TEST(IntentFileName, IsReadBackAndHasOneSpelling) {
  EXPECT_EQ(IntentFile(100), ".replace-100");
  for (const int64_t step : {int64_t{0}, int64_t{100}, INT64_MAX}) {
    EXPECT_EQ(ParseIntentFile(IntentFile(step)), step);
    EXPECT_EQ(ParseStepFolder(IntentFile(step)), std::nullopt);
  }
  for (const char* name : {".replace-", ".replace--1", ".replace-01", ".replace-1x", "replace-1",
                           ".replace-9223372036854775808", ".replace- 1"}) {
    EXPECT_EQ(ParseIntentFile(name), std::nullopt) << name;
  }
}

TEST(FileNames, SplitFilesAreNumberedFromOne) {
  EXPECT_EQ(SafetensorsName("model", 0, 1), "model.safetensors");
  EXPECT_EQ(SafetensorsName("model", 1, 3), "model-00002-of-00003.safetensors");
  EXPECT_EQ(SafetensorsName("blobs", 0, 1), "blobs.safetensors");
  EXPECT_EQ(SafetensorsName("m", 99999, 100001), "m-100000-of-100001.safetensors");
}

TEST(FileNames, SpellTheirGroup) {
  EXPECT_EQ(GroupOfFile("model.safetensors"), "model");
  EXPECT_EQ(GroupOfFile("model-00002-of-00003.safetensors"), "model");
  EXPECT_EQ(GroupOfFile("my-model-2.safetensors"), "my-model-2");
  EXPECT_EQ(GroupOfFile("-00001-of-00001.safetensors"), "");
}

TEST(FileNames, H01_OnlyPlainOnesAreAccepted) {
  for (const char* name : {"config.json", "tokenizer.model", "a b", "Конфиг.json"}) {
    EXPECT_OK(CheckFileName(name));
  }
  const std::string nul("a\0b", 3), long_name(256, 'a'), not_utf8 = "a\xff\xfe";
  for (const std::string& name :
       std::vector<std::string>{"", ".", "..", ".hidden", "a/b", "/etc/passwd", "../x", "ckpt.json",
                                nul, long_name, not_utf8}) {
    EXPECT_CODE(kInvalidArgument, CheckFileName(name));
  }
}

TEST(GroupNames, AreShortAndPlain) {
  for (const char* name : {"model", "blobs", "opt_1-A"}) EXPECT_TRUE(IsGroupName(name));
  for (const std::string& name :
       {std::string(), std::string("a.b"), std::string("a/b"), std::string(65, 'a')}) {
    EXPECT_FALSE(IsGroupName(name)) << name;
  }
}

}  // namespace
}  // namespace ckpt
