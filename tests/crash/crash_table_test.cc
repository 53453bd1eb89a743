// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One crash at every step of a save: for each kind of save, each number of ranks and each file
// event of each rank, SIGKILL before that event, of the rank alone and of all. Afterwards the
// newest step is the old or the new one, as the events that were carried out say; a fresh job
// loads it, saves over the doomed step and leaves nothing over; ranks that survive get the right
// error. A kind of save is one line of kKinds.
#include <cstdio>
#include <optional>
#include <sstream>

#include "crash/crash.h"

namespace ckpt_test {
namespace {

constexpr double kSurvivorsWithin = 5;  // seconds; a death is heard at once

struct Kind {
  const char* name;
  bool replaces = false;           // the doomed save is of the step that was saved before it
  ckpt_status unkilled = CKPT_OK;  // what the doomed save gives when nobody is killed
  std::string rules = {};          // what is broken besides, on every rank
  std::string config = {};
  bool first = false;  // the doomed save is its job's first: it takes the root from a dead owner
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

constexpr char kRootFsyncFails[] = "fail EIO op=fsync end=/root\n";
constexpr char kRootFsyncFailsTwice[] = "fail EIO op=fsync end=/root every\n";
// The second of these renames undoes the first.
constexpr char kUndoFails[] = "fail EIO op=fsync end=/root\nfail EIO op=noreplace nth=2\n";
constexpr char kNoExchange[] = "fail EINVAL op=exchange every\n";
// The first sync of the root is the intent's, the second the commit.
constexpr char kNoExchangeRootFsyncFails[] =
    "fail EINVAL op=exchange every\nfail EIO op=fsync end=/root nth=2\n";
constexpr char kExchangeBackFails[] = "fail EIO op=fsync end=/root\nfail EIO op=exchange nth=2\n";

// A kind with more renames (an intent, retention) needs no more than a line: ProgressOf follows the
// names through the log, and where nobody has the step's name, old and new are both right.
const Kind kKinds[] = {
    {"NewStep"},        // C01
    {"Replace", true},  // B18
    {"NewStepUndone", false, CKPT_ERR_IO, kRootFsyncFails},
    {"ReplaceUndone", true, CKPT_ERR_IO, kRootFsyncFails},
    {"NewStepNotUndone", false, CKPT_ERR_OUTCOME_UNKNOWN, kRootFsyncFailsTwice},
    {"ReplaceNotUndone", true, CKPT_ERR_OUTCOME_UNKNOWN, kRootFsyncFailsTwice},
    {"NewStepUndoFails", false, CKPT_ERR_OUTCOME_UNKNOWN, kUndoFails},
    {"ReplaceUndoFails", true, CKPT_ERR_OUTCOME_UNKNOWN, kExchangeBackFails},
    {"ReplaceByIntent", true, CKPT_OK, kNoExchange},
    {"ReplaceByIntentUndone", true, CKPT_ERR_IO, kNoExchangeRootFsyncFails},
    {"KeepLast1", false, CKPT_OK, "", "keep_last=1\n"},  // D01
    {"FirstSave", false, CKPT_OK, "", "", true},
};

struct Doom {
  int rank = 0;
  bool all = false;
  uint64_t at = 0;
  std::string Rule() const {
    return (all ? "killall at=" : "kill at=") + std::to_string(at) + "\n";
  }
};

struct Tally {
  int runs = 0, losses = 0, wrong_errors = 0, hangs = 0, leftovers = 0;
};

class CrashTable : public testing::TestWithParam<std::tuple<Kind, int>> {
 protected:
  const Kind& kind() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }

  // Dooms every event of one rank in turn, until one run ends without a kill.
  void EveryEventOf(int rank, bool all);
  void ThenAFreshJobWorks();  // after the last doom
  size_t EventCount() const;
  std::string Summary() const;

 private:
  bool Once(const Doom& doom);  // false: nobody was killed, the save has fewer events
  void LeaveADeadOwner();
  Result RunDoomed(const Doom& doom);
  void LoadAndSave(CrashJob& job) const;
  void DoomedSave(CrashJob& job, const Doom& doom) const;
  bool Judge(const Result& r, const Doom& doom);
  void JudgeFresh(const Result& r);
  void JudgeSurvivors(const Result& r, const Doom& doom, const Progress& progress);
  void JudgeSurvivor(const Result& r, int rank, const Doom& doom, const Progress& progress);
  void JudgeState(const Progress& progress);
  void JudgeUnkilled(const Result& r);
  void Count(int* count, const std::string& what);

  CrashOptions options() const { return {.root = place_.root, .config = kind().config}; }
  int64_t doomed_step() const { return kind().replaces ? step_ : step_ + 1; }
  Saved old_state() const { return {step_, base_}; }
  Saved new_state() const { return {doomed_step(), base_ + 100}; }

  CrashPlace place_;
  Tally tally_;
  std::map<int, size_t> events_;  // of a save, by rank
  std::string where_;             // the run that is judged
  std::string left_;              // by fresh jobs; what stays is counted once
  std::optional<Saved> also_;     // would be as right
  Saved newest_;                  // what the next fresh job must load
  int64_t step_ = 1;              // what the fresh job saves, over the last doomed step
  float base_ = 1;
};

void CrashTable::Count(int* count, const std::string& what) {
  ++*count;
  ADD_FAILURE() << kind().name << ", " << ranks() << " ranks, " << where_ << ": " << what;
}

void CrashTable::LoadAndSave(CrashJob& job) const {
  if (newest_.step >= 0) {
    const Outcome o = job.Load();
    const auto holds = [&](const Saved& s) {
      return o.ok() && o.result.step == s.step && job.Holds(s.base);
    };
    const bool first = holds(newest_), right = first || (also_ && holds(*also_));
    job.rank.Put("found", first ? "one" : "other");
    job.rank.Put("load", right ? "good" : o.ok() ? "other content" : o.Verdict());
  }
  const Outcome o = job.Save(step_, base_);
  job.rank.Put("save", o.ok() ? "good" : o.Verdict());
  if (job.rank.is(0)) job.rank.Put("left", Leftovers(place_.root));
}

void CrashTable::DoomedSave(CrashJob& job, const Doom& doom) const {
  place_.Arm(job.rank, (job.rank.is(doom.rank) ? doom.Rule() : "") + kind().rules);
  const Outcome o = job.Save(new_state().step, new_state().base);
  job.rank.Put("status", StatusName(o.status));
  job.rank.Put("cause", std::to_string(o.cause.rank));
  job.rank.Put("seconds", std::to_string(o.seconds));
  Publish(job.rank, "verdict", o);
}

bool CrashTable::Once(const Doom& doom) {
  where_ = "rank " + std::to_string(doom.rank) + "'s event " + std::to_string(doom.at) +
           (doom.all ? ", all killed" : ", it alone killed");
  for (int i = 0; i < ranks(); ++i) std::filesystem::remove(place_.Log(i));
  if (kind().first) LeaveADeadOwner();
  const Result r = RunDoomed(doom);
  ++tally_.runs;
  const bool killed = Judge(r, doom);
  Prune(place_.root, newest_.step);
  step_ = doomed_step();
  base_ += 1;
  return killed;
}

void CrashTable::LeaveADeadOwner() {
  const std::vector<launch::Action> kill = {launch::KillAllAt("saved")};
  JudgeFresh(launch::Run({.ranks = ranks(), .plan = kill}, [&](Rank& rank) {
    CrashJob job(rank, options());
    LoadAndSave(job);
    rank.Barrier("all have saved");
    rank.Event("saved");
  }));
}

Result CrashTable::RunDoomed(const Doom& doom) {
  Result r = launch::Run({.ranks = ranks(), .deadline_s = 20}, [&](Rank& rank) {
    CrashJob job(rank, options());
    if (kind().first) {
      EXPECT_OK(job.Load());
    } else {
      LoadAndSave(job);
    }
    DoomedSave(job, doom);
  });
  if (!kind().first) JudgeFresh(r);
  return r;
}

bool CrashTable::Judge(const Result& r, const Doom& doom) {
  const std::vector<LoggedEvent> log = ReadLog(place_.Log(doom.rank));
  const bool killed = Marked(log, "kill") != nullptr;
  const Progress progress =
      ProgressOf(ReadLog(place_.Log(0)), place_.root, doomed_step(), kind().replaces);
  if (killed) {
    where_ += " (before " + log.back().op + " of " + log.back().path + ")";
    JudgeSurvivors(r, doom, progress);
  } else {
    events_[doom.rank] = log.size();
    EXPECT_LT(log.size(), doom.at) << where_ << ": the event came, the kill did not";
    JudgeUnkilled(r);
  }
  JudgeState(progress);
  const std::string left = Leftovers(place_.root);
  if (killed && !doom.all && doom.rank != 0 && !left.empty())
    Count(&tally_.leftovers, "the survivors left " + left);
  return killed;
}

void CrashTable::JudgeFresh(const Result& r) {
  if (r.hang()) Count(&tally_.hangs, r.report());
  for (int i = 0; i < ranks(); ++i) {
    const bool first = newest_.step < 0;
    if (!first && r.get(i, "load") != "good")
      Count(&tally_.losses, "before this run, a fresh job's load: " + r.get(i, "load") + r.log(i));
    if (r.get(i, "found") != r.get(0, "found"))
      Count(&tally_.losses, "before this run, a fresh job's load was a mix");
    if (r.get(i, "save") != "good")
      Count(&tally_.losses, "before this run, a fresh job's save: " + r.get(i, "save") + r.log(i));
  }
  const std::string left = r.get(0, "left");
  if (!left.empty() && left != left_)
    Count(&tally_.leftovers, "before this run, a fresh job's save left " + left);
  left_ = left;
}

void CrashTable::JudgeUnkilled(const Result& r) {
  for (int i = 0; i < ranks(); ++i)
    if (r.get(i, "status") != StatusName(kind().unkilled) || !r.rank(i).good())
      Count(&tally_.wrong_errors, "nobody killed, but " + r.get(i, "verdict") + r.log(i));
}

void CrashTable::JudgeSurvivors(const Result& r, const Doom& doom, const Progress& progress) {
  if (r.hang()) Count(&tally_.hangs, r.report());
  std::string verdict;
  for (int i = 0; i < ranks(); ++i) {
    if (doom.all || i == doom.rank) {
      // Behind the verdict, the others may have ended before the kill.
      const bool ended = i != doom.rank && r.rank(i).good() && progress.confirmed;
      EXPECT_TRUE(ended || r.rank(i).signal == SIGKILL) << where_ << "\n" << r.report();
      continue;
    }
    JudgeSurvivor(r, i, doom, progress);
    // Where the coordinator died, each judges alone.
    if (doom.rank != 0 && !verdict.empty() && verdict != r.get(i, "verdict"))
      Count(&tally_.wrong_errors,
            verdict + " and on rank " + std::to_string(i) + " " + r.get(i, "verdict"));
    verdict = r.get(i, "verdict");
  }
}

void CrashTable::JudgeSurvivor(const Result& r, int rank, const Doom& doom,
                               const Progress& progress) {
  std::set<std::string> allowed;
  if (doom.rank != 0 || !progress.renamed) allowed.insert("CKPT_ERR_PARTICIPANTS");
  if (doom.rank == 0) allowed.insert("CKPT_ERR_OUTCOME_UNKNOWN");
  const std::string status = r.get(rank, "status");
  const bool verdict_was_sent = progress.confirmed && status == StatusName(kind().unkilled);
  const bool good = r.rank(rank).good() && (allowed.count(status) || verdict_was_sent) &&
                    (verdict_was_sent || r.get(rank, "cause") == std::to_string(doom.rank)) &&
                    std::stod("0" + r.get(rank, "seconds")) < kSurvivorsWithin;
  if (!good)
    Count(&tally_.wrong_errors, "rank " + std::to_string(rank) + " got " + r.get(rank, "verdict") +
                                    " after " + r.get(rank, "seconds") + " s\n" + r.log(rank));
}

// By the files, without the library. The next run's fresh job loads the same.
void CrashTable::JudgeState(const Progress& progress) {
  also_.reset();
  std::ostringstream found;
  if (progress.holder == Progress::Holder::kNobody) {  // only the library follows an intent
    newest_ = old_state();
    also_ = new_state();
    return;
  }
  try {
    newest_ = NewestByTheFiles(place_.root, ranks());
    if (newest_ == (progress.holder == Progress::Holder::kNew ? new_state() : old_state())) return;
    found << newest_ << ", where the old is " << old_state() << ", the new is " << new_state();
  } catch (const std::exception& e) {
    found << e.what();
  }
  Count(&tally_.losses, "on disk: " + found.str());
}

void CrashTable::EveryEventOf(int rank, bool all) {
  for (uint64_t at = 1; Once({rank, all, at}); ++at) {
    if (tally_.hangs > 2) return;
  }
}

void CrashTable::ThenAFreshJobWorks() {
  where_ = "at the end";
  const Result r = launch::Run({.ranks = ranks()}, [&](Rank& rank) {
    CrashJob job(rank, options());
    LoadAndSave(job);
  });
  JudgeFresh(r);
  EXPECT_EQ(Leftovers(place_.root), "");
}

size_t CrashTable::EventCount() const {
  size_t count = 0;
  for (const auto& [rank, events] : events_) count += events;
  return count;
}

std::string CrashTable::Summary() const {
  std::ostringstream out;
  out << kind().name << ", " << ranks() << " ranks: " << EventCount() << " events, " << tally_.runs
      << " runs, " << tally_.losses << " losses, " << tally_.wrong_errors << " wrong errors, "
      << tally_.hangs << " hangs, " << tally_.leftovers << " leftovers";
  return out.str();
}

TEST_P(CrashTable, AKillBeforeAnyFileEventLosesNothing) {
  const bool alone = ranks() > 1;
  // What these kinds have of their own is rank 0's: the others have written by then, and all killed
  // is as with one rank.
  const bool special = !kind().rules.empty() || kind().first;
  for (int rank = 0; rank < (special ? 1 : ranks()); ++rank) {
    if (!alone || !special) EveryEventOf(rank, /*all=*/true);
    if (alone) EveryEventOf(rank, /*all=*/false);
  }
  ThenAFreshJobWorks();
  std::printf("%s\n", Summary().c_str());
  EXPECT_GE(EventCount(), 20u) << "the shim sees too little";
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Kind, int>>& info) {
  return std::string(std::get<0>(info.param).name) + "Of" + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(, CrashTable,
                         testing::Combine(testing::ValuesIn(kKinds), testing::Values(1, 4)),
                         NameOf);

}  // namespace
}  // namespace ckpt_test
