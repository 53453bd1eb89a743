// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Rename, exchange, link, unlink within a folder.
#include "unit/io/refuse.h"
#include "unit/io/temp_dir.h"

namespace ckpt {
namespace {

class RenameTest : public IoTest {
 protected:
  void SetUp() override {
    EXPECT_OK(dir_.WriteFile("a", "A"));
    EXPECT_OK(dir_.WriteFile("b", "B"));
  }
  std::string Content(const std::string& name) { return Slurp(temp_ / name); }
};

TEST_F(RenameTest, NoReplaceMovesToAFreeName) {
  EXPECT_OK(dir_.RenameNoReplace("a", "c"));
  EXPECT_EQ(Content("c"), "A");
  EXPECT_FALSE(dir_.Exists("a").value());
}

TEST_F(RenameTest, NoReplaceOntoATakenNameIsExistsAndChangesNothing) {
  const Status status = dir_.RenameNoReplace("a", "b");
  EXPECT_CODE(status, kExists);
  ExpectNames(status, "rename " + (temp_ / "a") + " to", temp_ / "b");
  EXPECT_EQ(Content("a"), "A");
  EXPECT_EQ(Content("b"), "B");
}

TEST_F(RenameTest, NoReplaceDoesNotTakeAnEmptyFolderEither) {
  EXPECT_OK(dir_.MakeDir("d"));
  EXPECT_OK(dir_.MakeDir("e"));
  EXPECT_CODE(dir_.RenameNoReplace("d", "e"), kExists);
}

TEST_F(RenameTest, AnAbsentSourceIsNotFound) {
  EXPECT_CODE(dir_.RenameNoReplace("x", "y"), kNotFound);
  EXPECT_CODE(dir_.RenameExchange("x", "a"), kNotFound);
  EXPECT_CODE(dir_.Rename("x", "y"), kNotFound);
  EXPECT_CODE(dir_.Link("x", "y"), kNotFound);
}

TEST_F(RenameTest, ExchangeSwapsFilesAndFullFolders) {
  EXPECT_OK(dir_.RenameExchange("a", "b"));
  EXPECT_EQ(Content("a"), "B");
  EXPECT_OK(dir_.MakeDir("d"));
  EXPECT_OK(dir_.MakeDir("e"));
  EXPECT_OK(dir_.OpenDir("d").value().WriteFile("f", "of d"));
  EXPECT_OK(dir_.OpenDir("e").value().WriteFile("f", "of e"));
  EXPECT_OK(dir_.RenameExchange("d", "e"));
  EXPECT_EQ(Content("d/f"), "of e");
}

TEST_F(RenameTest, ExchangeWhereItIsRefusedIsUnsupportedAndChangesNothing) {
  for (const int error : {EINVAL, ENOSYS, ENOTSUP}) {
    WithRefused(SYS_renameat2, error, kAnyDescriptor, [&] {
      const Status status = dir_.RenameExchange("a", "b");
      EXPECT_CODE(status, kUnsupported);
      ExpectNames(status, "exchange " + (temp_ / "a") + " to", temp_ / "b");
    });
  }
  EXPECT_EQ(Content("a"), "A");
}

TEST_F(RenameTest, NoReplaceWhereTheFlagIsRefusedStillNeverReplaces) {
  for (const int error : {EINVAL, ENOSYS, ENOTSUP}) {
    WithRefused(SYS_renameat2, error, kAnyDescriptor, [&] {
      EXPECT_CODE(dir_.RenameNoReplace("a", "b"), kExists);
      EXPECT_OK(dir_.RenameNoReplace("a", "c"));
      EXPECT_OK(dir_.RenameNoReplace("c", "a"));
    });
  }
  EXPECT_EQ(Content("a"), "A");
  EXPECT_EQ(Content("b"), "B");
}

TEST_F(RenameTest, OtherErrorsOfRenameAreNotTakenForAMissingFlag) {
  WithRefused(SYS_renameat2, EIO, kAnyDescriptor, [&] {
    EXPECT_CODE(dir_.RenameNoReplace("a", "c"), kIo);
    EXPECT_CODE(dir_.RenameExchange("a", "b"), kIo);
  });
  EXPECT_TRUE(dir_.Exists("a").value());
}

TEST_F(RenameTest, PlainRenameReplaces) {
  EXPECT_OK(dir_.Rename("a", "b"));
  EXPECT_EQ(Content("b"), "A");
}

TEST_F(RenameTest, PlainRenameOntoAFullFolderIsExists) {
  EXPECT_OK(dir_.MakeDir("d"));
  EXPECT_OK(dir_.MakeDir("e"));
  EXPECT_OK(dir_.OpenDir("e").value().WriteFile("f", ""));
  EXPECT_CODE(dir_.Rename("d", "e"), kExists);
}

TEST_F(RenameTest, LinkGivesASecondNameAndNeverOverwrites) {
  EXPECT_OK(dir_.Link("a", "c"));
  EXPECT_EQ(Content("c"), "A");
  EXPECT_CODE(dir_.Link("a", "b"), kExists);
  EXPECT_EQ(Content("b"), "B");
}

TEST_F(RenameTest, UnlinkIsContentWithAnAbsentName) {
  EXPECT_OK(dir_.Unlink("a"));
  EXPECT_OK(dir_.Unlink("a"));
  EXPECT_FALSE(dir_.Exists("a").value());
}

TEST_F(RenameTest, UnlinkOfAFolderIsAnError) {
  EXPECT_OK(dir_.MakeDir("d"));
  EXPECT_CODE(dir_.Unlink("d"), kIo);
}

}  // namespace
}  // namespace ckpt
