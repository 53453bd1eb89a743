// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class TransactionTest : public RootTest {
 protected:
  void SetUp() override { owner_ = Take(); }
  std::unique_ptr<StepTransaction> Begin(int64_t step = 1) {
    auto save = StepTransaction::Begin(owner_, {step, OnExisting::kAuto, "lineage-a"});
    EXPECT_TRUE(save.ok()) << save.status().message();
    return save.ok() ? std::move(save).value() : nullptr;
  }
  Status Commit(StepTransaction& save, const Prepared& p) {
    return save.Commit(
        p.record, p.index_files, [] { return Status(); }, [] { return false; }, nullptr);
  }
  std::shared_ptr<RootOwner> owner_;
};

TEST_F(TransactionTest, FilesArePreallocatedInAStagingFolderThatIsNoStep) {
  auto save = Begin();
  EXPECT_OK(save->AddFile("model.safetensors", 10'000));
  EXPECT_OK(save->AddFile("empty", 0));
  const std::string folder = At(save->staging_folder());
  EXPECT_EQ(ReadAll(folder + "/model.safetensors"), std::string(10'000, '\0'));
  EXPECT_EQ(Names(folder), (std::vector<std::string>{"empty", "model.safetensors"}));
  EXPECT_TRUE(Steps().empty());
}

TEST_F(TransactionTest, EndingWithoutCommitRemovesTheStagingFolder) {
  const std::string folder = At(Begin()->staging_folder());
  EXPECT_FALSE(Exists(folder));
  ExpectClean();
}

TEST_F(TransactionTest, H01_NamesOfFilesArePlainAndUnique) {
  auto save = Begin();
  for (const char* name : {"", "..", "a/b", ".pinned", "ckpt.json"}) {
    EXPECT_CODE(kInvalidArgument, save->AddFile(name, 1));
  }
  EXPECT_OK(save->AddFile("x", 1));
  EXPECT_CODE(kInvalidArgument, save->AddFile("x", 1));
}

TEST_F(TransactionTest, B13_ModesFollowTheUmask) {
  const mode_t before = umask(027);
  ASSERT_OK(Save(owner_, {.step = 1}));
  umask(before);
  struct stat st;
  ASSERT_EQ(stat(At(StepFolder(1)).c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0750u);
  for (const std::string& name : Names(At(StepFolder(1)))) {
    ASSERT_EQ(stat(InStep(1, name).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0640u) << name;
  }
}

TEST_F(TransactionTest, SequencesAreUniqueAmongTheSavesOfOneProcess) {
  auto first = Begin(1), second = Begin(2);
  const Prepared a = Fill(*owner_, *first, {.step = 1}), b = Fill(*owner_, *second, {.step = 2});
  EXPECT_EQ(a.record.sequence, 1u);
  EXPECT_EQ(b.record.sequence, 2u);
  EXPECT_OK(Commit(*second, b));
  EXPECT_OK(Commit(*first, a));
  EXPECT_EQ(Steps(), (std::vector<int64_t>{2, 1}));
}

TEST_F(TransactionTest, AFailedSaveGivesItsSequenceBack) {
  EXPECT_EQ(*Begin()->NextSequence(), 1u);
  EXPECT_EQ(*Begin()->NextSequence(), 1u);
}

TEST_F(TransactionTest, TheSequenceGoesOnWithoutTheOwnersRecord) {
  ASSERT_OK(Save(owner_, {.step = 1}));
  ASSERT_OK(Save(owner_, {.step = 2}));
  owner_.reset();
  ASSERT_FALSE(Exists(At(".ckpt/owner.json")));
  owner_ = Take();
  EXPECT_EQ(*Begin(3)->NextSequence(), 3u);
}

TEST_F(TransactionTest, KnownListsTheOtherStepsDamagedOnesToo) {
  for (int64_t step : {1, 2, 3}) ASSERT_OK(Save(owner_, {.step = step}));
  WriteAll(InStep(2, "ckpt.json"), "");
  auto known = Begin(3)->Known();
  ASSERT_OK(known.status());
  EXPECT_EQ(*known, (std::vector<std::pair<uint64_t, std::string>>{{1, StepFolder(1)},
                                                                   {0, StepFolder(2)}}));
}

TEST_F(TransactionTest, ARecordThatDoesNotGoWithTheFilesIsNeverPublished) {
  const std::function<void(Prepared&)> faults[] = {
      [](Prepared& p) { p.record.step = 9; },
      [](Prepared& p) { p.record.lineage = "other"; },
      [](Prepared& p) { p.record.world_size = 0; },
      [](Prepared& p) { p.record.files[0].bytes += 1; },
      [](Prepared& p) { p.record.side_files[0].name = "gone.json"; },
      [](Prepared& p) { p.record.index_files[0].crc32c ^= 1; },
      [](Prepared& p) { p.index_files.clear(); },
      [](Prepared& p) { p.record.groups.clear(); },
  };
  for (const auto& fault : faults) {
    auto save = Begin();
    Prepared p = Fill(*owner_, *save, {});
    fault(p);
    EXPECT_FALSE(Commit(*save, p).ok());
    EXPECT_TRUE(Steps().empty());
    ExpectClean();
  }
}

TEST_F(TransactionTest, EndsOnce) {
  auto save = Begin();
  const Prepared p = Fill(*owner_, *save, {});
  EXPECT_OK(Commit(*save, p));
  EXPECT_CODE(kState, Commit(*save, p));
  EXPECT_CODE(kState, save->AddFile("x", 1));
  save.reset();
  EXPECT_EQ(Steps(), std::vector<int64_t>{1});
}

TEST_F(TransactionTest, KeepsTheRootOwnedUntilItEnds) {
  auto save = Begin();
  owner_.reset();
  EXPECT_TRUE(Exists(At(".ckpt/owner.json")));
  save.reset();
  EXPECT_FALSE(Exists(At(".ckpt/owner.json")));
}

TEST_F(TransactionTest, NeedsAnOwnerAndAStepFromZero) {
  EXPECT_CODE(kInternal, StepTransaction::Begin(nullptr, {1, OnExisting::kAuto, ""}).status());
  EXPECT_CODE(kInvalidArgument,
              StepTransaction::Begin(owner_, {-1, OnExisting::kAuto, ""}).status());
  EXPECT_OK(Save(owner_, {.step = INT64_MAX}));
  EXPECT_EQ(Steps(), std::vector<int64_t>{INT64_MAX});
}

}  // namespace
}  // namespace ckpt
