// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Several contexts of one process behind one CKPT_PORT, one after another and at once; and those
// who come to it with another job id or token.
#include "comm/shared_port.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "unit/comm/world.h"

namespace ckpt {
namespace {

using namespace testing;  // NOLINT

bool Has(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

uint16_t FreePort() {
  uint16_t port = 0;
  EXPECT_TRUE(Listen(Interface::kAll, 0, &port).ok());
  return port;
}

GroupOptions By(uint16_t port, int32_t rank, int32_t size, const std::string& job) {
  GroupOptions o = Options(rank, size, job);
  o.identity->one_host = false;
  o.identity->address = "127.0.0.1";
  o.identity->port = port;
  o.identity->token = "secret";
  return o;
}

TEST(SharedPort, ItIsOneSocketAsLongAsSomebodyHasItAndThenFree) {
  const uint16_t port = FreePort();
  int made = 0;
  const auto listen = [&] {
    ++made;
    uint16_t bound = 0;
    return Listen(Interface::kLoopback, port, &bound);
  };
  for (int i = 1; i <= 2; ++i) {
    auto one = SharedPort::Open("here", listen);
    auto two = SharedPort::Open("here", listen);
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_EQ(one->get(), two->get());
    EXPECT_EQ(made, i);
    EXPECT_EQ(SharedPort::Open("there", listen).status().cause().sys_errno, EADDRINUSE);
    made = i;
  }
}

TEST(SharedPort, AGreetingGoesToItsTakerUntilThatIsRemoved) {
  SharedPort port{Fd()};
  std::string taken;
  const auto none = [] { return Fd(); };
  const uint64_t a = port.Add("a", [&](Fd, Bytes greeting) { taken += "a" + greeting; });
  port.Add("b", [&](Fd, Bytes greeting) { taken += "b" + greeting; });
  EXPECT_TRUE(port.Hand("b", none, "1"));
  EXPECT_TRUE(port.Hand("a", none, "2"));
  EXPECT_FALSE(port.Hand("c", none, "3"));
  port.Remove(a);
  EXPECT_FALSE(port.Hand("a", none, "4"));
  EXPECT_EQ(taken, "b1a2");
}

// Rank 0 is in all inits before any other rank comes; the others come in another order.
TEST(SharedPort, ContextsThatAreInInitAtOnceMeetTheirOwnRanks) {
  const uint16_t port = FreePort();
  constexpr int32_t kContexts = 8, kSize = 3;
  std::vector<std::string> jobs;
  for (int32_t c = 0; c < kContexts; ++c) jobs.push_back(NewJob());
  std::vector<std::shared_ptr<Group>> groups(kContexts * kSize);
  OnAll(kContexts * kSize, [&](int32_t i) {
    const int32_t rank = i % kSize;
    const int32_t context = rank == 0 ? i / kSize : kContexts - 1 - i / kSize;
    auto made = Group::Create(By(port, rank, kSize, jobs[static_cast<size_t>(context)]));
    ASSERT_TRUE(made.ok()) << made.status().message();
    groups[static_cast<size_t>(context * kSize + rank)] = *made;
  });
  OnAll(kContexts * kSize, [&](int32_t i) {
    std::string sum;
    ASSERT_TRUE(groups[static_cast<size_t>(i)]);
    EXPECT_TRUE(SumOfRanks(*groups[static_cast<size_t>(i)], 1, &sum).ok());
  });
}

TEST(SharedPort, ContextsOneAfterAnotherAndASecondWhileTheFirstLives) {
  const uint16_t port = FreePort();
  const std::string job = NewJob();
  for (int i = 0; i < 3; ++i) {  // the same job id again: a new init of one process
    const std::string beside = NewJob();
    OnAll(2, [&](int32_t rank) {
      auto first = Group::Create(By(port, rank, 2, job));
      ASSERT_TRUE(first.ok()) << first.status().message();
      auto second = Group::Create(By(port, rank, 2, beside));
      ASSERT_TRUE(second.ok()) << second.status().message();
      uint16_t bound = 0;  // nobody listens once all have come
      if (rank == 0) {
        EXPECT_TRUE(Listen(Interface::kAll, port, &bound).ok());
      }
      for (Group* group : {first->get(), second->get()}) {
        std::string sum;
        EXPECT_TRUE(SumOfRanks(*group, 1, &sum).ok());
      }
    });
  }
}

// A worker that its launcher forgot: same port, same token, another restart count in the job id.
TEST(SharedPort, AWorkerOfAnEarlierRestartIsRefusedWithTheReason) {
  const uint16_t port = FreePort();
  const std::string job = NewJob();
  OnAll(2, [&](int32_t rank) {
    // Rank 1 of the restart never comes.
    GroupOptions o = By(port, rank, 2, rank == 0 ? job + " restart 1" : job + " restart 0");
    o.contract_timeout = Millis(800);
    const Status status = Group::Create(std::move(o)).status();
    EXPECT_EQ(status.code(), Code::kParticipants);
    if (rank == 0) {
      EXPECT_TRUE(Has(status, "missing: rank 1")) << status.message();
    } else {
      EXPECT_TRUE(Has(status, "another job, restart or context")) << status.message();
      EXPECT_TRUE(Has(status, job + " restart 0")) << status.message();
    }
  });
}

TEST(SharedPort, AnotherTokenIsSaidToBeOne) {
  const uint16_t port = FreePort();
  const std::string job = NewJob();
  OnAll(2, [&](int32_t rank) {
    GroupOptions o = By(port, rank, 2, job);
    o.contract_timeout = Millis(800);
    if (rank == 1) o.identity->token = "guessed";
    const Status status = Group::Create(std::move(o)).status();
    EXPECT_EQ(status.code(), Code::kParticipants);
    if (rank == 1) {
      EXPECT_TRUE(Has(status, "CKPT_TOKEN")) << status.message();
    }
  });
}

}  // namespace
}  // namespace ckpt
