// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "store/intent.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "store/names.h"
#include "unit/io/refuse.h"
#include "unit/store/fixture.h"

namespace ckpt {
namespace {

// As on a file system that cannot exchange two names.
void WithoutExchange(const std::function<void()>& body) {
  for (const int error : {EINVAL, ENOSYS, ENOTSUP}) {
    WithRefused(SYS_renameat2, error, kAnyDescriptor, body);
  }
}

class IntentTest : public RootTest {
 protected:
  void SetUp() override {
    owner_ = Take();
    ASSERT_OK(Save(owner_, {.step = 5, .fill = 'a'}));
  }
  Status Replace(SaveSpec spec = {.step = 5, .fill = 'b'}) { return Save(owner_, spec); }
  std::shared_ptr<RootOwner> owner_;
};

TEST_F(IntentTest, B18_WithoutExchangeAStepIsReplacedByTwoRenames) {
  WithoutExchange([&] {
    ASSERT_OK(MarkBad(*owner_, 5));
    ASSERT_OK(SetPinned(*owner_, 5, Pin::kOn));
    std::vector<std::string> warnings;
    ASSERT_OK(Replace({.step = 5, .fill = 'b', .warnings = &warnings}));
    EXPECT_TRUE(warnings.empty());
    EXPECT_EQ(FillOf(5), 'b');
    EXPECT_OK(ReadCatalog(StepDir(5)).status());
    EXPECT_FALSE(FindStep(Root(), 5)->bad || FindStep(Root(), 5)->pinned);
    ExpectClean();
    ASSERT_OK(Replace({.step = 5, .fill = 'a'}));
  });
}

TEST_F(IntentTest, B17_AFolderWithoutRecordGoesAfterTheCommitOfItsStep) {
  WithoutExchange([&] {
    std::filesystem::remove_all(At(StepFolder(6)));
    std::filesystem::create_directories(InStep(6, "sub"));
    SaveSpec failing{.step = 6};
    failing.enter_commit = [] { return Status(Code::kCancelled, "no"); };
    EXPECT_CODE(kCancelled, Save(owner_, failing));
    EXPECT_TRUE(Exists(InStep(6, "sub")));
    ASSERT_OK(Save(owner_, {.step = 6, .fill = 'c'}));
    EXPECT_FALSE(Exists(InStep(6, "sub")));
    EXPECT_EQ(FillOf(6), 'c');
    ExpectClean();
  });
}

TEST_F(IntentTest, WithoutFinishTheNextOwnerRemovesTheOldStepAndTheIntent) {
  WithoutExchange([&] { ASSERT_OK(Replace({.step = 5, .fill = 'b', .finish = false})); });
  EXPECT_TRUE(Exists(At(IntentFile(5))));
  EXPECT_EQ(Steps(), std::vector<int64_t>{5});
  owner_.reset();
  owner_ = Take();
  ExpectClean();
  EXPECT_EQ(FillOf(5), 'b');
}

TEST_F(IntentTest, ALateFinishLeavesALaterSavesIntentAlone) {
  WithRefused(SYS_renameat2, ENOSYS, kAnyDescriptor, [&] {
    auto save = StepTransaction::Begin(owner_, {5, OnExisting::kAuto, "lineage-a"});
    ASSERT_OK(save.status());
    const Prepared p = Fill(*owner_, **save, {.step = 5, .fill = 'b'});
    ASSERT_OK((*save)->Commit(
        p.record, p.index_files, [] { return Status(); }, [] { return false; }, nullptr));
    ASSERT_OK(Replace({.step = 5, .fill = 'c', .finish = false}));
    (*save)->Finish(nullptr);
    EXPECT_EQ(FillOf(5), 'c');
    EXPECT_OK(ReadCatalog(StepDir(5)).status());
  });
}

TEST_F(IntentTest, ReadersFindTheStepAtEveryMomentOfAReplacement) {
  std::atomic<bool> done{false};
  std::atomic<int> looks{0};
  std::thread reader([&] {
    const Dir root = Root();
    for (; !done; ++looks) {
      EXPECT_OK(FindStep(root, 5).status());
      auto newest = NewestStep(root, nullptr);
      ASSERT_OK(newest.status());
      EXPECT_EQ(newest->step, 5);
    }
  });
  WithRefused(SYS_renameat2, ENOSYS, kAnyDescriptor, [&] {
    for (int i = 0; i < 50; ++i) ASSERT_OK(Replace({.step = 5, .fill = 'b'}));
  });
  done = true;
  reader.join();
  EXPECT_GT(looks, 0);
}

TEST_F(IntentTest, IsReadBackWholeAndNamesNothingButStagingAndTrash) {
  WriteAll(At(IntentFile(5)), EncodeIntent({5, ".staging-1", ".trash-2"}));
  auto intent = ReadIntent(Root(), 5);
  ASSERT_OK(intent.status());
  EXPECT_EQ(intent->staging, ".staging-1");
  EXPECT_EQ(intent->trash, ".trash-2");
  WriteAll(At(IntentFile(6)), EncodeIntent({5, ".staging-1", ".trash-2"}));
  EXPECT_CODE(kCorrupt, ReadIntent(Root(), 6).status());
  WriteAll(At(IntentFile(6)), EncodeIntent({6, ".staging-1", "step-000000000005"}));
  EXPECT_CODE(kCorrupt, ReadIntent(Root(), 6).status());
  EXPECT_CODE(kNotFound, ReadIntent(Root(), 7).status());
}

// A root as a crash left it, and the next owner.  'a' is the old step, 'b' the new one.
class IntentCrashTest : public IntentTest {
 protected:
  void SetUp() override {
    IntentTest::SetUp();
    ASSERT_OK(Replace({.step = 5, .fill = 'b', .finish = false}));
    owner_.reset();
    for (const std::string& name : Names(root_)) {
      if (name.starts_with(".staging-")) Move(name, "../old");
    }
    Move(StepFolder(5), "../new");
  }
  void Move(const std::string& from, const std::string& to) {
    ASSERT_EQ(rename(At(from).c_str(), At(to).c_str()), 0) << from;
  }
  void Place(const std::string& old_name, const std::string& new_name, bool intent = true) {
    if (!old_name.empty()) Move("../old", old_name);
    if (!new_name.empty()) Move("../new", new_name);
    if (intent) WriteAll(At(IntentFile(5)), EncodeIntent({5, kStaging, kTrash}));
  }
  char Seen() {  // by a reader
    auto newest = NewestStep(Root(), nullptr);
    if (!newest.ok() || newest->step != 5 || !FindStep(Root(), 5).ok()) return '!';
    const std::string bytes = ReadAll(At(newest->folder + "/model.safetensors"));
    return bytes.empty() ? '?' : bytes.back();
  }
  // After the next owner has come.
  char Kept() {
    std::vector<std::string> warnings;
    auto owner = RootOwner::Take(root_, {"job"}, &warnings);
    EXPECT_OK(owner.status());
    for (const std::string& w : warnings) ADD_FAILURE() << w;
    ExpectClean();
    EXPECT_OK(ReadCatalog(StepDir(5)).status());
    EXPECT_EQ(Steps(), std::vector<int64_t>{5});
    EXPECT_OK(Save(*owner, {.step = 6}));
    EXPECT_EQ(NewestStep(Root(), nullptr)->step, 6);
    return FillOf(5);
  }
  static constexpr char kStaging[] = ".staging-0001", kTrash[] = ".trash-0002";
};

TEST_F(IntentCrashTest, BeforeTheIntentItIsTheOldStep) {
  Place(StepFolder(5), kStaging, false);
  EXPECT_EQ(Seen(), 'a');
  EXPECT_EQ(Kept(), 'a');
}

TEST_F(IntentCrashTest, WithHalfAnIntentItIsTheOldStep) {
  Place(StepFolder(5), kStaging, false);
  WriteAll(At(IntentFile(5)), "{\"format\": \"ckpt-rep");
  EXPECT_EQ(Seen(), 'a');
  EXPECT_EQ(Kept(), 'a');
}

TEST_F(IntentCrashTest, BeforeTheFirstRenameItIsTheOldStep) {
  Place(StepFolder(5), kStaging);
  EXPECT_EQ(Seen(), 'a');
  EXPECT_EQ(Kept(), 'a');
}

TEST_F(IntentCrashTest, BetweenTheRenamesReadersSeeTheOldStepAndTheNextOwnerMakesItTheNewOne) {
  Place(kTrash, kStaging);
  EXPECT_EQ(Seen(), 'a');
  EXPECT_EQ(Kept(), 'b');
}

TEST_F(IntentCrashTest, BetweenTheRenamesWithoutTheNewFolderTheOldStepComesBack) {
  Place(kTrash, "");
  EXPECT_EQ(Seen(), 'a');
  EXPECT_EQ(Kept(), 'a');
}

TEST_F(IntentCrashTest, BetweenTheRenamesWithADamagedNewFolderTheOldStepComesBack) {
  Place(kTrash, kStaging);
  ASSERT_EQ(unlink(At(std::string(kStaging) + "/config.json").c_str()), 0);
  EXPECT_EQ(Seen(), 'a');
  EXPECT_EQ(Kept(), 'a');
}

TEST_F(IntentCrashTest, AfterTheSecondRenameItIsTheNewStep) {
  Place(kTrash, StepFolder(5));
  EXPECT_EQ(Seen(), 'b');
  EXPECT_EQ(Kept(), 'b');
}

TEST_F(IntentCrashTest, AfterTheIntentItIsTheNewStep) {
  Place(kTrash, StepFolder(5), false);
  EXPECT_EQ(Seen(), 'b');
  EXPECT_EQ(Kept(), 'b');
}

TEST_F(IntentCrashTest, WithHalfOfItsTrashRemovedItIsTheNewStep) {
  Place(kTrash, StepFolder(5));
  ASSERT_EQ(unlink(At(std::string(kTrash) + "/ckpt.json").c_str()), 0);
  EXPECT_EQ(Kept(), 'b');
}

TEST_F(IntentCrashTest, AnUnreadableIntentOfAMissingStepKeepsEverything) {
  Place(kTrash, kStaging, false);
  WriteAll(At(IntentFile(5)), "damaged");
  EXPECT_CODE(kCorrupt, FindStep(Root(), 5).status());
  EXPECT_CODE(kCorrupt, NewestStep(Root(), nullptr).status());
  std::vector<std::string> warnings;
  auto owner = RootOwner::Take(root_, {"job"}, &warnings);
  ASSERT_OK(owner.status());
  EXPECT_FALSE(warnings.empty());
  ASSERT_OK(Save(*owner, {.step = 6, .keep_last = 1}));
  EXPECT_TRUE(Exists(At(kTrash)));
  EXPECT_TRUE(Exists(At(kStaging)));
}

}  // namespace
}  // namespace ckpt
