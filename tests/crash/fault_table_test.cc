// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One I/O error at every call of a save that makes, fills, syncs or renames something, on each of
// two ranks: before the commit it is the same error on both, with path and rank, and nothing has
// changed; after it, a warning. Nobody dies, so one job goes through the whole table. A kind of
// save is one line of kKinds.
#include <algorithm>
#include <cstdio>

#include "crash/crash.h"

namespace ckpt_test {
namespace {

constexpr char kFaulty[] =
    "op=create,write,fsync,truncate,allocate,mkdir,rename,noreplace,exchange";
constexpr char kFaultyButExchange[] =
    "op=create,write,fsync,truncate,allocate,mkdir,rename,noreplace";
constexpr char kNoExchange[] = "fail EINVAL op=exchange every\n";

struct Kind {
  const char* name;
  bool replaces = false;
  std::string config = {};
  std::string rules = {};            // what is refused besides, on every rank
  const char* faulty = kFaulty;      // what is broken in turn
  int root_syncs_before_commit = 0;  // of the root; the next one is the commit
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const Kind kKinds[] = {
    {"NewStep"},
    {"Replace", true},
    {"ReplaceByIntent", true, "", kNoExchange, kFaultyButExchange, 1},
    {"KeepLast1", false, "keep_last=1\n"},
};

struct Fault {
  const char* error_name;
  int error;
  ckpt_status status;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.error_name; }

const Fault kFaults[] = {
    {"EIO", EIO, CKPT_ERR_IO},
    {"ENOSPC", ENOSPC, CKPT_ERR_NO_SPACE},
    {"EDQUOT", EDQUOT, CKPT_ERR_NO_SPACE},
};

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

enum class When { kBefore, kCommit, kAfter };

// The commit is a sync of the root.  What follows it: LATEST, the owner's record, the old step on
// its way to trash.
When WhenOf(const std::vector<LoggedEvent>& log, const LoggedEvent& e, const std::string& root,
            int syncs_before) {
  int syncs = 0;
  for (const LoggedEvent& other : log) {
    const bool sync = other.op == "fsync" && other.path == root;
    if (&other == &e) {
      if (syncs > syncs_before) return When::kAfter;
      return sync && syncs == syncs_before ? When::kCommit : When::kBefore;
    }
    syncs += sync;
  }
  return When::kBefore;
}

class FaultTable : public testing::TestWithParam<std::tuple<Kind, Fault, int>> {
 protected:
  const Kind& kind() const { return std::get<0>(GetParam()); }
  const Fault& fault() const { return std::get<1>(GetParam()); }
  int victim() const { return std::get<2>(GetParam()); }

  // One rank's way through the table. Returns the number of faults.
  int Everywhere(Rank& rank);

  const CrashPlace place_;

 private:
  struct Table {  // of one rank
    CrashJob& job;
    Saved& now;
    std::vector<std::string>& warnings;
  };
  bool Once(Table table, int nth);  // false: the save has fewer events
  void ExpectRefused(Table table, When when, const Outcome& o, const std::string& left);
  void ExpectWarned(Table table, const LoggedEvent& e, const Outcome& o);
  void ExpectNewest(Table table);
  Saved Next(const Saved& now) const {
    return {kind().replaces ? now.step : now.step + 1, now.base + 1};
  }
};

int FaultTable::Everywhere(Rank& rank) {
  std::vector<std::string> warnings;
  CrashJob job(rank,
               {.root = place_.root, .config = kind().config, .on_event = [&](const ckpt_event& e) {
                  if (e.kind == CKPT_EVENT_WARNING) warnings.push_back(e.text);
                  return 0;
                }});
  Saved now{1, 1};
  EXPECT_OK(job.Save(now.step, now.base));
  int faults = 0;
  while (Once({job, now, warnings}, faults + 1)) ++faults;
  return faults;
}

bool FaultTable::Once(Table table, int nth) {
  Rank& rank = table.job.rank;
  rank.Barrier("next");
  const std::string left = Leftovers(place_.root);
  const std::string rule = kind().rules + "fail " + fault().error_name + " " + kind().faulty +
                           " nth=" + std::to_string(nth);
  const Saved next = Next(table.now);
  rank.Barrier("ready");
  place_.Arm(rank, rank.is(victim()) ? rule : kind().rules);
  table.warnings.clear();
  const Outcome o = table.job.Save(next.step, next.base);
  shim_reset("");
  Publish(rank, "verdict " + std::to_string(nth), o);
  rank.Barrier("saved");
  const std::vector<LoggedEvent> log = ReadLog(place_.Log(victim()));
  // Not the exchange that a kind refuses always.
  const auto failed = std::find_if(log.begin(), log.end(), [&](const LoggedEvent& event) {
    return event.mark == "fail" && (kind().rules.empty() || event.op != "exchange");
  });
  const LoggedEvent* e = failed == log.end() ? nullptr : &*failed;
  if (e == nullptr) {
    EXPECT_OK(o);
    return false;
  }
  SCOPED_TRACE(e->op + " of " + e->path + " -> " + e->to);
  const When when = WhenOf(log, *e, place_.root, kind().root_syncs_before_commit);
  if (when == When::kAfter) {
    ExpectWarned(table, *e, o);
  } else {
    ExpectRefused(table, when, o, left);
    ExpectNewest(table);
    EXPECT_OK(table.job.Save(next.step, next.base));
  }
  table.now = next;
  ExpectNewest(table);
  return !testing::Test::HasFailure();
}

void FaultTable::ExpectRefused(Table table, When when, const Outcome& o, const std::string& left) {
  // Where the step's name could not be made durable, it is an I/O error whatever errno says.
  const ckpt_status status = when == When::kCommit ? CKPT_ERR_IO : fault().status;
  EXPECT_STREQ(StatusName(o.status), StatusName(status)) << o;
  EXPECT_EQ(o.cause.rank, victim()) << o;
  EXPECT_EQ(o.cause.sys_errno, fault().error) << o;
  EXPECT_EQ(o.cause.path.rfind(place_.root, 0), 0u) << o;
  EXPECT_SAYS(o, o.cause.path);
  EXPECT_SAYS(o, "rank " + std::to_string(victim()));
  if (!table.job.rank.is(0)) return;
  EXPECT_EQ(Leftovers(place_.root), left);
  EXPECT_EQ(NewestByTheFiles(place_.root, 2), table.now);
}

void FaultTable::ExpectWarned(Table table, const LoggedEvent& e, const Outcome& o) {
  EXPECT_OK(o);
  if (!table.job.rank.is(victim())) return;
  EXPECT_EQ(table.warnings.size(), 1u);
  for (const std::string& text : table.warnings)
    EXPECT_TRUE(Has(text, e.path) || Has(text, e.to)) << text;
}

void FaultTable::ExpectNewest(Table table) {
  const Outcome o = table.job.Load();
  EXPECT_OK(o);
  EXPECT_EQ(o.result.step, table.now.step);
  EXPECT_TRUE(table.job.Holds(table.now.base));
  table.job.rank.Barrier("loaded");
}

TEST_P(FaultTable, AnErrorIsTheSameOnAllBeforeTheCommitAndAWarningAfterIt) {
  const Result r = launch::Run({.ranks = 2, .deadline_s = 60}, [&](Rank& rank) {
    rank.Put("faults", std::to_string(Everywhere(rank)));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const int faults = std::stoi(r.get(0, "faults"));
  EXPECT_GE(faults, victim() == 0 ? 15 : 2) << "the shim sees too little";
  for (int nth = 1; nth <= faults + 1; ++nth) ExpectSame(r, "verdict " + std::to_string(nth));
  std::printf("%s, rank %d, %s: %d faults\n", kind().name, victim(), fault().error_name, faults);
  const Result next = launch::Run({.ranks = 2}, [&](Rank& rank) {
    CrashJob job(rank, {.root = place_.root});
    EXPECT_OK(job.Load());
    EXPECT_OK(job.Save(100, 100));
  });
  EXPECT_TRUE(next.ok()) << next.report();
  EXPECT_EQ(Leftovers(place_.root), "");
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Kind, Fault, int>>& info) {
  const auto& [kind, fault, victim] = info.param;
  return std::string(kind.name) + fault.error_name + "OnRank" + std::to_string(victim);
}
INSTANTIATE_TEST_SUITE_P(, FaultTable,
                         testing::Combine(testing::ValuesIn(kKinds), testing::ValuesIn(kFaults),
                                          testing::Values(0, 1)),
                         NameOf);

}  // namespace
}  // namespace ckpt_test
