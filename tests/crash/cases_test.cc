// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of CASES.md that need the shim, by their ids: errors of one rank (A09, C04), slow disks
// (B01), modes while others create files (B13), peers that leave at once (H13).
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "crash/crash.h"

namespace ckpt_test {
namespace {

constexpr int64_t kMiB = (1 << 20) / sizeof(float);  // in items

void ExpectIoErrorOf(int rank, const Outcome& o) {
  EXPECT_STATUS(o, CKPT_ERR_IO);
  EXPECT_EQ(o.cause.rank, rank) << o;
  EXPECT_EQ(o.cause.sys_errno, EIO) << o;
  EXPECT_NE(o.cause.path.find("model.safetensors"), std::string::npos) << o;
  EXPECT_SAYS(o, "rank " + std::to_string(rank));
  EXPECT_LT(o.seconds, 3) << o;
}

// Step 1 is saved, step 2 fails on `victim` as `rule` says; nothing is left of it and the next
// save works.
void ExpectOneRanksFaultStopsAll(int victim, const std::string& rule) {
  const CrashPlace place;
  const Result r = launch::Run({.ranks = 4}, [&](Rank& rank) {
    CrashJob job(rank, {.root = place.root, .config = "io.block=1MiB\n", .items = 4 * kMiB});
    EXPECT_OK(job.Save(1, 1));
    place.Arm(rank, rank.is(victim) ? rule : "");
    const Outcome o = job.Save(2, 2);
    shim_reset("");
    ExpectIoErrorOf(victim, o);
    Publish(rank, "o", o);
    if (rank.is(0)) {
      EXPECT_EQ(Leftovers(place.root), "");
      EXPECT_EQ(ListOf(place.root, "step-"), std::set{StepName(1)});
    }
    EXPECT_OK(job.Load());
    EXPECT_TRUE(job.Holds(1));
    EXPECT_OK(job.Save(2, 2));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "o");
  EXPECT_NE(Marked(ReadLog(place.Log(victim)), "fail"), nullptr) << "nothing was broken";
  EXPECT_EQ(NewestByTheFiles(place.root, 4, 4 * kMiB), (Saved{2, 2}));
}

TEST(ShimCases, A09_TheThirdWriteOfRank2FailsOnAll) {
  ExpectOneRanksFaultStopsAll(2, "fail EIO op=write nth=3");
}

TEST(ShimCases, C04_AnFsyncOfRank3FailsOnAll) {
  ExpectOneRanksFaultStopsAll(3, "fail EIO op=fsync");
}

TEST(ShimCases, A09_AFileThatRank1CannotReadFailsTheLoadOnAll) {
  const CrashPlace place;
  const Result r = launch::Run({.ranks = 4}, [&](Rank& rank) {
    CrashJob job(rank, {.root = place.root});
    EXPECT_OK(job.Save(1, 1));
    place.Arm(rank, rank.is(1) ? "fail EIO op=read path=model.safetensors every" : "");
    const Outcome o = job.Load();
    shim_reset("");
    ExpectIoErrorOf(1, o);
    Publish(rank, "o", o);
    rank.Barrier("readable again");
    EXPECT_OK(job.Load());
    EXPECT_TRUE(job.Holds(1));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "o");
}

TEST(ShimCases, B01_ManySavesOfManyRanksOnASlowDiskMakeOneFolderEach) {
  constexpr int kRanks = 8, kSaves = 50;
  const CrashPlace place;
  const Result r = launch::Run({.ranks = kRanks, .deadline_s = 60}, [&](Rank& rank) {
    CrashJob job(rank, {.root = place.root, .items = kMiB / kRanks});
    place.Arm(rank, "seed " + std::to_string(rank.id() + 1) + "\ndelay 0-50 op=write every");
    for (int step = 1; step <= kSaves; ++step) EXPECT_OK(job.Save(step, static_cast<float>(step)));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(Leftovers(place.root), "");
  std::set<std::string> steps;
  for (int step = 1; step <= kSaves; ++step) steps.insert(StepName(step));
  EXPECT_EQ(ListOf(place.root, "step-"), steps);
  EXPECT_EQ(NewestByTheFiles(place.root, kRanks, kMiB / kRanks), (Saved{kSaves, kSaves}));
}

struct stat Look(const std::string& path) {
  struct stat st {};
  EXPECT_EQ(lstat(path.c_str(), &st), 0) << path;
  return st;
}

// Creates files until told to stop; whoever takes the umask off meanwhile is caught by one of them.
class Creator {
 public:
  explicit Creator(const std::string& folder) : folder_(folder) {
    std::filesystem::create_directory(folder);
    thread_ = std::thread([this] {
      while (!stop_) std::ofstream(folder_ + "/" + std::to_string(made_++)).put('x');
    });
  }
  void Stop() {
    stop_ = true;
    thread_.join();
  }
  int made() const { return made_; }

 private:
  const std::string folder_;
  std::atomic<bool> stop_{false};
  std::atomic<int> made_{0};
  std::thread thread_;
};

TEST(ShimCases, B13_ModesFollowTheUmaskWhichIsNeverTakenOff) {
  constexpr gid_t kGroup = 54321;
  const CrashPlace place;
  const std::string parent = place.scratch / "parent", others = place.scratch / "others";
  const std::string root = parent + "/root";
  std::filesystem::create_directory(parent);
  const bool another_group = chown(parent.c_str(), static_cast<uid_t>(-1), kGroup) == 0;
  ASSERT_EQ(another_group, geteuid() == 0);
  ASSERT_EQ(chmod(parent.c_str(), 02755), 0);
  const Result r = launch::Run({.ranks = 2}, [&](Rank& rank) {
    umask(027);
    Creator creator(others + std::to_string(rank.id()));
    CrashJob job(rank, {.root = root});
    shim_reset(("root " + root + "\ndelay 2 every").c_str());
    EXPECT_OK(job.Save(1, 1));
    EXPECT_OK(job.Save(1, 2));
    creator.Stop();
    EXPECT_GT(creator.made(), 50);
  });
  ASSERT_TRUE(r.ok()) << r.report();
  for (const std::string& top : {root, others + "0", others + "1"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
      const bool folder = entry.is_directory();
      const struct stat st = Look(entry.path());
      EXPECT_EQ(st.st_mode & 0777, folder ? 0750u : 0640u) << entry.path();
      if (top != root) continue;
      EXPECT_EQ(st.st_gid, Look(parent).st_gid) << entry.path();
      EXPECT_EQ((st.st_mode & S_ISGID) != 0, folder) << entry.path();
    }
  }
}

TEST(ShimCases, H13_PeersThatExitAtOnceDoNotCostTheSideFile) {
  const CrashPlace place;
  const Result r = launch::Run({.ranks = 4}, [&](Rank& rank) {
    CrashJob job(rank, {.root = place.root});
    // Rank 0 is slow in what only it writes.
    place.Arm(rank, rank.is(0) ? "delay 20 op=write,fsync,rename,noreplace every" : "");
    EXPECT_OK(job.Save(1, 7));
    std::fflush(nullptr);
    if (!rank.is(0)) _exit(testing::Test::HasFailure() ? 1 : 0);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(NewestByTheFiles(place.root, 4), (Saved{1, 7}));  // the side file's bytes too
  EXPECT_EQ(Leftovers(place.root), "");
}

}  // namespace
}  // namespace ckpt_test
