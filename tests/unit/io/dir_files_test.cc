// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of a folder: what opening refuses, and small files whole.
#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "unit/io/temp_dir.h"

namespace ckpt {
namespace {

class DirFilesTest : public IoTest {
 protected:
  Status OpenStatus(const char* name, DirectIo direct = DirectIo::kOff) {
    return dir_.OpenFile(name, FileMode::kRead, direct).status();
  }
};

TEST_F(DirFilesTest, AnAbsentFileIsNotFoundAndNamed) {
  EXPECT_CODE(OpenStatus("none"), kNotFound);
  ExpectNames(OpenStatus("none"), "open", temp_ / "none");
  EXPECT_CODE(dir_.ReadFile("none", 10).status(), kNotFound);
}

TEST_F(DirFilesTest, CreateNeverTakesAFileThatIsThere) {
  EXPECT_OK(dir_.WriteFile("f", "old"));
  EXPECT_CODE(dir_.CreateFile("f", DirectIo::kAuto).status(), kExists);
  EXPECT_CODE(dir_.WriteFile("f", "new"), kExists);
  EXPECT_EQ(Slurp(temp_ / "f"), "old");
}

TEST_F(DirFilesTest, LinksAreNotFollowedInEitherDirection) {
  EXPECT_OK(dir_.WriteFile("f", "x"));
  ASSERT_EQ(::symlink("f", (temp_ / "link").c_str()), 0);
  ASSERT_EQ(::symlink("made", (temp_ / "dangling").c_str()), 0);
  EXPECT_CODE(OpenStatus("link"), kIo);
  ExpectNames(OpenStatus("link"), "links are not followed", temp_ / "link");
  EXPECT_CODE(dir_.CreateFile("dangling", DirectIo::kOff).status(), kExists);
  EXPECT_FALSE(dir_.Exists("made").value());
}

TEST_F(DirFilesTest, AFifoNeitherHangsNorCountsAsAFile) {
  ASSERT_EQ(::mkfifo((temp_ / "fifo").c_str(), 0600), 0);
  EXPECT_CODE(OpenStatus("fifo"), kCorrupt);
  EXPECT_CODE(dir_.ReadFile("fifo", 10).status(), kCorrupt);
}

TEST_F(DirFilesTest, AFolderIsNotAFile) {
  EXPECT_OK(dir_.MakeDir("d"));
  EXPECT_CODE(OpenStatus("d"), kCorrupt);
}

TEST_F(DirFilesTest, DirectAutoOpensWhateverTheFileSystemSays) {
  const TempDir memory("/dev/shm");
  const File file = memory.Open().CreateFile("f", DirectIo::kAuto).value();
  const AlignedBuffer data = AlignedBuffer::Make(8192).value();
  EXPECT_OK(file.WriteBlock(data.data(), 8192, 0));
  EXPECT_EQ(file.Size().value(), 8192u);
}

TEST_F(DirFilesTest, DirectOnWhereItIsRefusedIsUnsupportedAndLeavesNoFile) {
  // procfs refuses O_DIRECT on every kernel.
  const Dir proc = Dir::Open("/proc/self").value();
  const Status status = proc.OpenFile("status", FileMode::kRead, DirectIo::kOn).status();
  EXPECT_CODE(status, kUnsupported);
  ExpectNames(status, "direct I/O", "/proc/self/status");
  const auto fallback = proc.OpenFile("status", FileMode::kRead, DirectIo::kAuto);
  ASSERT_TRUE(fallback.ok()) << fallback.status().message();
  EXPECT_FALSE(fallback->direct());
}

TEST_F(DirFilesTest, SmallFilesComeBackByteForByte) {
  const std::string content("a\0b\n\xff", 5);
  EXPECT_OK(dir_.WriteFile("f", content));
  EXPECT_OK(dir_.WriteFile("empty", ""));
  EXPECT_EQ(dir_.ReadFile("f", 5).value(), content);
  EXPECT_EQ(dir_.ReadFile("empty", 0).value(), "");
}

TEST_F(DirFilesTest, AFileOverTheLimitIsLimitAndNotAllocated) {
  EXPECT_OK(dir_.WriteFile("f", "123456"));
  EXPECT_CODE(dir_.ReadFile("f", 5).status(), kLimit);
  ASSERT_EQ(::truncate((temp_ / "f").c_str(), int64_t{1} << 42), 0);  // sparse
  const Status status = dir_.ReadFile("f", 1 << 20).status();
  EXPECT_CODE(status, kLimit);
  ExpectNames(status, "4398046511104 bytes", temp_ / "f");
}

TEST_F(DirFilesTest, ReplaceSwapsTheContentAndLeavesNoTemporary) {
  EXPECT_OK(dir_.ReplaceFile("LATEST", "one"));
  EXPECT_OK(dir_.ReplaceFile("LATEST", "two"));
  EXPECT_EQ(Slurp(temp_ / "LATEST"), "two");
  EXPECT_EQ(dir_.List().value().size(), 1u);
}

TEST_F(DirFilesTest, ReplaceKeepsTheOldFileOpenReadersHold) {
  EXPECT_OK(dir_.WriteFile("f", "old"));
  const File reader = dir_.OpenFile("f", FileMode::kRead, DirectIo::kOff).value();
  EXPECT_OK(dir_.ReplaceFile("f", "new"));
  char back[3];
  EXPECT_OK(reader.ReadAt(back, 3, 0));
  EXPECT_EQ(std::string(back, 3), "old");
}

TEST_F(DirFilesTest, ReplaceTakesOverATemporaryThatACrashLeft) {
  EXPECT_OK(dir_.WriteFile(".f.tmp", "half"));
  EXPECT_OK(dir_.ReplaceFile("f", "whole"));
  EXPECT_EQ(Slurp(temp_ / "f"), "whole");
  EXPECT_FALSE(dir_.Exists(".f.tmp").value());
}

TEST_F(DirFilesTest, ReplaceThatFailsLeavesTheOldAndNoTemporary) {
  EXPECT_OK(dir_.MakeDir("d"));
  EXPECT_FALSE(dir_.ReplaceFile("d", "x").ok());
  EXPECT_EQ(dir_.List().value().size(), 1u);
}

}  // namespace
}  // namespace ckpt
