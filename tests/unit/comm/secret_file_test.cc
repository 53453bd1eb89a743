// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The rendezvous file: what is published is found, what is stale or could be forged is not trusted.
#include "comm/secret_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "comm/auth.h"
#include "comm/proc.h"

namespace ckpt {
namespace {

namespace fs = std::filesystem;

class SecretFile : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(StartAuth().ok());
    char name[] = "/tmp/ckpt-secret-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    top_ = name;
    folder_ = top_ + "/run";
  }
  void TearDown() override { fs::remove_all(top_); }

  static Rendezvous Mine() {
    Rendezvous v;
    v.port = 4711;
    v.secret = RandomSecret();
    v.incarnation = RandomNumber();
    v.pid = ::getpid();
    v.start_time = *StartTime(v.pid);
    return v;
  }
  Status Put(const Rendezvous& v) { return Publish(folder_, "job", v).status(); }
  Result<std::optional<Rendezvous>> Read() { return ReadRendezvous(folder_, "job"); }
  bool Absent() {
    auto found = Read();
    return found.ok() && !found->has_value();
  }
  std::string path() const { return folder_ + "/job"; }

  std::string top_, folder_;
};

TEST_F(SecretFile, WhatIsPublishedIsFoundAndPrivate) {
  EXPECT_TRUE(Absent());
  const Rendezvous v = Mine();
  ASSERT_TRUE(Put(v).ok());
  auto found = Read();
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->port, v.port);
  EXPECT_EQ((*found)->secret, v.secret);
  EXPECT_EQ((*found)->incarnation, v.incarnation);
  struct stat st {};
  ASSERT_EQ(::stat(path().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat(folder_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0700u);
  // No temporary file is left.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(SecretFile, OnlyItsOwnerWithdrawsIt) {
  const Rendezvous v = Mine();
  ASSERT_TRUE(Put(v).ok());
  Withdraw(folder_, "job", v.incarnation + 2);
  EXPECT_FALSE(Absent());
  Withdraw(folder_, "job", v.incarnation);
  EXPECT_TRUE(Absent());
}

TEST_F(SecretFile, OneLeftByADeadProcessIsIgnoredAndReplaced) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  Rendezvous stale = Mine();
  stale.pid = child;
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(Put(stale).ok());
  EXPECT_TRUE(Absent());
  stale.pid = ::getpid();
  stale.start_time += 1;  // the pid has been reused
  ASSERT_TRUE(Put(stale).ok());
  EXPECT_TRUE(Absent());
  EXPECT_TRUE(Put(Mine()).ok());
  EXPECT_FALSE(Absent());
}

TEST_F(SecretFile, ASecondLiveRankZeroIsRefusedAndNamed) {
  ASSERT_TRUE(Put(Mine()).ok());
  const Status status = Put(Mine());
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find(std::to_string(::getpid())), std::string::npos);
}

TEST_F(SecretFile, AFolderThatLetsOthersInIsRefused) {
  fs::create_directory(folder_);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  EXPECT_EQ(Put(Mine()).code(), Code::kIo);
  EXPECT_EQ(Read().status().cause().path, folder_);
}

TEST_F(SecretFile, AFolderThatIsALinkIsRefused) {
  fs::create_directory(top_ + "/elsewhere");
  ASSERT_EQ(::chmod((top_ + "/elsewhere").c_str(), 0700), 0);
  fs::create_directory_symlink(top_ + "/elsewhere", folder_);
  EXPECT_EQ(Put(Mine()).code(), Code::kIo);
  EXPECT_FALSE(Read().ok());
  EXPECT_TRUE(fs::is_empty(top_ + "/elsewhere"));
}

TEST_F(SecretFile, AFileThatIsALinkOrOpenToOthersIsRefused) {
  ASSERT_TRUE(Put(Mine()).ok());
  ASSERT_EQ(::chmod(path().c_str(), 0644), 0);
  EXPECT_EQ(Read().status().code(), Code::kIo);
  ASSERT_EQ(::chmod(path().c_str(), 0600), 0);
  fs::rename(path(), top_ + "/moved");
  fs::create_symlink(top_ + "/moved", path());
  EXPECT_EQ(Read().status().code(), Code::kIo);
}

TEST_F(SecretFile, AFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  fs::create_directory(folder_);
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  ASSERT_EQ(::chown(folder_.c_str(), 12345, 12345), 0);
  EXPECT_EQ(Put(Mine()).code(), Code::kIo);
}

TEST_F(SecretFile, GarbageCountsAsNothing) {
  ASSERT_TRUE(Put(Mine()).ok());
  std::ofstream(path(), std::ios::trunc) << "garbage";
  EXPECT_TRUE(Absent());
  std::ofstream(path(), std::ios::trunc) << std::string(10000, 'x');
  EXPECT_TRUE(Absent());
}

TEST_F(SecretFile, TheRuntimeFolderMustBeThisUsers) {
  const auto folder = [](const char* value) {
    return RuntimeFolder([value](const char*) { return value; });
  };
  const std::string fallback = "/tmp/ckpt-" + std::to_string(::geteuid());
  EXPECT_EQ(folder(nullptr), fallback);
  EXPECT_EQ(folder("relative"), fallback);
  EXPECT_EQ(folder("/nonexistent"), fallback);
  EXPECT_EQ(folder(top_.c_str()), top_ + "/ckpt");
}

}  // namespace
}  // namespace ckpt
