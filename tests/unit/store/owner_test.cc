// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "store/owner_record.h"
#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class OwnerTest : public RootTest {
 protected:
  std::string RecordPath() const { return At(".ckpt/owner.json"); }
  Result<std::shared_ptr<RootOwner>> Try(const std::string& root) {
    return RootOwner::Take(root, {"job-b"}, nullptr);
  }
  // Puts a record there as another process would have.
  void Plant(const std::function<void(OwnerRecord&)>& change) {
    OwnerRecord r;
    r.process = ThisProcess();
    r.job_id = "job-x";
    r.token = "t";
    change(r);
    std::filesystem::create_directories(At(".ckpt"));
    WriteAll(RecordPath(), EncodeOwner(r));
  }
};

TEST_F(OwnerTest, MakesTheRootAndItsRecordAndReleasesIt) {
  root_ += "/deep/er";
  {
    auto owner = Take();
    EXPECT_OK(owner->Check());
    auto record = DecodeOwner(ReadAll(root_ + "/.ckpt/owner.json"));
    ASSERT_OK(record.status());
    EXPECT_EQ(record->job_id, "job-a");
    EXPECT_EQ(record->process, ThisProcess());
    EXPECT_EQ(Names(root_ + "/.ckpt"), std::vector<std::string>{"owner.json"});
  }
  EXPECT_TRUE(Names(root_ + "/.ckpt").empty());
}

TEST_F(OwnerTest, ARootThatCannotBeMadeIsIoNamingIt) {
  for (const char* root : {"/proc/nope", "/proc/nope/deeper"}) {
    const Status status = Try(root).status();
    EXPECT_CODE(kIo, status);
    EXPECT_SAYS(status, root);
    EXPECT_EQ(status.cause().sys_errno, ENOENT);
  }
  if (geteuid() == 0) return;  // whom no mode stops
  ASSERT_EQ(mkdir((base_ + "/closed").c_str(), 0555), 0);
  const Status status = Try(base_ + "/closed/root").status();
  EXPECT_CODE(kIo, status);
  EXPECT_SAYS(status, base_ + "/closed/root");
}

TEST_F(OwnerTest, ContextsOfOneProcessShareItHoweverTheySpellTheRoot) {
  auto first = Take();
  ASSERT_EQ(symlink(root_.c_str(), (base_ + "/link").c_str()), 0);
  auto second = Try(base_ + "/link/../root/.");
  ASSERT_OK(second.status());
  EXPECT_EQ(first, *second);
  first.reset();
  EXPECT_OK((*second)->Check());
  EXPECT_TRUE(Exists(RecordPath()));
  second = Status(Code::kState, "gone");
  EXPECT_FALSE(Exists(RecordPath()));
}

TEST_F(OwnerTest, B05_ALivingOwnerIsNamed) {
  Plant([](OwnerRecord& r) {
    r.process.pid = getppid();
    r.process.start_time = 0;
    r.process.host = "node7";
  });
  const std::string before = ReadAll(RecordPath());
  const Status status = Try(root_).status();
  EXPECT_CODE(kOwned, status);
  EXPECT_SAYS(status, "job-x");
  EXPECT_SAYS(status, "node7");
  EXPECT_SAYS(status, Cat("pid ", getppid()));
  EXPECT_EQ(ReadAll(RecordPath()), before);
}

TEST_F(OwnerTest, AnotherCopyOfTheLibraryInThisProcessIsALivingOwner) {
  Plant([](OwnerRecord&) {});
  EXPECT_CODE(kOwned, Try(root_).status());
}

TEST_F(OwnerTest, ADeadOwnerIsTakenOverAtOnceAndItsSequenceGoesOn) {
  Plant([](OwnerRecord& r) {
    r.process.start_time -= 1;
    r.sequence = 41;
  });
  auto owner = Take();
  EXPECT_EQ(Names(At(".ckpt")), std::vector<std::string>{"owner.json"});
  ASSERT_OK(Save(owner, {.step = 1}));
  EXPECT_EQ(FindStep(Root(), 1)->record->sequence, 42u);
  EXPECT_EQ(DecodeOwner(ReadAll(RecordPath()))->sequence, 42u);
  EXPECT_OK(owner->Check());
}

TEST_F(OwnerTest, ARecordThatCannotBeReadIsAnOwner) {
  std::filesystem::create_directories(At(".ckpt"));
  for (const std::string& text : {std::string(), std::string("{}"), std::string(100'000, 'x')}) {
    WriteAll(RecordPath(), text);
    const Status status = Try(root_).status();
    EXPECT_CODE(kOwned, status);
    EXPECT_SAYS(status, ".ckpt/owner.json");
  }
}

TEST_F(OwnerTest, LosingTheRecordIsFoundByCheckAndTheOthersIsLeftAlone) {
  auto owner = Take();
  ASSERT_EQ(unlink(RecordPath().c_str()), 0);
  EXPECT_CODE(kOwned, owner->Check());
  Plant([](OwnerRecord& r) { r.job_id = "job-thief"; });
  const Status status = owner->Check();
  EXPECT_CODE(kOwned, status);
  EXPECT_SAYS(status, "job-thief");
  EXPECT_CODE(kOwned, Save(owner, {.step = 1}));
  owner.reset();
  EXPECT_TRUE(Exists(RecordPath()));
}

TEST_F(OwnerTest, LosingTheRecordDuringASaveStopsItsCommit) {
  auto owner = Take();
  auto save = StepTransaction::Begin(owner, {1, OnExisting::kAuto, "lineage-a"});
  ASSERT_OK(save.status());
  const Prepared p = Fill(*owner, **save, {});
  ASSERT_EQ(unlink(RecordPath().c_str()), 0);
  bool entered = false;
  const auto enter = [&] {
    entered = true;
    return Status();
  };
  EXPECT_CODE(kOwned, (*save)->Commit(
                          p.record, p.index_files, enter, [] { return false; }, nullptr));
  EXPECT_FALSE(entered);
  EXPECT_TRUE(Steps().empty());
  ExpectClean();
}

TEST_F(OwnerTest, LinksPlantedInItsPlaceAreNotFollowed) {
  ASSERT_TRUE(std::filesystem::create_directories(root_));
  ASSERT_TRUE(std::filesystem::create_directories(base_ + "/outside"));
  ASSERT_EQ(symlink((base_ + "/outside").c_str(), At(".ckpt").c_str()), 0);
  EXPECT_FALSE(Try(root_).ok());
  EXPECT_TRUE(Names(base_ + "/outside").empty());
  ASSERT_EQ(unlink(At(".ckpt").c_str()), 0);
  ASSERT_EQ(mkdir(At(".ckpt").c_str(), 0777), 0);
  WriteAll(base_ + "/outside/file", "kept");
  ASSERT_EQ(symlink((base_ + "/outside/file").c_str(), RecordPath().c_str()), 0);
  EXPECT_FALSE(Try(root_).ok());
  EXPECT_EQ(ReadAll(base_ + "/outside/file"), "kept");
}

TEST_F(OwnerTest, ADeadTakersFilesAreRemovedALivingOnesAreNot) {
  Plant([](OwnerRecord& r) { r.process.start_time -= 1; });
  ASSERT_EQ(rename(RecordPath().c_str(), At(".ckpt/owner-1.old").c_str()), 0);
  Plant([](OwnerRecord&) {});
  ASSERT_EQ(rename(RecordPath().c_str(), At(".ckpt/owner-2.new").c_str()), 0);
  auto owner = Take();
  EXPECT_EQ(Names(At(".ckpt")), (std::vector<std::string>{"owner-2.new", "owner.json"}));
}

TEST_F(OwnerTest, IsReadBackWhole) {
  OwnerRecord r;
  r.process = {"h\"ost", "b", "pid:[1]", 77, UINT64_MAX};
  r.job_id = "job\n";
  r.token = "t";
  r.lease = 3;
  r.sequence = UINT64_MAX;
  auto back = DecodeOwner(EncodeOwner(r));
  ASSERT_OK(back.status());
  EXPECT_EQ(EncodeOwner(*back), EncodeOwner(r));
  EXPECT_EQ(back->process, r.process);
}

}  // namespace
}  // namespace ckpt
