// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Model check of the contract (src/comm/rounds.h), exhaustive for the worlds below; rounds_model.h
// says what may happen in one and what is claimed of every state.
// CKPT_MODEL_LONG=1 explores larger worlds (minutes).
#include "unit/comm/rounds_model.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ckpt::model {
namespace {

const Step kFirstJoint{Op::kSave, 8}, kLastJoint{Op::kSave, 9};

// All scripts of at most `n` calls.
std::vector<Script> Scripts(size_t n, const Options& options) {
  std::vector<Step> alphabet = {{Op::kSave, 1}, {Op::kSave, 2}, {Op::kLoad, -1}};
  if (options.contents) alphabet.push_back({Op::kSave, 1, false, "other"});
  if (options.local_errors) {
    alphabet.insert(alphabet.end(), {{Op::kSave, 1, true}, {Op::kLoad, -1, true}});
  }
  std::vector<Script> all = {{}};
  for (size_t from = 0, length = 0; length < n; ++length) {
    const size_t to = all.size();
    for (; from < to; ++from) {
      for (const Step& step : alphabet) {
        Script longer = all[from];
        longer.push_back(step);
        all.push_back(std::move(longer));
      }
    }
  }
  return all;
}

// Runs worlds and prints what they came to.
class Tally {
 public:
  explicit Tally(const char* name) : name_(name), began_(Clock::now()) {
    static const bool once = std::printf("%s", kInvariants) > 0;
    (void)once;
  }
  ~Tally() {
    std::printf("%-36s %6zu worlds %9zu states %9zu events tried %6.1f s\n", name_, totals_.worlds,
                totals_.states, totals_.steps,
                std::chrono::duration<double>(Clock::now() - began_).count());
  }
  void Run(const Options& options, std::vector<Script> scripts) {
    if (::testing::Test::HasFailure()) return;
    EXPECT_EQ(Explorer(options, std::move(scripts)).Run(&totals_), "") << name_;
  }

 private:
  const char* const name_;
  const TimePoint began_;
  Totals totals_;
};

// Stray calls, then two joint saves.  The ranks but rank 0 are alike, so that every multiset of
// their scripts is tried once; rank 0 differs where faults or phases are in play.
void Explore(const char* name, const Options& options) {
  const std::vector<Script> scripts = Scripts(options.strays, options);
  Tally tally(name);
  std::vector<size_t> pick(static_cast<size_t>(options.ranks));
  const bool alike = options.faults == 0 && !options.phases;
  std::function<void(size_t)> choose = [&](size_t r) {
    if (r == pick.size()) {
      std::vector<Script> chosen;
      for (size_t i : pick) {
        chosen.push_back(scripts[i]);
        chosen.back().insert(chosen.back().end(), {kFirstJoint, kLastJoint});
      }
      return tally.Run(options, std::move(chosen));
    }
    const bool ordered = r > (alike ? 0u : 1u);
    for (pick[r] = ordered ? pick[r - 1] : 0; pick[r] < scripts.size(); ++pick[r]) choose(r + 1);
  };
  choose(0);
}

bool Long() { return std::getenv("CKPT_MODEL_LONG") != nullptr; }

TEST(RoundsModel, TwoRanksWithStrayCallsAreBackInStepAtTheSecondJointSave) {
  Explore("2 ranks, deadline after grace", {.strays = Long() ? 4u : 3u, .deadline = 4});
  Explore("2 ranks, deadline with grace", {.strays = 3, .deadline = 2, .probe = 1});
  Explore("2 ranks, deadline before grace", {.strays = 3, .deadline = 1});
}

TEST(RoundsModel, ThreeRanksWithStrayCallsAreBackInStepAtTheSecondJointSave) {
  Explore("3 ranks, deadline after grace", {.ranks = 3, .strays = Long() ? 2u : 1u, .deadline = 3});
  Explore("3 ranks, deadline before grace", {.ranks = 3, .strays = 2, .deadline = 1});
  Explore("3 ranks, contents differ",
          {.ranks = 3, .strays = 1, .local_errors = true, .contents = true, .deadline = 3});
}

TEST(RoundsModel, LocalErrorsPoisonNoLaterJointSave) {
  Explore("2 ranks, local errors", {.strays = 2, .local_errors = true, .deadline = 3});
  Explore("2 ranks, local errors, quick",
          {.strays = 2, .local_errors = true, .deadline = 1, .probe = 1});
  Explore("2 ranks, local errors, slow", {.strays = 2, .local_errors = true, .deadline = 5});
  Explore("3 ranks, local errors",
          {.ranks = 3, .strays = Long() ? 2u : 1u, .local_errors = true, .deadline = 2});
}

TEST(RoundsModel, ALostRankLeavesNobodyStuck) {
  Explore("2 ranks, one lost", {.strays = 2, .deadline = 3, .faults = 1, .loss = true});
  Explore("3 ranks, one lost or left",
          {.ranks = 3, .strays = 1, .deadline = 2, .faults = 1, .loss = true, .leave = true});
  Explore("3 ranks, two lost or left",
          {.ranks = 3, .strays = 1, .deadline = 2, .faults = 2, .loss = true, .leave = true});
}

TEST(RoundsModel, OneRetryOfEveryFailedCallStillEndsInStep) {
  Explore("2 ranks, one retry", {.strays = 2, .retries = 1, .deadline = 3});
  Explore("3 ranks, one retry",
          {.ranks = 3, .strays = Long() ? 1u : 0u, .retries = 1, .deadline = 3});
}

// --- after the gate

TEST(RoundsModel, FailedVotesAndCommitsEndTheRoundAlikeAndTheNextSaveWorks) {
  Explore("2 ranks, votes fail",
          {.strays = 1, .deadline = 3, .faults = 2, .votes = true, .phases = true});
  Explore("3 ranks, votes fail", {.ranks = 3,
                                  .strays = 1,
                                  .deadline = 2,
                                  .faults = Long() ? 3 : 2,
                                  .votes = true,
                                  .phases = true});
}

TEST(RoundsModel, ALossAtAnyPointOfARoundEndsItAlike) {
  Explore("2 ranks, loss or vote fails", {.strays = 1,
                                          .deadline = 3,
                                          .faults = 2,
                                          .loss = true,
                                          .leave = true,
                                          .votes = true,
                                          .phases = true});
  Explore("3 ranks, loss or vote fails", {.ranks = 3,
                                          .strays = 1,
                                          .deadline = 2,
                                          .faults = Long() ? 3 : 2,
                                          .loss = true,
                                          .leave = true,
                                          .votes = true,
                                          .phases = true});
}

TEST(RoundsModel, StoppedRanksAndAStoppedCoordinatorNeitherHangNorCommitWrongly) {
  Explore("2 ranks, stops", {.strays = 1,
                             .deadline = 3,
                             .faults = 2,
                             .votes = true,
                             .stop = true,
                             .pause = true,
                             .phases = true});
  Explore("3 ranks, stops", {.ranks = 3,
                             .strays = 1,
                             .deadline = 2,
                             .faults = Long() ? 2 : 1,
                             .stop = true,
                             .pause = true,
                             .phases = true});
}

TEST(RoundsModel, OldNewsOfARoundHarmsNoLaterOne) {
  Explore("2 ranks, delays", {.strays = 1,
                              .deadline = 3,
                              .faults = 2,
                              .loss = true,
                              .votes = true,
                              .stop = true,
                              .pause = true,
                              .phases = true,
                              .delays = true});
  Explore("3 ranks, delays", {.ranks = 3,
                              .strays = 1,
                              .deadline = 2,
                              .stall = 2,
                              .faults = Long() ? 2 : 1,
                              .loss = true,
                              .votes = true,
                              .phases = true,
                              .delays = true});
}

// --- without anything that brings the ranks together but the calls themselves

constexpr int64_t kBase = 10;  // step of the save at index 0

// All sequences of `length` calls that are loads and saves of rising steps.
std::vector<Script> Sequences(size_t length) {
  std::vector<Script> all;
  for (size_t bits = 0; bits < (1u << length); ++bits) {
    Script script;
    for (size_t i = 0; i < length; ++i) {
      const bool load = (bits >> i) & 1;
      script.push_back(load ? Step{Op::kLoad, -1} : Step{Op::kSave, kBase + static_cast<int>(i)});
    }
    all.push_back(std::move(script));
  }
  return all;
}

// A load has no step: a late rank's first of two in a row meets the others' second as a retry does,
// and from there on the ranks' calls are not the same (docs/contract.md, what is not covered).
bool BeginsWithTwoLoads(const Script& script) {
  return script[0].op == Op::kLoad && script[1].op == Op::kLoad;
}

void LateOnce(const char* name, int32_t ranks, size_t length, bool fails) {
  Tally tally(name);
  Options options{.ranks = ranks, .deadline = 4, .prompt = true};
  options.settled.assign(static_cast<size_t>(ranks), 1);
  for (const Script& script : Sequences(length)) {
    if (BeginsWithTwoLoads(script)) continue;
    for (int32_t late = 0; late < ranks; ++late) {
      options.late_rank = late;
      std::vector<Script> scripts(static_cast<size_t>(ranks), script);
      scripts[static_cast<size_t>(late)][0].fails = fails;
      tally.Run(options, std::move(scripts));
    }
  }
}

TEST(RoundsModel, ARankLateOnceIsInStepFromTheSecondCallOn) {
  LateOnce("2 ranks, one late once", 2, Long() ? 6 : 5, /*fails=*/false);
  LateOnce("3 ranks, one late once", 3, Long() ? 6 : 5, /*fails=*/false);
  LateOnce("3 ranks, one late and failing", 3, 4, /*fails=*/true);
}

TEST(RoundsModel, ASkippedOrExtraSaveCostsNoMoreThanItself) {
  for (int32_t ranks = 2; ranks <= 3; ++ranks) {
    Tally tally(ranks == 2 ? "2 ranks, a save skipped or extra"
                           : "3 ranks, a save skipped or extra");
    const Script saves = Sequences(Long() ? 6 : 5)[0];
    for (int32_t odd = 0; odd < ranks; ++odd) {
      for (const bool skips : {true, false}) {
        Options options{.ranks = ranks, .deadline = 4, .prompt = true};
        const auto n = static_cast<size_t>(ranks), r = static_cast<size_t>(odd);
        std::vector<Script> scripts(n, saves);
        options.settled.assign(n, skips ? 1 : 0);
        if (skips) {
          scripts[r].erase(scripts[r].begin());
          options.settled[r] = 0;
        } else {
          scripts[r].insert(scripts[r].begin(), Step{Op::kSave, kBase - 1});
          options.settled[r] = 1;
        }
        tally.Run(options, std::move(scripts));
      }
    }
  }
}

}  // namespace
}  // namespace ckpt::model
