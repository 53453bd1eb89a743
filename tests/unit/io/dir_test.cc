// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Dir: open, make, list; modes by umask and setgid (CASES B13); links are not followed.
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "unit/io/temp_dir.h"

namespace ckpt {
namespace {

class DirTest : public IoTest {};

// The umask belongs to the whole process: only tests change it, the library never does.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

std::vector<std::string> Names(const Dir& dir) {
  std::vector<std::string> names;
  const std::vector<DirEntry> entries = dir.List().value();
  for (const DirEntry& e : entries) names.push_back(e.name + (e.is_dir ? "/" : ""));
  return names;
}

TEST_F(DirTest, OpenOfAnAbsentFolderIsNotFoundAndNamesIt) {
  const Status status = Dir::Open(temp_ / "none").status();
  EXPECT_CODE(status, kNotFound);
  ExpectNames(status, "open folder", temp_ / "none");
}

TEST_F(DirTest, OpenOfAFileIsAnError) {
  EXPECT_OK(dir_.WriteFile("f", ""));
  EXPECT_CODE(Dir::Open(temp_ / "f").status(), kIo);
  EXPECT_CODE(dir_.OpenDir("f").status(), kIo);
}

TEST_F(DirTest, EmptyAndBrokenPathsAreInvalid) {
  EXPECT_CODE(Dir::Open("").status(), kInvalidArgument);
  EXPECT_CODE(Dir::Make("").status(), kInvalidArgument);
  EXPECT_CODE(Dir::Make(temp_.path() + std::string("/a\0b", 4)).status(), kInvalidArgument);
}

TEST_F(DirTest, KeepsTheAbsoluteFormOfARelativePath) {
  EXPECT_EQ(Dir::Open("/").value().path(), "/");
  EXPECT_EQ(Dir::Open(temp_.path() + "//").value().path(), temp_.path());
  char cwd[4096];
  ASSERT_NE(::getcwd(cwd, sizeof cwd), nullptr);
  EXPECT_EQ(Dir::Open(".").value().path(), cwd);
  EXPECT_EQ(Dir::Open("..").value().path(),
            (std::string(cwd) == "/" ? "" : cwd) + std::string("/.."));
}

TEST_F(DirTest, MakesEveryMissingFolderAndIsContentWithWhatExists) {
  const auto made = Dir::Make(temp_ / "a/b//c/");
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(std::filesystem::is_directory(temp_ / "a/b/c"));
  EXPECT_TRUE(Dir::Make(temp_ / "a/b/c").ok());
  EXPECT_OK(made->WriteFile("f", "x"));
  EXPECT_EQ(Slurp(temp_ / "a/b/c/f"), "x");
}

TEST_F(DirTest, MakesOneFolderFromManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<Status> results(8);
  for (auto& result : results) {
    threads.emplace_back([&] { result = Dir::Make(temp_ / "p/q/r/s").status(); });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_OK(result);
}

TEST_F(DirTest, MakeBelowAFileIsAnErrorThatNamesTheOperation) {
  EXPECT_OK(dir_.WriteFile("f", ""));
  const Status status = Dir::Make(temp_ / "f/a").status();
  EXPECT_CODE(status, kIo);
  EXPECT_EQ(status.cause().sys_errno, ENOTDIR);
}

TEST_F(DirTest, MakeDirTwiceIsExists) {
  EXPECT_OK(dir_.MakeDir("d"));
  const Status status = dir_.MakeDir("d");
  EXPECT_CODE(status, kExists);
  ExpectNames(status, "make folder", temp_ / "d");
}

TEST_F(DirTest, B13_FilesAre0640AndFolders0750UnderUmask027) {
  const Umask umask(027);
  EXPECT_OK(dir_.MakeDir("d"));
  EXPECT_TRUE(Dir::Make(temp_ / "e/f").ok());
  EXPECT_TRUE(dir_.CreateFile("c", DirectIo::kAuto).ok());
  EXPECT_OK(dir_.WriteFile("w", "x"));
  EXPECT_OK(dir_.ReplaceFile("r", "x"));
  for (const char* name : {"d", "e", "e/f"}) EXPECT_EQ(ModeOf(temp_ / name), 0750u) << name;
  for (const char* name : {"c", "w", "r"}) EXPECT_EQ(ModeOf(temp_ / name), 0640u) << name;
}

TEST_F(DirTest, B13_TheGroupOfASetgidParentIsInherited) {
  if (::chown(temp_.path().c_str(), static_cast<uid_t>(-1), 12345) != 0)
    GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chmod(temp_.path().c_str(), 02775), 0);
  EXPECT_OK(dir_.MakeDir("d"));
  EXPECT_OK(dir_.OpenDir("d").value().WriteFile("f", "x"));
  EXPECT_OK(dir_.ReplaceFile("r", "x"));
  EXPECT_TRUE(ModeOf(temp_ / "d") & S_ISGID);
  for (const char* name : {"d", "d/f", "r"}) {
    struct stat st = {};
    ASSERT_EQ(::stat((temp_ / name).c_str(), &st), 0);
    EXPECT_EQ(st.st_gid, 12345u) << name;
  }
}

TEST_F(DirTest, OpenDirDoesNotFollowALink) {
  EXPECT_OK(dir_.MakeDir("d"));
  ASSERT_EQ(::symlink("d", (temp_ / "link").c_str()), 0);
  EXPECT_CODE(dir_.OpenDir("link").status(), kIo);
  EXPECT_TRUE(Dir::Open(temp_ / "link").ok());  // the user's own path may lead through links
}

TEST_F(DirTest, NamesThatCouldLeaveTheFolderAreInvalidEverywhere) {
  for (const char* bad : {"", ".", "..", "a/b", "/etc"}) {
    EXPECT_CODE(dir_.OpenDir(bad).status(), kInvalidArgument);
    EXPECT_CODE(dir_.MakeDir(bad), kInvalidArgument);
    EXPECT_CODE(dir_.OpenFile(bad, FileMode::kRead, DirectIo::kOff).status(), kInvalidArgument);
    EXPECT_CODE(dir_.CreateFile(bad, DirectIo::kOff).status(), kInvalidArgument);
    EXPECT_CODE(dir_.ReadFile(bad, 1).status(), kInvalidArgument);
    EXPECT_CODE(dir_.WriteFile(bad, ""), kInvalidArgument);
    EXPECT_CODE(dir_.ReplaceFile(bad, ""), kInvalidArgument);
    EXPECT_CODE(dir_.Exists(bad).status(), kInvalidArgument);
    EXPECT_CODE(dir_.Rename(bad, "x"), kInvalidArgument);
    EXPECT_CODE(dir_.Rename("x", bad), kInvalidArgument);
    EXPECT_CODE(dir_.RenameNoReplace("x", bad), kInvalidArgument);
    EXPECT_CODE(dir_.RenameExchange(bad, "x"), kInvalidArgument);
    EXPECT_CODE(dir_.Link("x", bad), kInvalidArgument);
    EXPECT_CODE(dir_.Unlink(bad), kInvalidArgument);
    EXPECT_CODE(dir_.RemoveTree(bad), kInvalidArgument);
  }
}

TEST_F(DirTest, ListsSortedAndKnowsFoldersFromLinksToThem) {
  EXPECT_OK(dir_.WriteFile("b", ""));
  EXPECT_OK(dir_.WriteFile(".hidden", ""));
  EXPECT_OK(dir_.MakeDir("a"));
  ASSERT_EQ(::symlink("a", (temp_ / "c").c_str()), 0);
  EXPECT_EQ(Names(dir_), (std::vector<std::string>{".hidden", "a/", "b", "c"}));
  EXPECT_EQ(Names(dir_).size(), 4u);  // a second list starts at the beginning again
}

TEST_F(DirTest, ExistsSeesFilesFoldersAndDanglingLinks) {
  EXPECT_FALSE(dir_.Exists("x").value());
  EXPECT_OK(dir_.WriteFile("x", ""));
  EXPECT_TRUE(dir_.Exists("x").value());
  ASSERT_EQ(::symlink("nowhere", (temp_ / "l").c_str()), 0);
  EXPECT_TRUE(dir_.Exists("l").value());
}

TEST_F(DirTest, FollowsItsFolderThroughARenameNotThePath) {
  EXPECT_OK(dir_.MakeDir("old"));
  const Dir inner = dir_.OpenDir("old").value();
  EXPECT_OK(dir_.Rename("old", "new"));
  EXPECT_OK(dir_.MakeDir("old"));
  EXPECT_OK(inner.WriteFile("f", "x"));
  EXPECT_OK(inner.Sync());
  EXPECT_EQ(Slurp(temp_ / "new/f"), "x");
}

}  // namespace
}  // namespace ckpt
