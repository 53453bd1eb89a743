// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md: what is kept and what is removed (D01 is in tests/crash; D03, D04, D06), steps that are
// damaged or marked (B11, C11), steps that exist (B18's policies).
#include <mutex>

#include "process/process.h"

namespace ckpt_test {
namespace {

using Warnings = std::vector<std::string>;

// Rank 0 hears most of them; events come on the caller's thread.
CtxOptions Listening(const std::string& root, const std::string& config, Warnings* warnings) {
  return {.root = root, .config = config, .on_event = [warnings](const ckpt_event& event) {
            if (event.kind == CKPT_EVENT_WARNING) warnings->emplace_back(event.text);
            return 0;
          }};
}

bool Any(const Warnings& warnings, const std::string& part) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

std::set<std::string> Steps(std::initializer_list<int64_t> steps) {
  std::set<std::string> names;
  for (int64_t step : steps) names.insert(StepName(step));
  return names;
}

// One job of `ranks` ranks.
void Job(int ranks, const std::function<void(Rank&)>& body) {
  const Result r = launch::Run({.ranks = ranks, .deadline_s = 60}, body);
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Retention, D03_TheNewestByCommitStayWhateverTheirNumbersAre) {
  const std::vector<std::vector<int64_t>> orders = {
      {9900, 10000, 10100}, {99, 100, 999999999999}, {300, 200, 100}};
  for (const auto& order : orders) {
    Scratch scratch;
    const std::string root = scratch / "root";
    Job(2, [&](Rank& rank) {
      Trainer t(rank, {.root = root, .config = "keep_last=2\n"});
      for (int64_t step : order) EXPECT_OK(t.Save(step));
      EXPECT_OK(t.ctx.Finalize());
      EXPECT_EQ(ListOf(root, "step-"), Steps({order[1], order[2]}));
    });
    ExpectNoLeftovers(root);
  }
}

TEST(Retention, D04_StepsOfAnotherRunAreNeitherCountedNorRemoved) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root});
    for (int64_t step : {500, 600, 700}) EXPECT_OK(t.Save(step));
  });
  const auto run_b = [&](Rank& rank) {
    return Trainer(rank, {.root = root, .config = "keep_last=3\n"}, 7);
  };
  Job(2, [&](Rank& rank) {
    auto t = run_b(rank);
    EXPECT_OK(t.Save(100));
    EXPECT_EQ(ListOf(root, "step-"), Steps({100, 500, 600, 700}));
  });
  Job(2, [&](Rank& rank) {  // restarted: it goes on from its own step
    auto t = run_b(rank);
    t.Clear();
    const Outcome latest = t.Load();
    EXPECT_OK(latest);
    EXPECT_EQ(latest.result.step, 100);
    EXPECT_TRUE(t.Holds(7));
    for (int64_t step : {101, 102, 103}) EXPECT_OK(t.Save(step));
    EXPECT_OK(t.ctx.Finalize());
    EXPECT_EQ(ListOf(root, "step-"), Steps({101, 102, 103, 500, 600, 700}));
  });
  Job(2, [&](Rank& rank) {  // asked for by number, the other run's is still there
    auto t = run_b(rank);
    t.Clear();
    EXPECT_OK(t.Load({.step = 700}));
    EXPECT_TRUE(t.Holds(0));
  });
}

TEST(Retention, D06_NoLimitKeepsAllAndANegativeOneIsRefused) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .config = "keep_last=0\n"});
    for (int64_t step : {1, 2, 3}) EXPECT_OK(t.Save(step));
    EXPECT_EQ(ListOf(root, "step-"), Steps({1, 2, 3}));
  });
  Job(1, [&](Rank&) {
    Ctx refused({.root = root, .config = "keep_last=-1\n"});
    EXPECT_STATUS(refused.init(), CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(refused.init().cause.name, "keep_last");
  });
}

TEST(Retention, PinnedStepsStayUntilTheyAreUnpinned) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .config = "keep_last=1\n"});
    const auto pin = [&](int64_t step, int32_t pinned) {
      ckpt_error* error = nullptr;
      const ckpt_status status = Lib().ckpt_pin(t.ctx.get(), step, pinned, &error);
      return Take(status, error);
    };
    EXPECT_OK(t.Save(1));
    if (rank.is(0)) {
      EXPECT_OK(pin(1, 1));
    }
    if (rank.is(1)) {
      EXPECT_STATUS(pin(1, 1), CKPT_ERR_STATE);
    }  // says whose it is
    rank.Barrier("pinned");
    for (int64_t step : {2, 3}) EXPECT_OK(t.Save(step));
    rank.Barrier("saved");
    if (rank.is(0)) {
      EXPECT_OK(pin(1, 0));
    }
    rank.Barrier("unpinned");
    EXPECT_TRUE(List(root).count(StepName(1)));
    EXPECT_OK(t.Save(4));
    EXPECT_OK(t.ctx.Finalize());
    EXPECT_EQ(ListOf(root, "step-"), Steps({4}));
  });
}

TEST(Marks, C11_ABadStepIsPassedOverOnAllRanksAndAcrossRestarts) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(4, [&](Rank& rank) {
    Trainer t(rank, {.root = root}, 1);
    EXPECT_OK(t.Save(1));
    t.Set(2);
    EXPECT_OK(t.Save(2));
    if (rank.is(0)) {
      ckpt_error* error = nullptr;
      const ckpt_status status = Lib().ckpt_mark_bad(t.ctx.get(), 2, &error);
      EXPECT_OK(Take(status, error));
    }
    rank.Barrier("marked");
    const Outcome newest = t.Load();
    EXPECT_OK(newest);
    EXPECT_EQ(newest.result.step, 1);
  });
  Job(4, [&](Rank& rank) {
    Trainer t(rank, {.root = root}, 1);
    t.Clear();
    EXPECT_EQ(t.Load().result.step, 1);
    EXPECT_TRUE(t.Holds(1));
    int64_t latest = 0;
    EXPECT_OK(t.ctx.Latest(&latest));
    EXPECT_EQ(latest, 1);
    EXPECT_OK(t.Load({.step = 2}));  // by number it is there
    EXPECT_TRUE(t.Holds(2));
    t.Set(3);
    EXPECT_OK(t.Save({.step = 2, .on_existing = CKPT_EXISTING_REPLACE}));
    EXPECT_EQ(t.Load().result.step, 2);  // saved again: no longer bad
    EXPECT_TRUE(t.Holds(3));
  });
}

void Truncate(const std::string& path) {
  const std::string bytes = safetensors::ReadBytes(path);
  safetensors::WriteBytes(path, bytes.substr(0, bytes.size() / 2));
}

// Three steps, base = step; damaged by `damage`.
void SaveThree(const std::string& root) {
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root});
    for (int64_t step : {1, 2, 3}) {
      t.Set(static_cast<float>(step));
      EXPECT_OK(t.Save(step));
    }
  });
}

TEST(Fallback, B11_AllRecordsDamagedIsCorruptNotNone) {
  Scratch scratch;
  const std::string root = scratch / "root";
  SaveThree(root);
  for (int64_t step : {1, 2, 3}) Truncate(StepPath(root, step) + "/ckpt.json");
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root});
    t.Clear();
    for (const uint32_t flags : {0u, CKPT_LOAD_FALLBACK}) {
      EXPECT_STATUS(t.Load({.flags = flags}), CKPT_ERR_CORRUPT);
      EXPECT_TRUE(t.Untouched());
    }
  });
}

TEST(Fallback, B11_OnlyTheNewestRecordDamagedFallsBackIfAskedTo) {
  Scratch scratch;
  const std::string root = scratch / "root";
  SaveThree(root);
  Truncate(StepPath(root, 3) + "/ckpt.json");
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Warnings warnings;
    Trainer t(rank, Listening(root, "", &warnings));
    t.Clear();
    const Outcome strict = t.Load();
    EXPECT_STATUS(strict, CKPT_ERR_CORRUPT);
    EXPECT_TRUE(t.Untouched());
    Publish(rank, "strict", strict);
    EXPECT_TRUE(warnings.empty());
    const Outcome older = t.Load({.flags = CKPT_LOAD_FALLBACK});
    EXPECT_OK(older);
    EXPECT_EQ(older.result.step, 2);
    EXPECT_EQ(older.result.flags, CKPT_RESULT_FELL_BACK);
    EXPECT_TRUE(t.Holds(2));
    if (rank.is(0)) {
      EXPECT_TRUE(Any(warnings, StepName(3)));
    }
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "strict");
}

// Damage that shows only when the data are read: the whole round is repeated.
TEST(Fallback, B11_DamagedDataFallBackTooAndTheNewestIsNoFallback) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const auto big = [](float base) { return Values(1 << 20, base); };  // beyond the header's block
  Job(2, [&](Rank&) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    for (int64_t step : {1, 2, 3, 4}) {
      std::vector<float> w = big(static_cast<float>(step));
      State state(ctx);
      state.Whole("w", {1 << 20}, w);
      EXPECT_OK(Save(ctx, state, step));
    }
  });
  for (int64_t step : {3, 4}) {
    const std::string file = StepPath(root, step) + "/model.safetensors";
    std::string bytes = safetensors::ReadBytes(file);
    bytes[bytes.size() - 100] ^= 1;
    safetensors::WriteBytes(file, bytes);
  }
  const Result r = launch::Run({.ranks = 2, .deadline_s = 60}, [&](Rank& rank) {
    Warnings warnings;
    Ctx ctx(Listening(root, "", &warnings));
    ASSERT_INIT(ctx);
    std::vector<float> w = Fill(1 << 20);
    State state(ctx);
    state.Whole("w", {1 << 20}, w);
    const Outcome strict = Load(ctx, state);
    EXPECT_STATUS(strict, CKPT_ERR_CORRUPT);
    Publish(rank, "strict", strict);
    const Outcome older = Load(ctx, state, {.flags = CKPT_LOAD_FALLBACK});
    EXPECT_OK(older);
    EXPECT_EQ(older.result.step, 2);
    EXPECT_EQ(older.result.flags, CKPT_RESULT_FELL_BACK);
    EXPECT_EQ(w, big(2));
    EXPECT_TRUE(Any(warnings, StepName(4)) && Any(warnings, StepName(3)));
    EXPECT_OK(Save(ctx, state, 5));
    const Outcome newest = Load(ctx, state, {.flags = CKPT_LOAD_FALLBACK});
    EXPECT_OK(newest);
    EXPECT_EQ(newest.result.step, 5);
    EXPECT_EQ(newest.result.flags, 0u);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "strict");
}

TEST(Fallback, B11_WhenNoStepCanBeReadItIsCorruptAfterAllWereTried) {
  Scratch scratch;
  const std::string root = scratch / "root";
  SaveThree(root);
  for (int64_t step : {1, 2, 3}) {
    const std::string file = StepPath(root, step) + "/model.safetensors";
    std::string bytes = safetensors::ReadBytes(file);
    bytes[bytes.size() - 10] ^= 1;
    safetensors::WriteBytes(file, bytes);
  }
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root});
    const Outcome o = t.Load({.flags = CKPT_LOAD_FALLBACK});
    EXPECT_STATUS(o, CKPT_ERR_CORRUPT);
    Publish(rank, "o", o);
    EXPECT_OK(t.Save(4));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "o");
}

TEST(ExistingSteps, B18_EachPolicyDoesWhatItSays) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root}, 1);
    EXPECT_OK(t.Save(5));
  });
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Warnings warnings;
    Trainer t(rank, Listening(root, "", &warnings), 2);  // another lineage: nothing was loaded
    for (const uint32_t policy : {CKPT_EXISTING_AUTO, CKPT_EXISTING_REFUSE}) {
      const Outcome refused = t.Save({.step = 5, .on_existing = policy});
      EXPECT_STATUS(refused, CKPT_ERR_EXISTS);
      Publish(rank, "refused " + std::to_string(policy), refused);
    }
    const Outcome kept = t.Save({.step = 5, .on_existing = CKPT_EXISTING_KEEP});
    EXPECT_OK(kept);
    EXPECT_EQ(kept.result.bytes_written, 0u);
    rank.Barrier("kept");
    ExpectFileHolds(root, 5, 1);
    rank.Barrier("looked");
    EXPECT_TRUE(warnings.empty());
    EXPECT_OK(t.Save({.step = 5, .on_existing = CKPT_EXISTING_REPLACE}));
    EXPECT_OK(t.Save({.step = 6, .on_existing = CKPT_EXISTING_KEEP}));  // not there: saved
    EXPECT_OK(t.ctx.Finalize());
    if (rank.is(0)) {
      EXPECT_TRUE(Any(warnings, StepName(5)));
    }
  });
  EXPECT_TRUE(r.ok()) << r.report();
  for (const char* key : {"refused 0", "refused 1"}) ExpectSame(r, key);
  ExpectFileHolds(root, 5, 2);
  ExpectFileHolds(root, 6, 2);
  ExpectNoLeftovers(root);
}

TEST(ExistingSteps, B18_ADamagedStepIsReplacedOnlyWhenToldTo) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root}, 1);
    EXPECT_OK(t.Save(5));
    rank.Barrier("saved");
    if (rank.is(0)) Truncate(StepPath(root, 5) + "/ckpt.json");
    rank.Barrier("damaged");
    t.Set(2);
    EXPECT_STATUS(t.Save(5), CKPT_ERR_EXISTS);
    EXPECT_STATUS(t.Save({.step = 5, .on_existing = CKPT_EXISTING_KEEP}), CKPT_ERR_CORRUPT);
    EXPECT_OK(t.Save({.step = 5, .on_existing = CKPT_EXISTING_REPLACE}));
    EXPECT_OK(t.Load());
    EXPECT_TRUE(t.Holds(2));
  });
}

// Rolled back to 2 and saved again: it is the newest, though 3 knew an older step of that name.
TEST(Fallback, B11_ANewestStepCutShortIsCorruptThoughAHigherOneKnewItsName) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root});
    for (int64_t step : {2, 3, 2}) EXPECT_OK(t.Save(step));
    EXPECT_OK(t.ctx.Finalize());
  });
  safetensors::WriteBytes(StepPath(root, 2) + "/ckpt.json", "");
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root});
    EXPECT_STATUS(t.Load(), CKPT_ERR_CORRUPT);
    EXPECT_EQ(t.Load({.flags = CKPT_LOAD_FALLBACK}).result.step, 3);
  });
}

TEST(Fallback, B11_AStepFolderHasNoOlderStep) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(2, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<float> w = Values(1 << 20);
    State state(ctx);
    state.Whole("w", {1 << 20}, w);
    for (int64_t step : {1, 2}) EXPECT_OK(Save(ctx, state, step));
    rank.Barrier("saved");
    if (rank.is(0)) {
      const std::string file = StepPath(root, 2) + "/model.safetensors";
      std::string bytes = safetensors::ReadBytes(file);
      bytes[bytes.size() - 100] ^= 1;
      safetensors::WriteBytes(file, bytes);
    }
    rank.Barrier("damaged");
    const Outcome o = Load(ctx, state, {.flags = CKPT_LOAD_FALLBACK, .uri = StepPath(root, 2)});
    EXPECT_STATUS(o, CKPT_ERR_CORRUPT);
    EXPECT_SAYS(o, "unspecified");  // the first attempt has read into it
  });
}

// A root is the same root however it is spelled; so is a step folder in it.
TEST(Lineage, IsThatOfALoadFromTheJobsRootHoweverItIsSpelled) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(2, [&](Rank& rank) {
    Trainer t(rank, {.root = root}, 1);
    EXPECT_OK(t.Save(1));
  });
  for (const std::string& uri : {root + "/../root", StepPath(root, 1)}) {
    Job(2, [&](Rank& rank) {
      Trainer t(rank, {.root = root}, 1);
      EXPECT_OK(t.Load({.uri = uri}));
      EXPECT_OK(t.Save(1));  // our own lineage's: AUTO replaces it
    });
  }
}

TEST(Reader, ADamagedStepIsListedAsSuch) {
  Scratch scratch;
  const std::string root = scratch / "root";
  SaveThree(root);
  Truncate(StepPath(root, 2) + "/ckpt.json");
  Job(1, [&](Rank&) {
    ckpt_reader* reader = nullptr;
    ASSERT_EQ(Lib().ckpt_open(root.c_str(), CKPT_LOAD_LATEST, 0, &reader, nullptr), CKPT_OK);
    std::vector<std::pair<ckpt_status, int64_t>> seen;
    for (uint64_t i = 0;; ++i) {
      ckpt_checkpoint_info info{};
      info.struct_size = sizeof info;
      const ckpt_status status = Lib().ckpt_reader_checkpoint(reader, i, &info);
      if (status == CKPT_ERR_NOT_FOUND) break;
      seen.emplace_back(status, info.step);
    }
    Lib().ckpt_reader_free(reader);
    EXPECT_EQ(seen, (std::vector<std::pair<ckpt_status, int64_t>>{
                        {CKPT_ERR_CORRUPT, 2}, {CKPT_OK, 1}, {CKPT_OK, 3}}));
  });
}

// The step that a load of this job reads is not removed under it, though a newer save would.
TEST(Retention, AStepThatIsOpenInThisProcessIsLeftAlone) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Job(1, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .config = "keep_last=1\n"});
    EXPECT_OK(t.Save(1));
    ckpt_reader* reader = nullptr;
    ASSERT_EQ(Lib().ckpt_open(root.c_str(), CKPT_LOAD_STEP, 1, &reader, nullptr), CKPT_OK);
    EXPECT_OK(t.Save(2));
    EXPECT_OK(t.Save(3));
    EXPECT_EQ(Lib().ckpt_reader_verify(reader, nullptr, nullptr, nullptr), CKPT_OK);
    EXPECT_TRUE(List(root).count(StepName(1)));
    Lib().ckpt_reader_free(reader);
    EXPECT_OK(t.Save(4));
    EXPECT_OK(t.ctx.Finalize());
    EXPECT_EQ(ListOf(root, "step-"), Steps({4}));
  });
}

}  // namespace
}  // namespace ckpt_test
