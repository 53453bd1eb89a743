// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Init: who is missing, who disagrees, who comes twice, and what a guest must not change.
#include "comm/bootstrap.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>

#include "unit/comm/world.h"

namespace ckpt {
namespace {

using namespace testing;  // NOLINT

bool Has(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

TEST(Bootstrap, MissingRanksAreNamedOnAllThatCame) {
  const std::string job = NewJob();
  OnAll(2, [&](int32_t r) {
    GroupOptions o = Options(2 * r, 4, job);  // ranks 0 and 2
    o.contract_timeout = Millis(500);
    const TimePoint start = Clock::now();
    const Status status = Group::Create(std::move(o)).status();
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
    EXPECT_EQ(status.code(), Code::kParticipants);
    EXPECT_TRUE(Has(status, "missing: ranks 1, 3")) << status.message();
  });
}

TEST(Bootstrap, WithoutRankZeroTheOthersSaySo) {
  GroupOptions o = Options(1, 2, NewJob());
  o.contract_timeout = Millis(200);
  const Status status = Group::Create(std::move(o)).status();
  EXPECT_EQ(status.code(), Code::kParticipants);
  ASSERT_EQ(status.ranks().size(), 1u);
  EXPECT_EQ(status.ranks()[0].rank, 0);
  EXPECT_TRUE(Has(status, "rank 0 has not published"));
  EXPECT_TRUE(Has(status, "CKPT_PORT"));
}

TEST(Bootstrap, ADifferenceIsAMismatchOnAllRanks) {
  World world(3, [](int32_t rank, GroupOptions& o) {
    o.job_config = {{"io.align", rank == 2 ? "4096" : "1048576"}};
  });
  for (const Status& status : world.status) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_EQ(status.cause().field, "io.align");
    EXPECT_TRUE(Has(status, "\"4096\" on rank 2")) << status.message();
  }
}

TEST(Bootstrap, ADifferentLibraryIsAMismatch) {
  World world(2, [](int32_t rank, GroupOptions& o) { o.library_build = Cat("1.", rank); });
  for (const Status& status : world.status) EXPECT_TRUE(Has(status, "library build"));
}

TEST(Bootstrap, ASecondProcessOfARankIsRefusedAndTheFirstIsNot) {
  const std::string job = NewJob();
  std::vector<Status> ones(2);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  std::shared_ptr<Group> kept[2];
  threads.emplace_back([&] {
    auto g = Group::Create(Options(0, 3, job));
    EXPECT_TRUE(g.ok()) << g.status().message();
  });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      auto g = Group::Create(Options(1, 3, job));
      if (g.ok()) {
        kept[i] = *g;
        return;
      }
      EXPECT_EQ(g.status().code(), Code::kInvalidArgument);
      EXPECT_TRUE(Has(g.status(), "rank 1 is taken by process")) << g.status().message();
      ++refused;
    });
  }
  while (refused == 0) std::this_thread::yield();
  auto last = Group::Create(Options(2, 3, job));
  EXPECT_TRUE(last.ok()) << last.status().message();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(refused, 1);
}

uint16_t FreePort() {
  uint16_t port = 0;
  EXPECT_TRUE(Listen(Interface::kLoopback, 0, &port).ok());
  return port;
}

TEST(Bootstrap, PortAndTokenNeedNoFile) {
  const uint16_t port = FreePort();
  World world(3, [&](int32_t, GroupOptions& o) {
    o.identity->port = port;
    o.identity->token = "secret";
    o.identity->address = "localhost";
    o.identity->one_host = false;
  });
  ASSERT_TRUE(world.ok()) << world.status[0].message() << world.status[1].message();
  world.All([](int32_t, Group& group) {
    std::string sum;
    EXPECT_TRUE(SumOfRanks(group, 1, &sum).ok());
  });
}

TEST(Bootstrap, AnotherTokenDoesNotGetIn) {
  const uint16_t port = FreePort();
  World world(2, [&](int32_t rank, GroupOptions& o) {
    o.contract_timeout = Millis(500);
    o.identity->port = port;
    o.identity->token = Cat("secret", rank);
  });
  EXPECT_EQ(world.status[0].code(), Code::kParticipants);
  EXPECT_EQ(world.status[1].code(), Code::kParticipants);
}

TEST(Bootstrap, APortThatIsTakenIsNamed) {
  uint16_t port = 0;
  auto taken = Listen(Interface::kLoopback, 0, &port);
  ASSERT_TRUE(taken.ok());
  GroupOptions o = Options(0, 2, NewJob());
  o.identity->port = port;
  const Status status = Group::Create(std::move(o)).status();
  EXPECT_EQ(status.code(), Code::kComm);
  EXPECT_TRUE(Has(status, Cat(port))) << status.message();
  EXPECT_EQ(status.cause().sys_errno, EADDRINUSE);
}

TEST(Bootstrap, TwoContextsOfOneJobLiveSideBySide) {
  World a(2), b(2);
  ASSERT_TRUE(a.ok() && b.ok());
  for (World* world : {&a, &b, &a}) {
    world->All([](int32_t, Group& group) {
      static std::atomic<int64_t> step{0};
      (void)step;
      std::string sum;
      EXPECT_TRUE(SumOfRanks(group, 5, &sum).ok());
    });
  }
}

std::set<int> OpenDescriptors() {
  std::set<int> out;
  DIR* dir = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(dir)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != ::dirfd(dir)) out.insert(fd);
  }
  ::closedir(dir);
  return out;
}

TEST(Bootstrap, K_AGuestChangesNothingAndLeavesNothing) {
  sigset_t before, after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const std::set<int> old = OpenDescriptors();
  {
    World world(2);
    ASSERT_TRUE(world.ok());
    for (int fd : OpenDescriptors()) {
      if (old.count(fd) == 0) {
        EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd;
      }
    }
  }
  EXPECT_EQ(OpenDescriptors(), old);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int s = 1; s < 65; ++s) EXPECT_EQ(sigismember(&before, s), sigismember(&after, s)) << s;
}

}  // namespace
}  // namespace ckpt
