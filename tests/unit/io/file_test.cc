// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// File: exact reads and writes, direct I/O, preallocation, and what a full or limited disk gives.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>
#include <string>

#include "unit/io/refuse.h"
#include "unit/io/temp_dir.h"

namespace ckpt {
namespace {

class FileTest : public IoTest {
 protected:
  File Create(DirectIo direct = DirectIo::kOff) {
    auto file = dir_.CreateFile("f", direct);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return std::move(file).value();
  }
  std::string OnDisk() { return Slurp(temp_ / "f"); }
};

void ExpectNoSpace(const Status& status, const std::string& what, const std::string& path) {
  EXPECT_CODE(status, kNoSpace);
  ExpectNames(status, what, path);
}

AlignedBuffer Random(size_t n, uint64_t seed = 1) {
  AlignedBuffer buffer = AlignedBuffer::Make(n).value();
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < n; ++i) buffer.data()[i] = static_cast<char>(random());
  return buffer;
}

std::string Text(const AlignedBuffer& buffer) { return {buffer.data(), buffer.size()}; }

TEST_F(FileTest, WritesAndReadsAtOffsets) {
  const File file = Create();
  EXPECT_OK(file.WriteAt("world", 5, 6));
  EXPECT_OK(file.WriteAt("hello ", 6, 0));
  EXPECT_EQ(OnDisk(), "hello world");
  char back[5];
  EXPECT_OK(file.ReadAt(back, 5, 3));
  EXPECT_EQ(std::string(back, 5), "lo wo");
  EXPECT_EQ(file.Size().value(), 11u);
}

TEST_F(FileTest, AReadPastTheEndIsCorruptAndSaysHowMuchIsMissing) {
  const File file = Create();
  EXPECT_OK(file.WriteAt("12345", 5, 0));
  char back[16];
  for (const Status& status : {file.ReadAt(back, 12, 0), file.ReadBlock(back, 12, 0)}) {
    EXPECT_CODE(status, kCorrupt);
    ExpectNames(status, "7 bytes short", temp_ / "f");
  }
  EXPECT_CODE(file.ReadAt(back, 1, 100), kCorrupt);
  EXPECT_OK(file.ReadAt(back, 0, 100));
}

TEST_F(FileTest, OffsetsBeyondTheLargestAreRefused) {
  const File file = Create();
  char byte = 0;
  for (const uint64_t offset : {UINT64_MAX, uint64_t{INT64_MAX}}) {
    EXPECT_CODE(file.ReadAt(&byte, 1, offset), kInvalidArgument);
    EXPECT_CODE(file.WriteAt(&byte, 1, offset), kInvalidArgument);
    EXPECT_CODE(file.WriteBlock(&byte, 1, offset), kInvalidArgument);
  }
  EXPECT_CODE(file.Preallocate(UINT64_MAX), kInvalidArgument);
}

TEST_F(FileTest, AnUnalignedTailOfADirectFileIsWrittenAndReadBack) {
  for (const size_t n : {size_t{1}, size_t{4096}, size_t{12288 + 777}, (size_t{1} << 20) - 1}) {
    const File file = Create(DirectIo::kAuto);
    if (!file.direct()) GTEST_SKIP() << "no O_DIRECT under " << temp_.path();
    const AlignedBuffer data = Random(n, n);
    EXPECT_OK(file.WriteBlock(data.data(), n, 0));
    EXPECT_OK(file.Sync());
    EXPECT_EQ(file.Size().value(), n);
    EXPECT_TRUE(OnDisk() == Text(data)) << n;
    const AlignedBuffer back = AlignedBuffer::Make(n).value();
    EXPECT_OK(file.ReadBlock(back.data(), n, 0));
    EXPECT_TRUE(Text(back) == Text(data)) << n;
    EXPECT_OK(dir_.Unlink("f"));
  }
}

TEST_F(FileTest, UnalignedMemoryAndOffsetsOfADirectFileGoThroughTheCache) {
  const File file = Create(DirectIo::kAuto);
  const AlignedBuffer data = Random(16384);
  EXPECT_OK(file.WriteBlock(data.data(), 8192, 0));
  EXPECT_OK(file.WriteBlock(data.data() + 4100, 8192, 4100));  // both unaligned
  EXPECT_OK(file.WriteBlock(data.data() + 8192, 4096 + 4, 8192));
  EXPECT_EQ(OnDisk(), Text(data).substr(0, 8192 + 4100));
  std::string back(8000, '\0');
  EXPECT_OK(file.ReadBlock(back.data(), back.size(), 100));
  EXPECT_EQ(back, Text(data).substr(100, 8000));
}

TEST_F(FileTest, ADirectReadPastTheEndIsCorrupt) {
  const File file = Create(DirectIo::kAuto);
  const AlignedBuffer data = Random(12288);
  EXPECT_OK(file.WriteBlock(data.data(), 5000, 0));
  const AlignedBuffer back = AlignedBuffer::Make(12288).value();
  const Status status = file.ReadBlock(back.data(), 12288, 0);
  EXPECT_CODE(status, kCorrupt);
  ExpectNames(status, "7288 bytes short", temp_ / "f");
}

// The descriptor that open(2) would give next.
int NextDescriptor() {
  const Fd probe(::open("/", O_RDONLY | O_CLOEXEC));
  return probe.get();
}

TEST_F(FileTest, DirectAutoFallsBackWhenAWriteOrReadIsRefused) {
  const int buffered = NextDescriptor();  // the direct one is opened right after it
  const File file = Create(DirectIo::kAuto);
  if (!file.direct()) GTEST_SKIP() << "no O_DIRECT under " << temp_.path();
  const AlignedBuffer data = Random(12288);
  const AlignedBuffer back = AlignedBuffer::Make(12288).value();
  WithRefused(SYS_pwrite64, EINVAL, buffered + 1,
              [&] { EXPECT_OK(file.WriteBlock(data.data(), 12288, 0)); });
  WithRefused(SYS_pread64, EINVAL, buffered + 1,
              [&] { EXPECT_OK(file.ReadBlock(back.data(), 12288, 0)); });
  EXPECT_TRUE(Text(back) == Text(data));
}

TEST_F(FileTest, DirectOnDoesNotFallBack) {
  const int buffered = NextDescriptor();
  auto file = dir_.CreateFile("f", DirectIo::kOn);
  if (!file.ok()) GTEST_SKIP() << file.status().message();
  const AlignedBuffer data = Random(4096);
  WithRefused(SYS_pwrite64, EINVAL, buffered + 1, [&] {
    const Status status = file->WriteBlock(data.data(), 4096, 0);
    EXPECT_CODE(status, kUnsupported);
    ExpectNames(status, "write", temp_ / "f");
  });
}

TEST_F(FileTest, OtherErrorsOfADirectWriteAreErrors) {
  const int buffered = NextDescriptor();
  const File file = Create(DirectIo::kAuto);
  if (!file.direct()) GTEST_SKIP() << "no O_DIRECT under " << temp_.path();
  const AlignedBuffer data = Random(4096);
  WithRefused(SYS_pwrite64, ENOSPC, buffered + 1,
              [&] { ExpectNoSpace(file.WriteBlock(data.data(), 4096, 0), "write", temp_ / "f"); });
}

TEST_F(FileTest, PreallocateExtendsWhereFallocateIsRefusedAndNeverCuts) {
  const File file = Create();
  for (const int error : {EINVAL, ENOSYS, EOPNOTSUPP}) {
    WithRefused(SYS_fallocate, error, kAnyDescriptor, [&] {
      EXPECT_OK(file.Preallocate(5000 + static_cast<uint64_t>(error)));
      EXPECT_OK(file.Preallocate(10));
    });
    EXPECT_GE(file.Size().value(), 5000 + static_cast<uint64_t>(error));
  }
}

TEST_F(FileTest, AFailedSyncIsAnErrorThatNamesTheFile) {
  const File file = Create();
  WithRefused(SYS_fsync, EIO, kAnyDescriptor, [&] {
    EXPECT_CODE(file.Sync(), kIo);
    ExpectNames(file.Sync(), "fsync", temp_ / "f");
    EXPECT_CODE(dir_.Sync(), kIo);
    EXPECT_CODE(dir_.WriteFile("g", "x"), kIo);
    EXPECT_CODE(dir_.ReplaceFile("h", "x"), kIo);
    EXPECT_CODE(Dir::Make(temp_ / "new/folder").status(), kIo);
  });
  EXPECT_FALSE(dir_.Exists("g").value());
  EXPECT_FALSE(dir_.Exists("h").value());
}

TEST_F(FileTest, DirectOffHasNoDirectDescriptor) { EXPECT_FALSE(Create().direct()); }

TEST_F(FileTest, PreallocateExtendsWithZerosAndNeverCuts) {
  const File file = Create();
  EXPECT_OK(file.Preallocate(0));
  EXPECT_OK(file.WriteAt("abc", 3, 0));
  EXPECT_OK(file.Preallocate(10000));
  EXPECT_EQ(OnDisk(), "abc" + std::string(9997, '\0'));
  EXPECT_OK(file.Preallocate(5));
  EXPECT_EQ(file.Size().value(), 10000u);
}

TEST_F(FileTest, AWriteThatTheFileSizeLimitCutsShortIsAnErrorNotASmallFile) {
  sigset_t block, before;
  sigemptyset(&block);
  sigaddset(&block, SIGXFSZ);  // as on the library's threads
  pthread_sigmask(SIG_BLOCK, &block, &before);
  rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {10000, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string data(30000, 'x');
  const Status status = Create().WriteAt(data.data(), data.size(), 0);
  ::setrlimit(RLIMIT_FSIZE, &old);
  const timespec none = {};
  sigtimedwait(&block, nullptr, &none);  // take back what is pending
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_CODE(status, kIo);
  EXPECT_EQ(status.cause().sys_errno, EFBIG);
  EXPECT_EQ(OnDisk().size(), 10000u);  // the short count was continued, not returned
}

TEST_F(FileTest, AFullDiskIsNoSpaceNamesTheFileAndLeavesNoHalfOfASmallOne) {
  const std::string mount = temp_ / "full";
  ASSERT_EQ(::mkdir(mount.c_str(), 0755), 0);
  if (::mount("tmpfs", mount.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "needs mount";
  {
    const Dir full = Dir::Open(mount).value();
    const File file = full.CreateFile("f", DirectIo::kOff).value();
    const std::string data(1 << 20, 'x');
    ExpectNoSpace(file.WriteAt(data.data(), data.size(), 0), "write", mount + "/f");
    ExpectNoSpace(file.Preallocate(1 << 20), "preallocate", mount + "/f");
    EXPECT_CODE(full.WriteFile("g", data), kNoSpace);
    EXPECT_FALSE(full.Exists("g").value());
  }
  EXPECT_EQ(::umount(mount.c_str()), 0);
}

TEST_F(FileTest, ErrorsOfTheKernelComeThroughWithErrno) {
  EXPECT_OK(dir_.WriteFile("f", "abc"));
  const File file = dir_.OpenFile("f", FileMode::kRead, DirectIo::kAuto).value();
  const AlignedBuffer data = Random(4096);
  for (const Status& status :
       {file.WriteAt("x", 1, 0), file.WriteBlock(data.data(), 4096, 0), file.Preallocate(99)}) {
    EXPECT_CODE(status, kIo);
    EXPECT_EQ(status.cause().sys_errno, EBADF);
  }
}

TEST_F(FileTest, ClosesOnceAndSaysSo) {
  File file = Create(DirectIo::kAuto);
  EXPECT_OK(file.Close());
  EXPECT_FALSE(file.valid());
  EXPECT_FALSE(file.direct());
  EXPECT_OK(file.Close());
}

TEST_F(FileTest, DescriptorsDoNotReachOtherPrograms) {
  const File file = Create();
  const std::string command =
      "for f in /proc/self/fd/*; do readlink $f; done | grep -q '" + temp_.path() + "'";
  EXPECT_NE(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace ckpt
