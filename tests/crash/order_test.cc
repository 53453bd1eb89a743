// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What a power loss needs and no kill can show: the order of the fsyncs and renames of a save, and
// of a takeover, by the shim's logs. A kind of save is one line of kKinds.
#include <map>
#include <optional>

#include "crash/crash.h"

namespace ckpt_test {
namespace {

constexpr int64_t kOld = 1, kNew = 2;

struct Kind {
  const char* name;
  bool replaces = false;
  std::string rules = {};  // what is refused, on every rank
  std::string config = {};
  bool intent = false;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const Kind kKinds[] = {
    {"NewStep"},
    {"Replace", true},
    {"ReplaceByIntent", true, "fail EINVAL op=exchange every\n", "", true},
    {"KeepLast1", false, "", "keep_last=1\n"},
};

using Log = std::vector<LoggedEvent>;
using Index = std::optional<size_t>;  // of an event of a log

bool StartsWith(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

bool IsRename(const LoggedEvent& e) {
  return e.op == "rename" || e.op == "noreplace" || e.op == "exchange";
}

bool Fills(const LoggedEvent& e) {
  return e.op == "create" || e.op == "write" || e.op == "truncate" || e.op == "allocate";
}

// The first fsync of `path` behind event `from`.
Index SyncAfter(const Log& log, const std::string& path, size_t from) {
  for (size_t i = from + 1; i < log.size(); ++i)
    if (log[i].op == "fsync" && log[i].path == path) return i;
  return std::nullopt;
}

class Order : public testing::Test {
 protected:
  // What the rank did, without what failed, and without .ckpt, where a lease is renewed at any
  // time.
  Log Events(int rank) const;
  void ExpectTrashSynced(const Log& log) const;

  const CrashPlace place_;
  const std::string& root_ = place_.root;
  const std::string staging_ = root_ + "/.staging-", trash_ = root_ + "/.trash-";
};

class CommitOrder : public Order, public testing::WithParamInterface<std::tuple<Kind, int>> {
 protected:
  const Kind& kind() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  int64_t step() const { return kind().replaces ? kOld : kNew; }

  void SaveTwice();

  // `published` is where rank 0 renames the new folder to the step's name.
  Index Published(const Log& log) const;
  void ExpectDataSynced(const Log& log, int rank) const;
  void ExpectFolderSynced(const Log& log, size_t published) const;
  void ExpectNothingOlderTouched(const Log& log, size_t published) const;
  void ExpectIntentSynced(const Log& log, size_t published) const;
};

void CommitOrder::SaveTwice() {
  const Result r = launch::Run({.ranks = ranks()}, [&](Rank& rank) {
    CrashJob job(rank, {.root = root_, .config = kind().config});
    EXPECT_OK(job.Save(kOld, 1));
    rank.Barrier("saved");
    place_.Arm(rank, kind().rules);
    EXPECT_OK(job.Save(step(), 2));
    shim_reset("");
  });
  ASSERT_TRUE(r.ok()) << r.report();
}

Log Order::Events(int rank) const {
  Log log;
  for (const LoggedEvent& e : ReadLog(place_.Log(rank)))
    if (e.mark.empty() && !StartsWith(e.path, root_ + "/.ckpt/")) log.push_back(e);
  return log;
}

Index CommitOrder::Published(const Log& log) const {
  for (size_t i = 0; i < log.size(); ++i) {
    const LoggedEvent& e = log[i];
    if (IsRename(e) && StartsWith(e.path, staging_) && e.to == StepPath(root_, step())) return i;
  }
  return std::nullopt;
}

// By each rank, what it wrote itself: on a network file system nobody else can. A log names a
// file as it is called at that moment, so that what happens to the staging folder's files happens
// before the rename, on whatever rank.
void CommitOrder::ExpectDataSynced(const Log& log, int rank) const {
  std::map<std::string, size_t> filled;  // the last time
  for (size_t i = 0; i < log.size(); ++i) {
    const bool old = StartsWith(log[i].path, root_ + "/step-");
    EXPECT_FALSE(Fills(log[i]) && old) << log[i].op << " of " << log[i].path;
    if (!Fills(log[i]) || !StartsWith(log[i].path, staging_)) continue;
    // A file that rank 0 makes for others is theirs to sync.
    if (log[i].op == "write" || filled.count(log[i].path)) filled[log[i].path] = i;
  }
  EXPECT_FALSE(filled.empty()) << "rank " << rank << " wrote nothing";
  for (const auto& [path, last] : filled)
    EXPECT_TRUE(SyncAfter(log, path, last)) << path << ", written by rank " << rank;
}

// The record is the last file, and the folder is synced with it in.
void CommitOrder::ExpectFolderSynced(const Log& log, size_t published) const {
  size_t last = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    if (!StartsWith(log[i].path, staging_) || !Fills(log[i])) continue;
    EXPECT_LT(i, published) << log[i].op << " of " << log[i].path;
    if (log[i].op == "create") last = i;
  }
  const std::string folder = log[published].path;
  EXPECT_EQ(log[last].path, folder + "/ckpt.json");
  const Index synced = SyncAfter(log, folder, last);
  EXPECT_TRUE(synced && *synced < published) << "fsync of the staging folder";
}

// Up to the fsync of the root that follows the rename: no step, no LATEST, no trash.
void CommitOrder::ExpectNothingOlderTouched(const Log& log, size_t published) const {
  for (size_t i = 0; i < published; ++i) {
    const LoggedEvent& e = log[i];
    const bool away = kind().intent && IsRename(e) && StartsWith(e.to, trash_);
    const bool new_one =
        StartsWith(e.path, staging_) || e.path == root_ || StartsWith(e.path, root_ + "/.replace-");
    EXPECT_TRUE(new_one || away) << e.op << " of " << e.path << " before the commit";
  }
  ASSERT_LT(published + 1, log.size());
  const LoggedEvent& next = log[published + 1];
  EXPECT_TRUE(next.op == "fsync" && next.path == root_)
      << "after the rename: " << next.op << " of " << next.path;
}

// Before the old step's name is free, the intent is on disk, and so is its name.
void CommitOrder::ExpectIntentSynced(const Log& log, size_t published) const {
  size_t written = 0, away = 0;
  std::string intent;
  for (size_t i = 0; i < published; ++i) {
    if (Fills(log[i]) && StartsWith(log[i].path, root_ + "/.replace-")) {
      written = i;
      intent = log[i].path;
    }
    if (IsRename(log[i]) && StartsWith(log[i].to, trash_)) away = i;
  }
  const Index file = SyncAfter(log, intent, written);
  const Index name = SyncAfter(log, root_, written);
  EXPECT_TRUE(!intent.empty() && file && *file < away) << "fsync of the intent";
  EXPECT_TRUE(name && *name < away) << "fsync of the root with the intent in it";
}

// What has a trash name may be the step after the next boot, until the root is synced.
void Order::ExpectTrashSynced(const Log& log) const {
  size_t renamed = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    if (IsRename(log[i])) renamed = i;
    const bool removal = log[i].op == "unlink" || log[i].op == "rmdir";
    if (!removal || !StartsWith(log[i].path, trash_)) continue;
    const Index synced = SyncAfter(log, root_, renamed);
    EXPECT_TRUE(synced && *synced < i) << log[i].op << " of " << log[i].path;
  }
}

TEST_P(CommitOrder, TheNewStepIsOnDiskBeforeItsNameAndItsNameBeforeAnOlderOneGoes) {
  ASSERT_NO_FATAL_FAILURE(SaveTwice());
  for (int rank = 0; rank < ranks(); ++rank) ExpectDataSynced(Events(rank), rank);
  for (int rank = 1; rank < ranks(); ++rank)
    for (const LoggedEvent& e : Events(rank)) EXPECT_FALSE(e.op == "create" || IsRename(e)) << e.op;
  const Log log = Events(0);
  const Index published = Published(log);
  ASSERT_TRUE(published) << "no rename to the step's name";
  ExpectFolderSynced(log, *published);
  ExpectNothingOlderTouched(log, *published);
  if (kind().intent) ExpectIntentSynced(log, *published);
  ExpectTrashSynced(log);
  EXPECT_EQ(NewestByTheFiles(root_, ranks()), (Saved{step(), 2}));
}

using TakeoverOrder = Order;

// Killed between the two renames of a replacement, which the next owner completes.
TEST_F(TakeoverOrder, AnIntentGoesOnlyOnceTheNameThatItGaveIsOnDisk) {
  (void)launch::Run({.ranks = 1}, [&](Rank& rank) {
    CrashJob job(rank, {.root = root_});
    EXPECT_OK(job.Save(kOld, 1));
    place_.Arm(rank, "fail EINVAL op=exchange every\nkill op=noreplace nth=2\n");
    (void)job.Save(kOld, 2);
  });
  ASSERT_EQ(ListOf(root_, ".replace-").size(), 1u) << Leftovers(root_);
  ASSERT_EQ(ListOf(root_, "step-").size(), 0u);
  const Result r = launch::Run({.ranks = 1}, [&](Rank& rank) {
    CrashJob job(rank, {.root = root_});
    place_.Arm(rank, "");
    EXPECT_OK(job.Save(kNew, 3));
    shim_reset("");
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const Log log = Events(0);
  size_t named = 0, dropped = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    if (IsRename(log[i]) && log[i].to == StepPath(root_, kOld)) named = i;
    if (log[i].op == "unlink" && StartsWith(log[i].path, root_ + "/.replace-")) dropped = i;
  }
  ASSERT_LT(named, dropped);
  const Index synced = SyncAfter(log, root_, named);
  EXPECT_TRUE(synced && *synced < dropped);
  ExpectTrashSynced(log);
  EXPECT_EQ(ListOf(root_, "step-"), (std::set{StepName(kOld), StepName(kNew)}));
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Kind, int>>& info) {
  return std::string(std::get<0>(info.param).name) + "Of" + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(, CommitOrder,
                         testing::Combine(testing::ValuesIn(kKinds), testing::Values(1, 2)),
                         NameOf);

}  // namespace
}  // namespace ckpt_test
