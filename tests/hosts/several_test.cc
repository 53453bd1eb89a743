// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks on hosts of their own, with names and networks of their own, that share one root: what one
// host does, several do (K09), and how they find each other.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <thread>

#include "hosts/hosts.h"
#include "process/process.h"

namespace ckpt_test {
namespace {

launch::Options Job(int count, int per_host, const std::string& master = "") {
  return {
      .ranks = count * per_host, .deadline_s = 60, .rank_env = Hosts::Job(count, per_host, master)};
}

// `body` on each rank, on its host.
Result RunOn(const Hosts& hosts, const launch::Options& options, int per_host,
             const std::function<void(Rank&)>& body) {
  return launch::Run(options, [&](Rank& rank) {
    hosts.Enter(rank.id() / per_host);
    body(rank);
  });
}

// W f32 [16, 4] cut by columns: whoever writes needs bytes of all the others.
struct Columns {
  Columns(Rank& rank, Ctx& ctx)
      : part(Even(4, rank.id(), rank.size())), w(16 * part.count), s(ctx) {
    s.Box("w", {16, 4}, {0, part.offset}, {16, part.count}, w);
  }
  std::vector<float> Wanted(float base) const {
    return BoxValues(4, {0, part.offset}, {16, part.count}, base);
  }
  void Set(float base) {  // in place: the state points to it
    const std::vector<float> wanted = Wanted(base);
    std::copy(wanted.begin(), wanted.end(), w.begin());
  }
  Part part;
  std::vector<float> w;
  State s;
};

struct Shape {
  const char* name;
  int hosts, per_host;
};

class SeveralHosts : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(K09, SeveralHosts,
                         testing::Values(Shape{"OneHostOneRank", 1, 1},
                                         Shape{"TwoHostsOneRankEach", 2, 1},
                                         Shape{"TwoHostsTwoRanksEach", 2, 2},
                                         Shape{"FourHostsOneRankEach", 4, 1}),
                         [](const auto& shape) { return std::string(shape.param.name); });

TEST_P(SeveralHosts, K09_SaveReplaceRefuseLoadAndEnd) {
  const Shape shape = GetParam();
  Hosts hosts(shape.hosts);
  NEED_HOSTS(hosts);
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = RunOn(hosts, Job(shape.hosts, shape.per_host), shape.per_host, [&](Rank& rank) {
    utsname self{};
    uname(&self);
    EXPECT_EQ(self.nodename, Hosts::Name(rank.id() / shape.per_host));
    Trainer t(rank, {.root = root, .timeout_ms = 20'000}, 1);
    EXPECT_STATUS(t.Load(), CKPT_ERR_NO_CHECKPOINT);
    EXPECT_OK(t.Save(10));
    t.Set(2);
    EXPECT_OK(t.Save(20));
    EXPECT_STATUS(t.Save({.step = 20, .on_existing = CKPT_EXISTING_REFUSE}), CKPT_ERR_EXISTS);
    t.Set(3);
    EXPECT_OK(t.Save(20));
    t.Clear();
    EXPECT_STATUS(t.Load({.step = 999}), CKPT_ERR_NOT_FOUND);
    EXPECT_TRUE(t.Untouched());
    EXPECT_OK(t.Load());
    EXPECT_TRUE(t.Holds(3));
    EXPECT_OK(t.Load({.step = 10}));
    EXPECT_TRUE(t.Holds(1));
    EXPECT_OK(t.ctx.Finalize());
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(root, "step-"), (std::set{StepName(10), StepName(20)}));
  ExpectFileHolds(root, 20, 3);
  ExpectNoLeftovers(root);
}

TEST(Reshard, K09_WhatTwoHostsSavedByColumnsOthersLoadByRowsAndOneRankToo) {
  Scratch scratch;
  const std::string root = scratch / "root";
  {
    Hosts hosts(2);
    NEED_HOSTS(hosts);
    const Result r = RunOn(hosts, Job(2, 2), 2, [&](Rank& rank) {
      Ctx ctx({.root = root, .timeout_ms = 20'000});
      ASSERT_INIT(ctx);
      Columns c(rank, ctx);
      for (const int64_t step : {1, 2}) {
        c.Set(static_cast<float>(100 * step));
        EXPECT_OK(Save(ctx, c.s, step));
      }
      std::fill(c.w.begin(), c.w.end(), kFill);
      EXPECT_OK(Load(ctx, c.s));
      EXPECT_EQ(c.w, c.Wanted(200));
    });
    ASSERT_TRUE(r.ok()) << r.report();
    ExpectFileHolds(root, 2, 200);
  }
  for (const auto& [count, per_host] : {std::pair(3, 1), {1, 1}, {2, 4}}) {
    Hosts hosts(count);
    NEED_HOSTS(hosts);
    const Result r = RunOn(hosts, Job(count, per_host), per_host, [&](Rank& rank) {
      Trainer t(rank, {.root = root, .timeout_ms = 20'000});
      t.Clear();
      EXPECT_OK(t.Load());
      EXPECT_TRUE(t.Holds(200));
    });
    EXPECT_TRUE(r.ok()) << count << " hosts of " << per_host << " ranks\n" << r.report();
  }
}

// Two "nodes" with equal local ranks.
TEST(PerRankState, J03_RanksOfTwoHostsWithEqualLocalRanksGetTheirOwnBlobsBack) {
  Hosts hosts(2);
  NEED_HOSTS(hosts);
  Scratch scratch;
  const Result r = RunOn(hosts, Job(2, 2), 2, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root", .timeout_ms = 20'000});
    ASSERT_INIT(ctx);
    const std::vector<uint8_t> own(16, static_cast<uint8_t>(10 + rank.id()));
    std::vector<uint8_t> rng = own;
    std::vector<float> w = Values(4);
    State state(ctx);
    state.Whole("w", {4}, w).Blob(CKPT_BLOB_PER_RANK, "rng", rng);
    EXPECT_OK(Save(ctx, state, 1));
    std::fill(rng.begin(), rng.end(), 0);
    EXPECT_OK(Load(ctx, state));
    EXPECT_EQ(rng, own);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Meeting, RanksMeetOverIpv6) {
  Hosts hosts(2);
  NEED_HOSTS(hosts);
  Scratch scratch;
  for (const std::string& master : {Hosts::Address6(0), "[" + Hosts::Address6(0) + "]"}) {
    const std::string root = scratch / master;
    const Result r = RunOn(hosts, Job(2, 2, master), 2, [&](Rank& rank) {
      Ctx ctx({.root = root, .timeout_ms = 20'000});
      ASSERT_INIT(ctx);
      Columns c(rank, ctx);
      c.Set(1);
      EXPECT_OK(Save(ctx, c.s, 1));
    });
    EXPECT_TRUE(r.ok()) << master << "\n" << r.report();
    ExpectFileHolds(root, 1, 1);
  }
}

// A second network: fast0, 10.88.0.0/24.
void AddFastNetwork(const Hosts& hosts) {
  for (int host : {0, 1}) {
    const std::string address = "10.88.0." + std::to_string(host + 1) + "/24";
    EXPECT_EQ(hosts.AddInterface(host, "fast0", address), "");
  }
}

// Bytes that came in so far, as this rank's host counts them.
int64_t Received(const std::string& interface) {
  std::ifstream table("/proc/net/dev");
  for (std::string word; table >> word;) {
    int64_t bytes = 0;
    if (word == interface + ":" && table >> bytes) return bytes;
  }
  return -1;
}

TEST(Meeting, CKPT_INTERFACEChoosesTheNetworkOfTheBytesRankByRank) {
  Hosts hosts(2);
  NEED_HOSTS(hosts);
  AddFastNetwork(hosts);
  Scratch scratch;
  constexpr int64_t kBytes = 1 << 20;
  launch::Options options = Job(2, 2);
  options.rank_env[0]["CKPT_INTERFACE"] = "eth0";
  options.rank_env[1]["CKPT_INTERFACE"] = "10.88.0.1";
  options.rank_env[2]["CKPT_INTERFACE"] = "fast0";
  const Result r = RunOn(hosts, options, 2, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root",
             .timeout_ms = 20'000,
             .flags = rank.id() < 2 ? CKPT_INIT_NO_WRITE : 0u});  // theirs go to the other host
    ASSERT_INIT(ctx);
    std::vector<uint8_t> own(kBytes, static_cast<uint8_t>(rank.id()));
    State state(ctx);
    state.Add({.name = "of rank " + std::to_string(rank.id()),
               .shape = {kBytes},
               .dtype = kU8,
               .data = own.data()});
    const int64_t eth0 = Received("eth0"), fast0 = Received("fast0");
    rank.Barrier("counted");
    EXPECT_OK(Save(ctx, state, 1));
    rank.Barrier("saved");
    if (rank.id() < 2) return;
    for (const int64_t came : {Received("eth0") - eth0, Received("fast0") - fast0}) {
      EXPECT_GE(came, kBytes);  // one rank's
      EXPECT_LT(came, 2 * kBytes);
    }
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Meeting, RankZeroListensOnItsInterfaceOnly) {
  Hosts hosts(2);
  NEED_HOSTS(hosts);
  AddFastNetwork(hosts);
  Scratch scratch;
  launch::Options options = Job(2, 1, Hosts::Address(0));  // of eth0
  options.rank_env[0]["CKPT_INTERFACE"] = "fast0";
  const Result refused = RunOn(hosts, options, 1, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root", .timeout_ms = 1000});
    EXPECT_STATUS(ctx.init(), CKPT_ERR_PARTICIPANTS);
    if (rank.is(0)) return;
    EXPECT_EQ(ctx.init().cause.sys_errno, ECONNREFUSED) << ctx.init();
    EXPECT_SAYS(ctx.init(), Hosts::Address(0) + ":4711");
  });
  EXPECT_TRUE(refused.ok()) << refused.report();
  options.rank_env[1]["MASTER_ADDR"] = "10.88.0.1";
  const Result met = RunOn(hosts, options, 1, [&](Rank&) {
    Ctx ctx({.root = scratch / "root", .timeout_ms = 20'000});
    EXPECT_OK(ctx.init());
  });
  EXPECT_TRUE(met.ok()) << met.report();
}

TEST(Meeting, AnInterfaceThatAHostDoesNotHaveIsRefusedThereAndTheOthersNameThatRank) {
  Hosts hosts(2);
  NEED_HOSTS(hosts);
  Scratch scratch;
  launch::Options options = Job(2, 1);
  options.rank_env[1]["CKPT_INTERFACE"] = "fast0";
  const Result r = RunOn(hosts, options, 1, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root", .timeout_ms = 1000});
    if (rank.is(1)) {
      EXPECT_STATUS(ctx.init(), CKPT_ERR_INVALID_ARGUMENT);
      EXPECT_SAYS(ctx.init(), "fast0");
      EXPECT_SAYS(ctx.init(), "eth0 " + Hosts::Address(1));
      EXPECT_EQ(ctx.init().cause.name, "CKPT_INTERFACE");
    } else {
      EXPECT_STATUS(ctx.init(), CKPT_ERR_PARTICIPANTS);
      EXPECT_EQ(ctx.init().RankSet(), (Ranks{1}));
    }
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(Meeting, APortThatAnotherProcessHoldsIsRefusedAtOnceAndThatProcessNamed) {
  Hosts hosts(1);
  NEED_HOSTS(hosts);
  Scratch scratch;
  const Result r = RunOn(hosts, Job(1, 2), 2, [&](Rank& rank) {
    if (rank.is(1)) {
      const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in6 all{};
      all.sin6_family = AF_INET6;
      all.sin6_port = htons(4711);
      EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&all), sizeof all), 0);
      EXPECT_EQ(listen(fd, 1), 0);
      rank.Put("pid", std::to_string(getpid()));
      rank.Barrier("held");
      rank.Barrier("refused");
      return;
    }
    rank.Barrier("held");
    Ctx ctx({.root = scratch / "root", .timeout_ms = 20'000});
    EXPECT_STATUS(ctx.init(), CKPT_ERR_COMM);
    EXPECT_EQ(ctx.init().cause.sys_errno, EADDRINUSE);
    EXPECT_LT(ctx.init().seconds, 5);
    EXPECT_SAYS(ctx.init(), "4711");
    rank.Put("message", ctx.init().message);
    rank.Barrier("refused");
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_NE(r.get(0, "message").find("process " + r.get(1, "pid") + " ("), std::string::npos)
      << r.get(0, "message");
}

TEST(Meeting, SeveralContextsShareThePortInOneProcess) {
  Hosts hosts(2);
  NEED_HOSTS(hosts);
  Scratch scratch;
  const Result r = RunOn(hosts, Job(2, 2), 2, [&](Rank& rank) {
    // Each on a thread of its own, so that rank 0 is in several inits at once.
    std::vector<std::thread> threads;
    for (const std::string name : {"a", "b", "c"})
      threads.emplace_back([&rank, &scratch, name] {
        Trainer t(rank, {.root = scratch / name, .name = name, .timeout_ms = 20'000}, 1);
        for (const int64_t step : {1, 2}) EXPECT_OK(t.Save(step));
        EXPECT_OK(t.ctx.Finalize(20'000));
      });
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_TRUE(r.ok()) << r.report();
  for (const std::string name : {"a", "b", "c"}) ExpectFileHolds(scratch / name, 2, 1);
}

TEST(Meeting, ACoordinatorThatCannotBeReachedIsNamedWithItsAddress) {
  Hosts hosts(2);
  NEED_HOSTS(hosts);
  ASSERT_EQ(hosts.Cut(0), "");
  Scratch scratch;
  const Result r = RunOn(hosts, Job(2, 1), 1, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root", .timeout_ms = 1000});
    EXPECT_STATUS(ctx.init(), CKPT_ERR_PARTICIPANTS);
    EXPECT_EQ(ctx.init().RankSet(), (Ranks{1 - rank.id()}));
    EXPECT_LT(ctx.init().seconds, 5);
    if (rank.is(0)) return;
    EXPECT_SAYS(ctx.init(), Hosts::Address(0) + ":4711");
    EXPECT_EQ(ctx.init().cause.sys_errno, ETIMEDOUT) << ctx.init();
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

}  // namespace
}  // namespace ckpt_test
