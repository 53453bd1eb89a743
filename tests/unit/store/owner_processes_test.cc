// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Ownership between real processes: children made by fork, spoken to over pipes.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

// A child that waits until all copies of `go`'s writing end are closed, says one letter, the result
// of `body`, and lives until it is killed.
class Race {
 public:
  Race(const int go[2], const std::function<char()>& body) {
    int said[2];
    EXPECT_EQ(pipe(said), 0);
    pid_ = fork();
    if (pid_ == 0) {
      char letter = 0;
      close(go[1]);
      while (read(go[0], &letter, 1) > 0) {
      }
      letter = body();
      if (write(said[1], &letter, 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(said[1]);
    said_ = said[0];
  }
  ~Race() {
    Kill();
    close(said_);
  }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  char Said() {
    char letter = '?';
    EXPECT_EQ(read(said_, &letter, 1), 1);
    return letter;
  }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  int said_ = -1;
};

// One that starts at once.
class Child {
 public:
  explicit Child(const std::function<char()>& body) {
    int go[2];
    EXPECT_EQ(pipe(go), 0);
    race_ = std::make_unique<Race>(go, body);
    close(go[0]);
    close(go[1]);
    said_ = race_->Said();
  }
  void Kill() { race_->Kill(); }
  pid_t pid() const { return race_->pid(); }
  char said() const { return said_; }

 private:
  std::unique_ptr<Race> race_;
  char said_ = '?';
};

char Letter(const Status& status) {
  return status.ok() ? 'k' : status.code() == Code::kOwned ? 'o' : '!';
}

class OwnerProcessesTest : public RootTest {
 protected:
  // What a child gets that owns the root until it is killed.  Leaked: a killed process frees
  // nothing.
  char TakeForEver() {
    auto* owner =
        new Result<std::shared_ptr<RootOwner>>(RootOwner::Take(root_, {"job-child"}, nullptr));
    return Letter(owner->status());
  }
};

TEST_F(OwnerProcessesTest, B05_ASecondJobGetsOwnedUntilTheFirstIsDead) {
  Child child([&] { return TakeForEver(); });
  ASSERT_EQ(child.said(), 'k');
  const Status status = RootOwner::Take(root_, {"job-b"}, nullptr).status();
  EXPECT_CODE(kOwned, status);
  EXPECT_SAYS(status, "job-child");
  EXPECT_SAYS(status, Cat("pid ", child.pid()));
  child.Kill();
  EXPECT_OK(RootOwner::Take(root_, {"job-b"}, nullptr).status());
}

// The renewing thread is the parent's: a child must neither wait for it nor end by it.
TEST_F(OwnerProcessesTest, AForkedChildDropsItsParentsOwnerAndItsLeaseGoesOn) {
  OwnerOptions options;
  options.lease_period_ms = 20;
  auto owner = RootOwner::Take(root_, options, nullptr);
  ASSERT_OK(owner.status());
  const pid_t pid = fork();
  if (pid == 0) {
    owner = Status(Code::kState, "gone");
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  const std::string before = ReadAll(At(".ckpt/owner.json"));
  usleep(100'000);
  EXPECT_NE(ReadAll(At(".ckpt/owner.json")), before);
  EXPECT_OK((*owner)->Check());
}

// A job that is stopped (SIGSTOP) in the middle of a save, taken over with force as from another
// host, and resumed: it must not commit.
TEST_F(OwnerProcessesTest, AStoppedOwnerThatWasTakenOverPublishesNothingWhenItGoesOn) {
  const pid_t pid = fork();
  if (pid == 0) {
    OwnerOptions options;
    options.lease_period_ms = 10;
    auto owner = RootOwner::Take(root_, options, nullptr);
    SaveSpec spec{.step = 1};
    spec.enter_commit = [] {  // behind the last check
      raise(SIGSTOP);
      return Status();
    };
    const bool published = Save(*owner, spec).ok();
    _exit(published || (*owner)->Check().code() != Code::kOwned ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  // From here it looks like another host's: same record, other boot.
  std::string record = ReadAll(At(".ckpt/owner.json"));
  const size_t boot = record.find("\"boot_id\": \"") + 12;
  record.replace(boot, 8, "00000000");
  WriteAll(At(".ckpt/owner.json"), record);
  OwnerOptions options;
  options.lease_dead_ms = 200;
  auto owner = RootOwner::Take(root_, options, nullptr);
  ASSERT_OK(owner.status());
  ASSERT_OK(Save(*owner, {.step = 2}));
  kill(pid, SIGCONT);
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Steps(), std::vector<int64_t>{2});
  EXPECT_OK((*owner)->Check());
}

TEST_F(OwnerProcessesTest, OfManyThatTakeOverADeadOwnersRootOneGetsIt) {
  for (int round = 0; round < 10; ++round) {
    {
      Child dead([&] { return TakeForEver(); });
    }
    int go[2];
    ASSERT_EQ(pipe(go), 0);
    std::vector<std::unique_ptr<Race>> racers;
    for (int i = 0; i < 4; ++i) {
      racers.push_back(std::make_unique<Race>(go, [&] { return TakeForEver(); }));
    }
    close(go[0]);
    close(go[1]);  // all start
    std::string said;
    for (const auto& racer : racers) said += racer->Said();
    std::sort(said.begin(), said.end());
    EXPECT_EQ(said, "kooo");
  }
}

TEST_F(OwnerProcessesTest, AForkedChildNeitherSharesNorReleasesItsParentsRoot) {
  auto owner = Take();
  auto save = StepTransaction::Begin(owner, {1, OnExisting::kAuto, "lineage-a"});
  ASSERT_OK(save.status());
  const pid_t pid = fork();
  if (pid == 0) {
    const bool forked = owner->Check().code() == Code::kForked;
    const bool owned = RootOwner::Take(root_, {"child"}, nullptr).status().code() == Code::kOwned;
    save->reset();
    owner.reset();
    _exit(forked && owned ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_OK(owner->Check());
  EXPECT_TRUE(Exists(At((*save)->staging_folder())));
  const Prepared p = Fill(*owner, **save, {});
  EXPECT_OK((*save)->Commit(
      p.record, p.index_files, [] { return Status(); }, [] { return false; }, nullptr));
}

TEST_F(OwnerProcessesTest, B17_C09_AfterAKillBeforeTheRenameTheNextOwnerStartsClean) {
  ASSERT_OK(Save(Take(), {.step = 1}));
  const pid_t pid = fork();
  if (pid == 0) {
    SaveSpec spec{.step = 2};
    spec.enter_commit = [] {  // everything is written and synced
      kill(getpid(), SIGKILL);
      return Status();
    };
    _exit(Save(Take(), spec).ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Steps(), std::vector<int64_t>{1});
  auto owner = Take();
  ExpectClean();
  EXPECT_EQ(Steps(), std::vector<int64_t>{1});
  EXPECT_OK(Save(owner, {.step = 2}));
  EXPECT_EQ(Steps(), (std::vector<int64_t>{2, 1}));
}

}  // namespace
}  // namespace ckpt
