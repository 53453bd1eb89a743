// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// RemoveTree: all of the tree, nothing outside it.
#include <sys/mount.h>
#include <unistd.h>

#include "unit/io/temp_dir.h"

namespace ckpt {
namespace {

class TreeTest : public IoTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Dir::Make(temp_ / "tree/in/ner").ok());
    EXPECT_OK(dir_.OpenDir("tree").value().WriteFile("f", "x"));
    ASSERT_TRUE(Dir::Make(temp_ / "precious").ok());
    EXPECT_OK(dir_.OpenDir("precious").value().WriteFile("p", "keep"));
  }
  void LinkTo(const std::string& target, const std::string& name) {
    ASSERT_EQ(::symlink(target.c_str(), (temp_ / name).c_str()), 0);
  }
  bool Kept() { return Slurp(temp_ / "precious/p") == "keep"; }
};

TEST_F(TreeTest, RemovesFilesFoldersAndNestedOnes) {
  EXPECT_OK(dir_.RemoveTree("tree"));
  EXPECT_FALSE(dir_.Exists("tree").value());
  EXPECT_TRUE(Kept());
}

TEST_F(TreeTest, IsContentWithAnAbsentName) { EXPECT_OK(dir_.RemoveTree("none")); }

TEST_F(TreeTest, DoesNotLeaveTheTreeThroughLinksInIt) {
  LinkTo("../precious", "tree/out");
  LinkTo(temp_ / "precious", "tree/in/absolute");
  LinkTo("..", "tree/in/ner/up");
  EXPECT_OK(dir_.RemoveTree("tree"));
  EXPECT_FALSE(dir_.Exists("tree").value());
  EXPECT_TRUE(Kept());
}

TEST_F(TreeTest, OfALinkRemovesTheLinkOnly) {
  LinkTo("precious", "link");
  EXPECT_OK(dir_.RemoveTree("link"));
  EXPECT_FALSE(dir_.Exists("link").value());
  EXPECT_TRUE(Kept());
}

TEST_F(TreeTest, OfAFileRemovesIt) {
  EXPECT_OK(dir_.WriteFile("file", "x"));
  EXPECT_OK(dir_.RemoveTree("file"));
  EXPECT_FALSE(dir_.Exists("file").value());
}

TEST_F(TreeTest, LeavesTheOtherNamesOfALinkedFileAlone) {
  EXPECT_OK(dir_.WriteFile("file", "x"));
  ASSERT_EQ(::link((temp_ / "file").c_str(), (temp_ / "tree/second").c_str()), 0);
  EXPECT_OK(dir_.RemoveTree("tree"));
  EXPECT_EQ(Slurp(temp_ / "file"), "x");
}

TEST_F(TreeTest, StopsAtAFileSystemMountedInside) {
  const std::string mount = temp_ / "tree/in/ner";
  if (::mount((temp_ / "precious").c_str(), mount.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs mount";
  }
  EXPECT_OK(Dir::Open(mount).value().WriteFile("q", "keep"));
  const Status status = dir_.RemoveTree("tree");
  EXPECT_CODE(status, kIo);
  ExpectNames(status, "mounted", mount);
  EXPECT_EQ(Slurp(mount + "/q"), "keep");
  EXPECT_EQ(::umount(mount.c_str()), 0);
}

TEST_F(TreeTest, NestedBeyondTheLimitIsLimitNotACrash) {
  std::string path = temp_ / "deep";
  for (int level = 0; level < 100; ++level) path += "/d";
  ASSERT_TRUE(Dir::Make(path).ok());
  EXPECT_CODE(dir_.RemoveTree("deep"), kLimit);
}

TEST_F(TreeTest, RemovesFoldersWithManyEntries) {
  const Dir inner = dir_.OpenDir("tree").value();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(inner.CreateFile("n" + std::to_string(i), DirectIo::kOff).ok());
  }
  EXPECT_OK(dir_.RemoveTree("tree"));
  EXPECT_FALSE(dir_.Exists("tree").value());
}

}  // namespace
}  // namespace ckpt
