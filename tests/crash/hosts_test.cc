// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Several jobs and several hosts on one root: at most one writes at any time (B05), owners on other
// hosts are watched, taken over when they are dead and refused when they come back, and ranks that
// do not share a storage are told so (A08, B03). Other hosts are made by the shim: another
// boot id, another host name.
#include <unistd.h>

#include "crash/crash.h"

namespace ckpt_test {
namespace {

// Rank `rank` of `size` of a job of its own, on that host.
launch::Env Member(const std::string& job, int rank, int size, const std::string& host) {
  return {{"CKPT_JOB_ID", job},
          {"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(size)},
          {"SHIM_HOST", host},
          {"SHIM_BOOT_ID", host + "-boot"}};
}

// W f32 [16], cut over the ranks of the job, every element `base`.
struct Writer {
  Writer(const std::string& root, const std::string& config,
         std::function<int(const ckpt_event&)> on_event = {})
      : ctx({.root = root, .config = config, .timeout_ms = 20'000, .on_event = on_event}),
        state(Made(ctx)) {
    const Part part = Even(16, Lib().ckpt_rank(ctx.get()), Lib().ckpt_size(ctx.get()));
    w.resize(part.count);
    state.Box("w", {16}, {part.offset}, {part.count}, w);
  }
  Outcome SaveAs(int64_t step, float base) {
    std::fill(w.begin(), w.end(), base);
    return Save(ctx, state, step);
  }
  static Ctx& Made(Ctx& ctx) {
    if (!ctx.init().ok()) throw std::runtime_error("ckpt_init: " + ctx.init().Verdict());
    return ctx;
  }
  Ctx ctx;
  std::vector<float> w;
  State state;
};

void ExpectStepOf(const std::string& root, int64_t step, float base) {
  EXPECT_EQ(safetensors::Open(StepPath(root, step)).tensors.at("w").Floats(),
            std::vector<float>(16, base))
      << step;
}

TEST(TwoJobs, B05_OnOneRootAtOnceOneIsOwnedAndEveryStepIsOfOneJob) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const std::vector<launch::Env> two_jobs = {Member("A", 0, 2, "h"), Member("A", 1, 2, "h"),
                                             Member("B", 0, 2, "h"), Member("B", 1, 2, "h")};
  const launch::Options options{.ranks = 4, .deadline_s = 60, .rank_env = two_jobs};
  const Result r = launch::Run(options, [&](Rank& rank) {
    const float base = rank.id() < 2 ? 1 : 2;
    Writer writer(root, "");
    rank.Barrier("both are there");
    std::string saved;
    for (int64_t step = 1; step <= 20; ++step) {
      const Outcome o = writer.SaveAs(step, base);
      const bool refused = o.status == CKPT_ERR_OWNED || o.status == CKPT_ERR_EXISTS;
      EXPECT_TRUE(o.ok() || refused) << o;
      if (o.status == CKPT_ERR_OWNED) {
        EXPECT_TRUE(o.Says(rank.id() < 2 ? "B" : "A")) << o;  // the other job
      }
      saved += o.ok() ? 'x' : '.';
    }
    rank.Put("saved", saved);
    EXPECT_OK(writer.ctx.Finalize());
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const std::string a = r.get(0, "saved"), b = r.get(2, "saved");
  EXPECT_EQ(r.get(1, "saved"), a);
  EXPECT_EQ(r.get(3, "saved"), b);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_FALSE(a[i] == 'x' && b[i] == 'x') << "both saved step " << i + 1;
    if (a[i] == 'x') ExpectStepOf(root, static_cast<int64_t>(i) + 1, 1);
    if (b[i] == 'x') ExpectStepOf(root, static_cast<int64_t>(i) + 1, 2);
  }
  EXPECT_NE(a.find('x') == std::string::npos, b.find('x') == std::string::npos) << a << " " << b;
  EXPECT_EQ(Leftovers(root), "");
}

// Its lease stands still: after 30 s of the observer's clock it is dead.
TEST(OtherHosts, AnOwnerKilledOnAnotherHostIsTakenOverOnceItsLeaseStandsStill) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const launch::Options options{.ranks = 2,
                                .deadline_s = 100,
                                .rank_env = {Member("A", 0, 1, "a"), Member("B", 0, 1, "b")},
                                .plan = {launch::KillAt("saved", 0)}};
  const Result r = launch::Run(options, [&](Rank& rank) {
    if (rank.is(0)) {
      Writer writer(root, "");
      EXPECT_OK(writer.SaveAs(1, 1));
      rank.Event("saved");  // and is killed
    }
    rank.WaitFor("saved");
    Writer writer(root, "io.stall_timeout_ms=5000\n");  // watching is progress
    const Outcome o = writer.SaveAs(2, 2);
    EXPECT_OK(o);
    EXPECT_GE(o.seconds, 29);
    EXPECT_OK(writer.SaveAs(3, 3));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectStepOf(root, 1, 1);
  ExpectStepOf(root, 2, 2);
  EXPECT_EQ(Leftovers(root), "");
}

TEST(OtherHosts, ALivingOwnerOnAnotherHostIsOwnedAndNamed) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const launch::Options options{
      .ranks = 2, .deadline_s = 60, .rank_env = {Member("A", 0, 1, "a"), Member("B", 0, 1, "b")}};
  const Result r = launch::Run(options, [&](Rank& rank) {
    if (rank.is(0)) {
      Writer writer(root, "");
      EXPECT_OK(writer.SaveAs(1, 1));
      rank.Barrier("saved");
      rank.Barrier("refused");
      EXPECT_OK(writer.SaveAs(2, 1));
      return;
    }
    rank.Barrier("saved");
    Writer writer(root, "");
    const Outcome o = writer.SaveAs(5, 2);
    EXPECT_STATUS(o, CKPT_ERR_OWNED);
    EXPECT_SAYS(o, "host a");
    EXPECT_LT(o.seconds, 25);
    rank.Barrier("refused");
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1), StepName(2)}));
}

// Stopped while it saves, taken for dead, replaced, and woken up: it may not commit.
TEST(OtherHosts, AnOwnerThatComesBackAfterATakeoverIsRefusedAndLosesNothing) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const launch::Options options{
      .ranks = 2,
      .deadline_s = 60,
      .rank_env = {Member("A", 0, 1, "a"), Member("B", 0, 1, "b")},
      .plan = {launch::StopAt("A saves", 0), launch::ContinueAt("B has saved", 0)}};
  const Result r = launch::Run(options, [&](Rank& rank) {
    if (rank.is(0)) {
      int64_t stop_at = -1;
      Writer writer(root, "", [&](const ckpt_event& event) {
        if (event.kind == CKPT_EVENT_PROGRESS && event.step == stop_at) {
          stop_at = -1;
          rank.Event("A saves");
        }
        return 0;
      });
      EXPECT_OK(writer.SaveAs(1, 1));
      // The file call before the commit takes a while, so that the event comes first.
      shim_reset(("root " + root + "\ndelay 700 op=create path=ckpt.json\n").c_str());
      stop_at = 2;
      const Outcome o = writer.SaveAs(2, 1);
      EXPECT_FALSE(o.ok()) << "committed in a root that was taken over";
      EXPECT_STATUS(writer.SaveAs(4, 1), CKPT_ERR_OWNED);
      rank.Event("refused");
      return;
    }
    rank.WaitFor("A saves");
    Writer writer(root, "owner.force=on\n");
    EXPECT_OK(writer.SaveAs(3, 2));
    rank.Event("B has saved");
    rank.WaitFor("refused");
    EXPECT_OK(writer.SaveAs(5, 2));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1), StepName(3), StepName(5)}));
  ExpectStepOf(root, 1, 1);
  ExpectStepOf(root, 3, 2);
  EXPECT_EQ(Leftovers(root), "");
}

// Its disk stands still in the last fsync of a commit, whose rename others see; then it fails. The
// root is another's by then: what has the step's name is not undone.
TEST(OtherHosts, ACommitWhoseRootWasTakenOverMeanwhileIsUnknownAndItsStepStays) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const launch::Options options{
      .ranks = 2, .deadline_s = 60, .rank_env = {Member("A", 0, 1, "a"), Member("B", 0, 1, "b")}};
  const Result r = launch::Run(options, [&](Rank& rank) {
    if (rank.is(0)) {
      Writer writer(root, "");
      EXPECT_OK(writer.SaveAs(1, 1));
      shim_reset(("root " + root + "\ndelay 3000 op=fsync end=/root\nfail EIO op=fsync end=/root\n")
                     .c_str());
      rank.Event("A saves");
      EXPECT_STATUS(writer.SaveAs(2, 1), CKPT_ERR_OUTCOME_UNKNOWN);
      rank.Event("A is back");
      return;
    }
    rank.WaitFor("A saves");
    while (!std::filesystem::exists(StepPath(root, 2))) usleep(1000);
    Writer writer(root, "owner.force=on\n");
    EXPECT_OK(writer.SaveAs(3, 2));
    rank.WaitFor("A is back");
    EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(1), StepName(2), StepName(3)}));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectStepOf(root, 2, 1);
  ExpectStepOf(root, 3, 2);
}

// One job of two ranks on two hosts.
Result TwoHosts(const std::function<void(Rank&)>& body) {
  std::vector<launch::Env> members = {Member("A", 0, 2, "first"), Member("A", 1, 2, "second")};
  return launch::Run({.ranks = 2, .deadline_s = 60, .rank_env = members}, body);
}

TEST(Storage, B03_RanksOnTwoHostsThatShareOneMaySpellItAsTheyLike) {
  Scratch scratch;
  const std::string root = scratch / "root", link = scratch / "link";
  std::filesystem::create_directory(root);
  std::filesystem::create_directory_symlink(root, link);
  const Result r = TwoHosts([&](Rank& rank) {
    Writer writer(rank.is(0) ? root : link, "");
    for (int64_t step : {1, 2}) EXPECT_OK(writer.SaveAs(step, 1));
    std::fill(writer.w.begin(), writer.w.end(), kFill);
    EXPECT_OK(Load(writer.ctx, writer.state));
    EXPECT_EQ(writer.w[0], 1);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectStepOf(root, 2, 1);
  EXPECT_EQ(Leftovers(root), "");
}

TEST(Storage, B03_RootsOnTheDisksOfTwoHostsAreRefusedAndBothAreNamed) {
  Scratch scratch;
  for (const bool exists : {false, true}) {
    const std::string one = scratch / (exists ? "one" : "eins"), two = one + "-two";
    if (exists) {  // the second one has had an owner too: nothing but the probe tells them apart
      std::filesystem::create_directories(one + "/.ckpt");
      std::filesystem::create_directories(two + "/.ckpt");
    }
    const Result r = TwoHosts([&](Rank& rank) {
      Writer writer(rank.is(0) ? one : two, "");
      const Outcome o = writer.SaveAs(1, 1);
      EXPECT_STATUS(o, CKPT_ERR_UNSUPPORTED);
      for (const std::string& part : {std::string("first"), std::string("second"), one, two}) {
        EXPECT_SAYS(o, part);
      }
      Publish(rank, "refused", o);
    });
    EXPECT_TRUE(r.ok()) << r.report();
    ExpectSame(r, "refused");
    for (const std::string& root : {one, two}) {
      EXPECT_EQ(ListOf(root, "step-"), std::set<std::string>{});
      EXPECT_EQ(Leftovers(root), "") << root;
    }
  }
}

// Each host has a root of its own, of which one lacks the newest step.
TEST(Storage, A08_TheNewestStepOfNodeLocalRootsIsRefusedAndBothRootsAreNamed) {
  Scratch scratch;
  const std::string one = scratch / "one", two = scratch / "two";
  for (const std::string& root : {one, two}) {
    const Result saved = launch::Run({.ranks = 2}, [&](Rank&) {
      Writer writer(root, "");
      EXPECT_OK(writer.SaveAs(100, 1));
      if (root == one) {
        EXPECT_OK(writer.SaveAs(200, 2));
      }
    });
    ASSERT_TRUE(saved.ok()) << saved.report();
  }
  std::vector<launch::Env> members;
  for (int i = 0; i < 4; ++i) members.push_back(Member("A", i, 4, i < 2 ? "first" : "second"));
  const launch::Options options{.ranks = 4, .deadline_s = 60, .rank_env = members};
  const Result r = launch::Run(options, [&](Rank& rank) {
    Writer writer(rank.id() < 2 ? one : two, "");
    std::fill(writer.w.begin(), writer.w.end(), kFill);
    const Outcome o = Load(writer.ctx, writer.state);
    EXPECT_STATUS(o, CKPT_ERR_UNSUPPORTED);
    EXPECT_SAYS(o, one);
    EXPECT_SAYS(o, two);
    EXPECT_EQ(writer.w[0], kFill);
    Publish(rank, "refused", o);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "refused");
}

}  // namespace
}  // namespace ckpt_test
