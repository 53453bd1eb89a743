// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "store/lease.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "store/owner_record.h"
#include "unit/store/fixture.h"

namespace ckpt {
namespace {

constexpr char kElsewhere[] = "00000000-0000-0000-0000-000000000000";

class LeaseTest : public RootTest {
 protected:
  std::string RecordPath() const { return At(".ckpt/owner.json"); }
  OwnerRecord OnDisk() const {
    auto record = DecodeOwner(ReadAll(RecordPath()));
    EXPECT_TRUE(record.ok()) << record.status().message();
    return record.ok() ? *record : OwnerRecord();
  }
  // The record of a process on another host, as that would write it.
  void PlantElsewhere(uint64_t lease = 7) {
    std::filesystem::create_directories(At(".ckpt"));
    OwnerRecord r;
    r.process = ThisProcess();
    r.process.boot_id = kElsewhere;
    r.process.host = "node7";
    r.job_id = "job-x";
    r.token = "theirs";
    r.lease = lease;
    r.sequence = 41;
    WriteAll(RecordPath() + ".tmp", EncodeOwner(r));
    ASSERT_EQ(rename((RecordPath() + ".tmp").c_str(), RecordPath().c_str()), 0);
  }
  static OwnerOptions Fast() {
    OwnerOptions o;
    o.job_id = "job-b";
    o.lease_period_ms = 20;
    o.lease_dead_ms = 300;
    return o;
  }
  Result<std::shared_ptr<RootOwner>> Try(const OwnerOptions& o) {
    return RootOwner::Take(root_, o, nullptr);
  }
};

TEST_F(LeaseTest, AnOwnerRenewsItsLeaseAndStaysTheOwner) {
  auto owner = Try(Fast());
  ASSERT_OK(owner.status());
  const OwnerRecord before = OnDisk();
  for (int i = 0; i < 200 && OnDisk().lease < before.lease + 3; ++i) usleep(10'000);
  EXPECT_GE(OnDisk().lease, before.lease + 3);
  EXPECT_EQ(OnDisk().token, before.token);
  EXPECT_OK((*owner)->Check());
  ASSERT_OK(Save(*owner, {.step = 1}));
  usleep(60'000);
  EXPECT_EQ(OnDisk().sequence, 1u);  // renewing loses no sequence
}

TEST_F(LeaseTest, TheRecordKeepsItsLengthSoThatItIsRenewedInPlace) {
  OwnerRecord r;
  r.process = ThisProcess();
  r.job_id = "\"lease\": 0, \"sequence\": 0";
  const std::string low = EncodeOwner(r);
  r.lease = r.sequence = UINT64_MAX;
  const std::string high = EncodeOwner(r);
  EXPECT_EQ(low.size(), high.size());
  auto back = DecodeOwner(high);
  ASSERT_OK(back.status());
  EXPECT_EQ(back->lease, UINT64_MAX);
  EXPECT_EQ(back->job_id, r.job_id);
}

TEST_F(LeaseTest, B05_AnOwnerElsewhereThatRenewsIsAliveAndNamedAtOnce) {
  PlantElsewhere(7);
  OwnerOptions o = Fast();
  o.lease_dead_ms = 20'000;
  int looks = 0;
  o.progress = [&](const std::string& text) {
    EXPECT_NE(text.find("node7"), std::string::npos) << text;
    if (++looks == 2) PlantElsewhere(8);
  };
  const TimePoint start = Clock::now();
  const Status status = Try(o).status();
  EXPECT_LT(Clock::now() - start, Millis(10'000));
  EXPECT_CODE(kOwned, status);
  EXPECT_SAYS(status, "job-x");
  EXPECT_SAYS(status, "node7");
  EXPECT_SAYS(status, Cat("pid ", getpid()));
  EXPECT_EQ(OnDisk().token, "theirs");
}

TEST_F(LeaseTest, AnOwnerElsewhereThatDoesNotRenewIsTakenOverAfterTheWait) {
  PlantElsewhere();
  const TimePoint start = Clock::now();
  auto owner = Try(Fast());
  ASSERT_OK(owner.status());
  EXPECT_GE(Clock::now() - start, Millis(295));
  ASSERT_OK(Save(*owner, {.step = 1}));
  EXPECT_EQ(FindStep(Root(), 1)->record->sequence, 42u);
}

TEST_F(LeaseTest, ForceSkipsTheWaitButNotALivingOwnerOfThisHost) {
  PlantElsewhere();
  OwnerOptions o = Fast();
  o.force = true;
  o.lease_dead_ms = 3'600'000;
  EXPECT_OK(Try(o).status());
  OwnerRecord r;
  r.process = ThisProcess();  // another copy of the library, say
  r.token = "t";
  WriteAll(RecordPath(), EncodeOwner(r));
  EXPECT_CODE(kOwned, Try(o).status());
}

TEST_F(LeaseTest, AnotherPidNamespaceIsWatchedToo) {
  PlantElsewhere();
  OwnerRecord r = OnDisk();
  r.process.boot_id = ThisProcess().boot_id;
  r.process.pid_namespace = "pid:[1]";
  WriteAll(RecordPath(), EncodeOwner(r));
  EXPECT_OK(Try(Fast()).status());
}

TEST_F(LeaseTest, TheWaitCanBeCancelled) {
  PlantElsewhere();
  OwnerOptions o = Fast();
  o.lease_dead_ms = 3'600'000;
  int asked = 0;
  o.stop = [&] { return ++asked > 2; };
  EXPECT_CODE(kCancelled, Try(o).status());
  EXPECT_EQ(OnDisk().token, "theirs");
}

TEST_F(LeaseTest, ARootThatIsReleasedWhileItIsWatchedIsTaken) {
  PlantElsewhere();
  OwnerOptions o = Fast();
  o.lease_dead_ms = 3'600'000;
  o.progress = [&](const std::string&) { unlink(RecordPath().c_str()); };
  EXPECT_OK(Try(o).status());
}

TEST_F(LeaseTest, AnotherOneThatTookItWhileItWasWatchedIsAlive) {
  PlantElsewhere();
  OwnerOptions o = Fast();
  o.progress = [&](const std::string&) {
    OwnerRecord r = OnDisk();
    r.token = "third";
    WriteAll(RecordPath(), EncodeOwner(r));
  };
  EXPECT_CODE(kOwned, Try(o).status());
}

// As after SIGSTOP and a takeover elsewhere: the name leads to another's record.
TEST_F(LeaseTest, AResumedOwnerNeitherRenewsOverTheNewOneNorCommits) {
  auto owner = Try(Fast());
  ASSERT_OK(owner.status());
  auto save = StepTransaction::Begin(*owner, {1, OnExisting::kAuto, "lineage-a"});
  ASSERT_OK(save.status());
  const Prepared p = Fill(**owner, **save, {.step = 1});
  PlantElsewhere();
  const std::string theirs = ReadAll(RecordPath());
  usleep(100'000);  // several renewals
  EXPECT_EQ(ReadAll(RecordPath()), theirs);
  EXPECT_CODE(kOwned, (*owner)->Check());
  EXPECT_CODE(kOwned,
              (*save)->Commit(
                  p.record, p.index_files, [] { return Status(); }, [] { return false; }, nullptr));
  save->reset();
  owner = Status(Code::kState, "gone");
  EXPECT_EQ(ReadAll(RecordPath()), theirs);
  EXPECT_TRUE(Steps().empty());
}

// Stopped between its last check and its rename: the new owner has moved the staging folder away.
TEST_F(LeaseTest, AnOwnerThatIsTakenOverBehindItsLastCheckPublishesNothing) {
  auto owner = Try(Fast());
  ASSERT_OK(owner.status());
  SaveSpec spec{.step = 1};
  spec.enter_commit = [&] {  // the last check is behind us
    PlantElsewhere();
    for (const std::string& name : Names(root_)) {
      if (!name.starts_with(".staging-")) continue;
      EXPECT_EQ(rename(At(name).c_str(), At(".trash-1").c_str()), 0);
    }
    return Status();
  };
  EXPECT_FALSE(Save(*owner, spec).ok());
  EXPECT_TRUE(Steps().empty());
}

TEST_F(LeaseTest, ARecordThatIsAwayForAMomentIsWaitedFor) {
  auto owner = Try(Fast());
  ASSERT_OK(owner.status());
  const std::string aside = At(".ckpt/owner-1.old");
  ASSERT_EQ(rename(RecordPath().c_str(), aside.c_str()), 0);
  std::thread back([&] {
    usleep(10'000);
    EXPECT_EQ(rename(aside.c_str(), RecordPath().c_str()), 0);
  });
  EXPECT_OK((*owner)->Check());
  back.join();
}

TEST_F(LeaseTest, TheRenewingThreadIsNamedAndHasItsSignalsBlocked) {
  auto owner = Try(Fast());
  ASSERT_OK(owner.status());
  std::string blocked;
  for (int look = 0; look < 200 && blocked.empty(); ++look) {  // it names itself
    usleep(5'000);
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (ReadAll(task.path().string() + "/comm") != "ckpt-lease\n") continue;
      const std::string status = ReadAll(task.path().string() + "/status");
      blocked = status.substr(status.find("SigBlk:"), 24);
    }
  }
  EXPECT_NE(blocked.find("fffffffe7ffbfeff"), std::string::npos) << blocked;
}

}  // namespace
}  // namespace ckpt
