// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The commit with an fsync that fails, and the order of its fsyncs.  This program's fsync stands in
// the place of the C library's.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "unit/io/refuse.h"
#include "unit/store/fixture.h"

namespace {

struct FakeDisk {
  // Returns the errno of this fsync, 0 for a real one.
  std::function<int(const std::string& path)> on_fsync;
  std::vector<std::string> synced;  // path of each, as it was at that time
};
FakeDisk* g_disk = nullptr;  // one test at a time

std::string PathOf(int fd) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = readlink(link.c_str(), path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : std::string();
}

}  // namespace

extern "C" int fsync(int fd) {
  if (g_disk != nullptr) {
    const std::string path = PathOf(fd);
    const int error = g_disk->on_fsync ? g_disk->on_fsync(path) : 0;
    if (error != 0) {
      errno = error;
      return -1;
    }
    g_disk->synced.push_back(path);
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace ckpt {
namespace {

class CommitFaultTest : public RootTest {
 protected:
  void SetUp() override {
    owner_ = Take();
    ASSERT_OK(Save(owner_, {.step = 1, .fill = 'a'}));
    root_path_ = owner_->root().path();
    g_disk = &disk_;
  }
  void TearDown() override { g_disk = nullptr; }

  bool IsRoot(const std::string& path) const { return path == root_path_; }
  // fsync of the root fails for the first `times` times.
  void FailRootSync(
      int times, const std::function<void()>& meanwhile = [] {}) {
    disk_.on_fsync = [this, times, meanwhile, count = 0](const std::string& path) mutable {
      if (!IsRoot(path) || ++count > times) return 0;
      meanwhile();
      return EIO;
    };
  }
  std::string Staging() const {
    for (const std::string& name : Names(root_)) {
      if (name.starts_with(".staging-")) return name;
    }
    return {};
  }
  std::shared_ptr<RootOwner> owner_;
  std::string root_path_;
  FakeDisk disk_;
};

TEST_F(CommitFaultTest, C05_EveryFileIsSyncedThenTheFolderThenAfterTheRenameTheRoot) {
  bool renamed_at_root_sync = false;
  disk_.on_fsync = [&](const std::string& path) {
    if (IsRoot(path)) renamed_at_root_sync = Exists(InStep(2, "ckpt.json"));
    return 0;
  };
  ASSERT_OK(Save(owner_, {.step = 2}));
  std::vector<std::string> order;  // by last component; files of .ckpt and LATEST are no matter
  for (const std::string& path : disk_.synced) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (path.find("/.ckpt") != std::string::npos || name.find("LATEST") != std::string::npos) {
      continue;
    }
    order.push_back(name.starts_with(".staging-") ? "staging" : IsRoot(path) ? "root" : name);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"model.safetensors.index.json", "ckpt.json", "staging",
                                             "root"}));
  EXPECT_TRUE(renamed_at_root_sync);
}

TEST_F(CommitFaultTest, AFailedSyncOfAnyFileOrOfTheFolderPublishesNothing) {
  for (const std::string victim : {"model.safetensors.index.json", "ckpt.json", ".staging-"}) {
    disk_.on_fsync = [&](const std::string& path) {
      const std::string name = path.substr(path.rfind('/') + 1);
      return name.starts_with(victim) ? EIO : 0;
    };
    for (int64_t step : {1, 2}) {
      EXPECT_CODE(kIo, Save(owner_, {.step = step, .fill = 'b'}));
      EXPECT_EQ(Steps(), std::vector<int64_t>{1});
      EXPECT_EQ(FillOf(1), 'a');
      ExpectClean();
    }
  }
}

TEST_F(CommitFaultTest, NoSpaceIsSaidAsSuch) {
  disk_.on_fsync = [](const std::string& path) {
    return path.ends_with("/ckpt.json") ? ENOSPC : 0;
  };
  EXPECT_CODE(kNoSpace, Save(owner_, {.step = 2}));
  ExpectClean();
}

TEST_F(CommitFaultTest, AFailedSyncOfTheRootUndoesTheRename) {
  FailRootSync(1, [&] { EXPECT_TRUE(Exists(InStep(2, "ckpt.json"))); });
  const Status status = Save(owner_, {.step = 2});
  EXPECT_CODE(kIo, status);
  EXPECT_EQ(status.cause().sys_errno, EIO);
  EXPECT_EQ(Steps(), std::vector<int64_t>{1});
  ExpectClean();
  EXPECT_EQ(ReadAll(At("LATEST")), "step-000000000001\n");
  disk_.on_fsync = nullptr;
  EXPECT_OK(Save(owner_, {.step = 2}));
}

TEST_F(CommitFaultTest, AFailedSyncOfTheRootUndoesAnExchange) {
  FailRootSync(1, [&] { EXPECT_EQ(FillOf(1), 'b'); });
  EXPECT_CODE(kIo, Save(owner_, {.step = 1, .fill = 'b'}));
  EXPECT_EQ(FillOf(1), 'a');
  EXPECT_OK(ReadCatalog(StepDir(1)).status());
  ExpectClean();
}

TEST_F(CommitFaultTest, WhatCanNeitherBeConfirmedNorUndoneIsUnknownAndAllIsKept) {
  FailRootSync(2);
  const Status status = Save(owner_, {.step = 1, .fill = 'b'});
  EXPECT_CODE(kOutcomeUnknown, status);
  // The names are as before; the new folder is there too, whole.
  EXPECT_EQ(FillOf(1), 'a');
  const std::string kept = Staging();
  ASSERT_FALSE(kept.empty());
  EXPECT_TRUE(Exists(At(kept) + "/ckpt.json"));
  // Neither this owner nor a later one of this job removes it.
  disk_.on_fsync = nullptr;
  EXPECT_OK(Save(owner_, {.step = 2}));
  owner_.reset();
  owner_ = Take();
  EXPECT_TRUE(Exists(At(kept) + "/ckpt.json"));
}

TEST_F(CommitFaultTest, AnUndoThatIsImpossibleIsUnknownAndTheNewStepStays) {
  // Somebody makes a folder of the staging's name between the rename and its undoing.
  std::string staging;
  SaveSpec spec{.step = 2, .fill = 'b'};
  spec.enter_commit = [&] {
    staging = Staging();
    return Status();
  };
  FailRootSync(1, [&] { mkdir(At(staging).c_str(), 0777); });
  EXPECT_CODE(kOutcomeUnknown, Save(owner_, spec));
  EXPECT_EQ(FillOf(2), 'b');
  EXPECT_OK(ReadCatalog(StepDir(2)).status());
}

TEST_F(CommitFaultTest, ARenameIsNotUndoneOnceAllWereToldThatTheOutcomeIsUnknown) {
  FailRootSync(1);
  const Status status = Save(owner_, {.step = 2, .fill = 'b', .abandoned = [] { return true; }});
  EXPECT_CODE(kOutcomeUnknown, status);
  EXPECT_SAYS(status, "told");
  EXPECT_EQ(status.cause().sys_errno, EIO);
  EXPECT_EQ(FillOf(2), 'b');
  EXPECT_OK(ReadCatalog(StepDir(2)).status());
  EXPECT_EQ(FillOf(1), 'a');
}

TEST_F(CommitFaultTest, AnExchangeIsNotUndoneOnceAllWereToldThatTheOutcomeIsUnknown) {
  FailRootSync(1);
  EXPECT_CODE(kOutcomeUnknown,
              Save(owner_, {.step = 1, .fill = 'b', .abandoned = [] { return true; }}));
  EXPECT_EQ(FillOf(1), 'b');
  const std::string kept = Staging();
  ASSERT_FALSE(kept.empty());
  disk_.on_fsync = nullptr;
  owner_.reset();
  owner_ = Take();
  EXPECT_EQ(ReadAll(At(kept) + "/model.safetensors").back(), 'a');
  EXPECT_TRUE(Exists(At(kept) + "/ckpt.json"));
}

TEST_F(CommitFaultTest, AfterAnUndoTheNewFilesStayIfAllWereToldMeanwhile) {
  FailRootSync(1);
  SaveSpec spec{.step = 1, .fill = 'b'};
  spec.abandoned = [asked = 0]() mutable { return ++asked > 1; };
  EXPECT_CODE(kOutcomeUnknown, Save(owner_, spec));
  EXPECT_EQ(FillOf(1), 'a');
  const std::string kept = Staging();
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(ReadAll(At(kept) + "/model.safetensors").back(), 'b');
}

TEST_F(CommitFaultTest, AnExceptionAfterTheRenameRemovesNothing) {
  FailRootSync(1, [] { throw std::bad_alloc(); });
  EXPECT_THROW((void)Save(owner_, {.step = 1, .fill = 'b'}), std::bad_alloc);
  EXPECT_EQ(FillOf(1), 'b');
  const std::string kept = Staging();
  ASSERT_FALSE(kept.empty());
  disk_.on_fsync = nullptr;
  owner_.reset();
  owner_ = Take();
  EXPECT_EQ(ReadAll(At(kept) + "/model.safetensors").back(), 'a');
}

TEST_F(CommitFaultTest, B15_AFailingLatestIsAWarning) {
  disk_.on_fsync = [](const std::string& path) {
    return path.find("LATEST") != std::string::npos ? EDQUOT : 0;
  };
  std::vector<std::string> warnings;
  EXPECT_OK(Save(owner_, {.step = 2, .warnings = &warnings}));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("LATEST"), std::string::npos) << warnings[0];
  EXPECT_EQ(NewestStep(Root(), nullptr)->step, 2);
}

TEST_F(CommitFaultTest, D01_AFailingRetentionIsAWarningAndTriedAgain) {
  ASSERT_OK(Save(owner_, {.step = 2}));
  disk_.on_fsync = [this, count = 0](const std::string& path) mutable {
    return IsRoot(path) && ++count == 2 ? EIO : 0;  // the first is the commit's
  };
  std::vector<std::string> warnings;
  EXPECT_OK(Save(owner_, {.step = 3, .keep_last = 1, .warnings = &warnings}));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("after the commit"), std::string::npos) << warnings[0];
  EXPECT_EQ(Steps(), std::vector<int64_t>{3});
  // Not deleted: after a power loss these may be steps.
  int trash = 0;
  for (const std::string& name : Names(root_)) {
    if (!name.starts_with(".trash-")) continue;
    ++trash;
    EXPECT_TRUE(Exists(At(name) + "/ckpt.json"));
  }
  EXPECT_EQ(trash, 2);
  disk_.on_fsync = nullptr;
  EXPECT_OK(Save(owner_, {.step = 4}));
  ExpectClean();
}

// As on a file system that cannot exchange two names: an fsync of the root for the intent, one for
// the commit, one before what was replaced is deleted.
class IntentFaultTest : public CommitFaultTest {
 protected:
  // Saves step 1 as 'b'; root fsyncs number `from` to `to` (from 1) fail.
  Status Replace(
      int from, int to, std::function<bool()> abandoned = [] { return false; }) {
    disk_.on_fsync = [this, from, to, count = 0](const std::string& path) mutable {
      if (!IsRoot(path)) return 0;
      ++count;
      return count >= from && count <= to ? EIO : 0;
    };
    Status status;
    WithRefused(SYS_renameat2, ENOSYS, kAnyDescriptor,
                [&] { status = Save(owner_, {.step = 1, .fill = 'b', .abandoned = abandoned}); });
    disk_.on_fsync = nullptr;
    return status;
  }
  // Step 1 as a reader finds it.
  char Seen() {
    auto entry = FindStep(Root(), 1);
    if (!entry.ok()) return '!';
    return ReadAll(At(entry->folder) + "/model.safetensors").back();
  }
};

TEST_F(IntentFaultTest, AnIntentThatIsNotDurablePublishesNothing) {
  EXPECT_CODE(kIo, Replace(1, 1));
  EXPECT_EQ(Seen(), 'a');
  ExpectClean();
}

TEST_F(IntentFaultTest, AFailedSyncOfTheRootUndoesBothRenames) {
  EXPECT_CODE(kIo, Replace(2, 2));
  EXPECT_EQ(Seen(), 'a');
  EXPECT_OK(ReadCatalog(StepDir(1)).status());
  ExpectClean();
}

TEST_F(IntentFaultTest, WhatCanNeitherBeConfirmedNorUndoneIsUnknownAndAllIsKept) {
  EXPECT_CODE(kOutcomeUnknown, Replace(2, 3));
  EXPECT_EQ(Seen(), 'a');
  const std::string kept = Staging();
  EXPECT_TRUE(Exists(At(kept) + "/ckpt.json"));
  EXPECT_OK(Save(owner_, {.step = 2}));
  EXPECT_TRUE(Exists(At(kept) + "/ckpt.json"));
  EXPECT_OK(Save(owner_, {.step = 1, .fill = 'c'}));  // and the step can be saved again
  EXPECT_EQ(Seen(), 'c');
}

TEST_F(IntentFaultTest, NothingIsUndoneOnceAllWereToldThatTheOutcomeIsUnknown) {
  EXPECT_CODE(kOutcomeUnknown, Replace(2, 2, [] { return true; }));
  EXPECT_EQ(Seen(), 'b');
  EXPECT_OK(Save(owner_, {.step = 2, .keep_last = 9}));
  std::string trash;
  for (const std::string& name : Names(root_)) {
    if (name.starts_with(".trash-")) trash = name;
  }
  ASSERT_FALSE(trash.empty());
  EXPECT_EQ(ReadAll(At(trash) + "/model.safetensors").back(), 'a');
  EXPECT_TRUE(Exists(At(trash) + "/ckpt.json"));
}

TEST_F(IntentFaultTest, AFailedSyncAfterTheCommitIsAWarning) {
  EXPECT_OK(Replace(3, 3));
  EXPECT_EQ(Seen(), 'b');
  EXPECT_OK(Save(owner_, {.step = 2}));
  ExpectClean();
  EXPECT_EQ(Seen(), 'b');
}

TEST_F(CommitFaultTest, LeftoversStayWhileTheRootCannotBeSynced) {
  owner_.reset();
  ASSERT_EQ(mkdir(At(".trash-1").c_str(), 0777), 0);
  WriteAll(At(".trash-1/ckpt.json"), "old");
  FailRootSync(1);
  std::vector<std::string> warnings;
  {
    auto owner = RootOwner::Take(root_, {"job"}, &warnings);
    ASSERT_OK(owner.status());
    EXPECT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(Exists(At(".trash-1/ckpt.json")));
  }
  disk_.on_fsync = nullptr;
  Take();
  ExpectClean();
}

}  // namespace
}  // namespace ckpt
