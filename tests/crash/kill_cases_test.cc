// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Kills of CASES.md that CrashTable's small states do not show: at random byte offsets of large
// files (C01), and what exactly is there after a kill between the last fsync and the rename (B17).
#include <random>

#include "crash/crash.h"

namespace ckpt_test {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kItems = (8 << 20) / sizeof(float);

// 8 MiB per rank, written in requests of 1 MiB.
class RandomKills {
 public:
  // Loads, and saves step 2 until the kill. Returns what the load found.
  Saved Round(const std::string& kill, int victim);
  Saved newest() const { return newest_; }
  int kills() const { return kills_; }
  void SaveStep1();
  std::string RandomKill(int* victim);

  const CrashPlace place{4 * kRanks * kItems * sizeof(float)};

 private:
  CrashOptions options() const {
    return {.root = place.root, .config = "io.block=1MiB\n", .items = kItems};
  }
  std::mt19937 random_{20240501};
  Saved newest_{1, 1};
  Saved doomed_{};  // of the last round
  float base_ = 1;
  int kills_ = 0;
};

void RandomKills::SaveStep1() {
  const Result r = launch::Run({.ranks = kRanks}, [&](Rank& rank) {
    CrashJob job(rank, options());
    EXPECT_OK(job.Save(1, 1));
  });
  ASSERT_TRUE(r.ok()) << r.report();
}

// One write ends after a random number of 4 KiB blocks, and the next one is not begun: a kill at
// a random byte of the file. One in five kills of rank 0 is at any event, the commit's included.
std::string RandomKills::RandomKill(int* victim) {
  const auto below = [&](int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); };
  *victim = below(kRanks);
  const std::string kill = below(2) == 0 ? "kill " : "killall ";
  if (*victim == 0 && below(5) == 0) return kill + "at=" + std::to_string(1 + below(45)) + "\n";
  const int request = 1 + below(8), blocks = below(256);
  if (blocks == 0) return kill + "op=write nth=" + std::to_string(request) + "\n";
  return "short " + std::to_string(blocks * 4096) + " op=write nth=" + std::to_string(request) +
         "\n" + kill + "op=write nth=" + std::to_string(request + 1) + "\n";
}

Saved RandomKills::Round(const std::string& kill, int victim) {
  const Saved before = newest_, doomed = doomed_, next{2, ++base_};
  const Result r = launch::Run({.ranks = kRanks}, [&](Rank& rank) {
    CrashJob job(rank, options());
    const Outcome loaded = job.Load();
    for (const Saved& s : {before, doomed})
      if (loaded.ok() && loaded.result.step == s.step && job.Holds(s.base))
        rank.Put("base", std::to_string(static_cast<int>(s.base)));
    rank.Put("load", loaded.Verdict());
    place.Arm(rank, rank.is(victim) ? kill : "");
    (void)job.Save(next.step, next.base);
  });
  EXPECT_FALSE(r.hang()) << r.report();
  kills_ += r.rank(victim).signal == SIGKILL;
  const std::string base = r.get(0, "base");
  for (int i = 0; i < kRanks; ++i) {
    EXPECT_NE(r.get(i, "base"), "") << "neither old nor new: " << r.get(i, "load");
    EXPECT_EQ(r.get(i, "base"), base) << "a mix: rank " << i;
  }
  if (!base.empty()) newest_ = std::stof(base) == before.base ? before : doomed;
  doomed_ = next;
  return newest_;
}

TEST(KillCases, C01_AKillAtAnyByteOfStep2LeavesStep1OrStep2) {
  constexpr int kTries = 50;
  RandomKills kills;
  kills.SaveStep1();
  for (int i = 0; i < kTries && !testing::Test::HasFailure(); ++i) {
    int victim = 0;
    const std::string kill = kills.RandomKill(&victim);
    SCOPED_TRACE("try " + std::to_string(i) + ", rank " + std::to_string(victim) + ": " + kill);
    kills.Round(kill, victim);
  }
  EXPECT_GE(kills.kills(), kTries * 9 / 10) << "too few saves were hit";
  kills.Round("", 0);
  EXPECT_EQ(Leftovers(kills.place.root), "");
}

TEST(KillCases, B17_AfterAKillBeforeTheRenameThePreviousStepLoadsAndTheTempGoes) {
  const CrashPlace place;
  const Result killed = launch::Run({.ranks = kRanks}, [&](Rank& rank) {
    CrashJob job(rank, {.root = place.root});
    EXPECT_OK(job.Save(1, 1));
    place.Arm(rank, rank.is(0) ? "killall op=noreplace end=/" + StepName(2) : "");
    (void)job.Save(2, 2);
  });
  for (int i = 0; i < kRanks; ++i) EXPECT_EQ(killed.rank(i).signal, SIGKILL) << killed.report();
  const std::string staging = Leftovers(place.root);
  EXPECT_EQ(staging.rfind(".staging-", 0), 0u) << staging;
  const std::string folder = place.root + "/" + staging.substr(0, staging.find(' '));
  EXPECT_TRUE(List(folder).count("ckpt.json")) << "the kill came before the record was written";

  const Result again = launch::Run({.ranks = kRanks}, [&](Rank& rank) {
    CrashJob job(rank, {.root = place.root});
    const Outcome o = job.Load();
    EXPECT_OK(o);
    EXPECT_EQ(o.result.step, 1);
    EXPECT_TRUE(job.Holds(1));
    if (rank.is(0)) {
      EXPECT_EQ(Leftovers(place.root), staging) << "a reader does not clean";
    }
    EXPECT_OK(job.Save(3, 3));
    if (rank.is(0)) {  // whole as it was, it is no step: nobody was told OK
      EXPECT_EQ(ListOf(place.root, "step-"), (std::set{StepName(1), StepName(3)}));
      EXPECT_EQ(Leftovers(place.root), "");
    }
    EXPECT_OK(job.Save(2, 3));
  });
  EXPECT_TRUE(again.ok()) << again.report();
  EXPECT_EQ(NewestByTheFiles(place.root, kRanks), (Saved{2, 3}));
}

}  // namespace
}  // namespace ckpt_test
