// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md C02, first part: a rank killed while it writes, after the others have written.
#include <atomic>

#include "process/process.h"

namespace ckpt_test {
namespace {

constexpr int64_t kBig = 8 << 20;  // items of rank 3's own tensor, 32 MiB: several requests
constexpr int64_t kSmall =
    1 << 17;  // 512 KiB: long enough (plan.min_run) to be written by its holder
constexpr int kTries = 5;

// Rank 3 owns "big"; each of the others owns a small tensor.
struct Job {
  explicit Job(Rank& rank, const std::string& root, std::function<int(const ckpt_event&)> on_event)
      : ctx({.root = root, .timeout_ms = 3000, .on_event = std::move(on_event)}),
        own(rank.is(3) ? kBig : kSmall),
        state(ctx) {
    state.Whole("of rank " + std::to_string(rank.id()), {static_cast<int64_t>(own.size())}, own);
  }
  Ctx ctx;
  std::vector<float> own;
  State state;
};

// Ranks 0-2 say when they have written all, rank 3 stops between its first and its last byte; the
// launcher then kills it.
Result SaveAndKillRank3(const std::string& root, int64_t step) {
  const std::vector<launch::Action> plan = {launch::StopAt("rank 3 is writing", 3),
                                            launch::KillAt("written", 3, SIGKILL, 3)};
  return launch::Run({.ranks = 4, .deadline_s = 30, .plan = plan}, [&](Rank& rank) {
    std::atomic<bool> said{false};
    Job job(rank, root, [&](const ckpt_event& e) {
      if (e.kind != CKPT_EVENT_PROGRESS || e.bytes_done == 0 || said) return 0;
      const bool all = e.bytes_done == e.bytes_total;
      if (rank.is(3) == all) return 0;
      said = true;
      if (!rank.is(3)) rank.WaitFor("rank 3 is writing", 1, 10);
      rank.Event(rank.is(3) ? "rank 3 is writing" : "written");
      return 0;
    });
    ASSERT_INIT(job.ctx);
    std::fill(job.own.begin(), job.own.end(), static_cast<float>(step));
    const Outcome o = Save(job.ctx, job.state, step);
    EXPECT_STATUS(o, CKPT_ERR_PARTICIPANTS);
    EXPECT_EQ(o.RankSet(CKPT_RANK_DEAD), Ranks{3}) << o;
    Publish(rank, "verdict", o);
  });
}

TEST(CommitRecord, C02_ARankKilledMidSaveLeavesThePreviousStepTheNewest) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result first = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root, {});
    std::fill(job.own.begin(), job.own.end(), 1.0f);
    EXPECT_OK(Save(job.ctx, job.state, 1));
  });
  ASSERT_TRUE(first.ok()) << first.report();
  const std::string before = safetensors::ReadBytes(StepPath(root, 1) + "/ckpt.json");

  const Result killed = SaveAndKillRank3(root, 2);
  ASSERT_TRUE(killed.ok()) << killed.report();
  EXPECT_EQ(killed.rank(3).signal, SIGKILL) << killed.report();
  ExpectSame(killed, "verdict", {0, 1, 2});
  EXPECT_EQ(ListOf(root, "step-"), std::set{StepName(1)});
  EXPECT_EQ(safetensors::ReadBytes(StepPath(root, 1) + "/ckpt.json"), before);

  const Result again = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root, {});
    std::fill(job.own.begin(), job.own.end(), kFill);
    const Outcome o = Load(job.ctx, job.state);
    EXPECT_OK(o);
    EXPECT_EQ(o.result.step, 1);
    EXPECT_EQ(job.own, std::vector<float>(job.own.size(), 1.0f));
    EXPECT_OK(Save(job.ctx, job.state, 2));
  });
  EXPECT_TRUE(again.ok()) << again.report();
  ExpectNoLeftovers(root);
}

// All ranks killed at once, on a progress event between rank 3's first and last byte. Whether the
// kill fell into the writing is seen from the staging folder; if not, again.
TEST(CommitRecord, C02_AllRanksKilledMidSaveLeaveAStagingFolderThatIsNeverAStep) {
  Scratch scratch;
  const std::string root = scratch / "root";
  bool proved = false;
  for (int64_t step = 1; step <= kTries && !proved; ++step) {
    const std::string event = "half";
    const Result r = launch::Run({.ranks = 4, .deadline_s = 30, .plan = {launch::KillAllAt(event)}},
                                 [&](Rank& rank) {
                                   Job job(rank, root, [&](const ckpt_event& e) {
                                     if (rank.is(3) && e.kind == CKPT_EVENT_PROGRESS &&
                                         e.bytes_done > 0 && e.bytes_done < e.bytes_total)
                                       rank.Event(event);
                                     return 0;
                                   });
                                   (void)Save(job.ctx, job.state, step);
                                   rank.Barrier("saved before the kill");
                                 });
    EXPECT_FALSE(r.hang()) << r.report();
    const auto staging = ListOf(root, ".staging-");
    proved = !staging.empty();
    for (const std::string& folder : staging)
      EXPECT_FALSE(List(root + "/" + folder).count("ckpt.json"));
    if (proved) {
      EXPECT_EQ(ListOf(root, "step-").count(StepName(step)), 0u);
    }
  }
  ASSERT_TRUE(proved) << "no kill fell between first and last byte";

  const Result after = launch::Run({.ranks = 4, .deadline_s = 30}, [&](Rank& rank) {
    Job job(rank, root, {});
    EXPECT_OK(Save(job.ctx, job.state, 100));
  });
  EXPECT_TRUE(after.ok()) << after.report();
  ExpectNoLeftovers(root);
  EXPECT_EQ(ListOf(root, "step-").count(StepName(100)), 1u);
}

}  // namespace
}  // namespace ckpt_test
