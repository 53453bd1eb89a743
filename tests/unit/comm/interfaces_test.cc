// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CKPT_INTERFACE, CKPT_PORT and MASTER_ADDR: what works, and what the errors say when it does not.
#include "comm/interfaces.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>

#include "comm/socket.h"
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

// A world whose ranks meet as those of several hosts do.
std::function<void(int32_t, GroupOptions&)> By(const std::string& address, uint16_t port,
                                               const std::string& interface = "") {
  return [=](int32_t, GroupOptions& o) {
    o.identity->one_host = false;
    o.identity->address = address;
    o.identity->port = port;
    o.identity->token = "secret";
    o.identity->interface = interface;
  };
}

TEST(Interfaces, AnInterfaceIsNamedOrGivenByAddress) {
  for (const char* wanted : {"lo", "127.0.0.1"}) {
    const auto found = AddressOfInterface(wanted, "");
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(*found, "127.0.0.1");
  }
}

TEST(Interfaces, OfTwoFamiliesThatOfTheCoordinatorIsTaken) {
  const auto six = AddressOfInterface("[::1]", "");
  if (!six.ok()) GTEST_SKIP() << "NOT RUN: this host has no IPv6: " << six.status().message();
  EXPECT_EQ(*six, "::1");
  EXPECT_EQ(*AddressOfInterface("lo", "::1"), "::1");
  EXPECT_EQ(*AddressOfInterface("lo", "fd00::1"), "::1");
  EXPECT_EQ(*AddressOfInterface("lo", "10.0.0.1"), "127.0.0.1");
}

TEST(Interfaces, WhatThisHostDoesNotHaveIsRefusedWithWhatItHas) {
  for (const char* wanted : {"nosuch0", "192.0.2.1"}) {
    const Status status = AddressOfInterface(wanted, "").status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.cause().name, "CKPT_INTERFACE");
    for (const char* part : {"CKPT_INTERFACE", wanted, "lo 127.0.0.1"}) {
      EXPECT_TRUE(Has(status, part)) << status.message();
    }
  }
}

TEST(Interfaces, BracketsAroundIpv6AreTakenOff) {
  EXPECT_EQ(WithoutBrackets("[fd00::1]"), "fd00::1");
  EXPECT_EQ(WithoutBrackets("fd00::1"), "fd00::1");
  EXPECT_EQ(WithoutBrackets("host"), "host");
  EXPECT_EQ(WithoutBrackets("[]"), "[]");
  const std::map<std::string, std::string> env = {{"RANK", "0"},           {"WORLD_SIZE", "2"},
                                                  {"CKPT_PORT", "4711"},   {"CKPT_TOKEN", "t"},
                                                  {"CKPT_JOB_ID", "job"},  {"MASTER_ADDR", "[::1]"},
                                                  {"CKPT_INTERFACE", "lo"}};
  const auto id = IdentityFromEnvironment([&env](const char* name) {
    const auto it = env.find(name);
    return it == env.end() ? nullptr : it->second.c_str();
  });
  ASSERT_TRUE(id.ok()) << id.status().message();
  EXPECT_EQ(id->address, "::1");
  EXPECT_EQ(id->interface, "lo");
}

TEST(Interfaces, RanksMeetOverIpv6) {
  uint16_t port = 0;
  if (!Listen("::1", 0, &port).ok()) GTEST_SKIP() << "NOT RUN: this host has no IPv6";
  World world(3, By("::1", port, "::1"));
  ASSERT_TRUE(world.ok()) << world.status[0].message() << world.status[1].message();
  world.All([](int32_t, Group& group) {
    std::string sum;
    EXPECT_TRUE(SumOfRanks(group, 1, &sum).ok());
  });
}

TEST(Interfaces, AMissingOneIsRefusedOnTheRankThatNamesIt) {
  GroupOptions o = Options(0, 2, NewJob());
  By("127.0.0.1", FreePort(), "nosuch0")(0, o);
  EXPECT_TRUE(Has(Group::Create(std::move(o)).status(), "nosuch0"));
}

TEST(Port, OneInUseIsRefusedAtOnceAndItsHolderNamed) {
  uint16_t port = 0;
  auto taken = Listen(Interface::kAll, 0, &port);
  ASSERT_TRUE(taken.ok());
  GroupOptions o = Options(0, 2, NewJob());
  By("127.0.0.1", port)(0, o);
  const TimePoint start = Clock::now();
  const Status status = Group::Create(std::move(o)).status();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(status.code(), Code::kComm);
  EXPECT_EQ(status.cause().sys_errno, EADDRINUSE);
  EXPECT_EQ(status.cause().rank, 0);
  for (const std::string& part : {std::string("rank 0"), std::string("CKPT_PORT"), Cat(port),
                                  Cat("this process itself (", ::getpid(), ") holds it")}) {
    EXPECT_TRUE(Has(status, part)) << part << "\n" << status.message();
  }
}

TEST(Port, ACoordinatorThatIsNotThereIsNamedWithAddressPortAndErrno) {
  for (const auto& [address, shown] : {std::pair("127.0.0.1", "127.0.0.1:"), {"::1", "[::1]:"}}) {
    const uint16_t port = FreePort();
    GroupOptions o = Options(1, 2, NewJob());
    By(address, port)(1, o);
    o.contract_timeout = Millis(300);
    const Status status = Group::Create(std::move(o)).status();
    EXPECT_EQ(status.code(), Code::kParticipants);
    EXPECT_EQ(status.cause().rank, 0);
    EXPECT_EQ(status.cause().sys_errno, ECONNREFUSED) << status.message();
    EXPECT_TRUE(Has(status, Cat(shown, port))) << status.message();
    EXPECT_TRUE(Has(status, "Connection refused")) << status.message();
  }
}

// Another program has the port and accepts, but never answers.
TEST(Port, AHolderThatSaysNothingIsNoAnswer) {
  uint16_t port = 0;
  auto silent = Listen(Interface::kLoopback, 0, &port);
  ASSERT_TRUE(silent.ok());
  GroupOptions o = Options(1, 2, NewJob());
  By("127.0.0.1", port)(1, o);
  o.contract_timeout = Millis(300);
  const Status status = Group::Create(std::move(o)).status();
  EXPECT_EQ(status.code(), Code::kParticipants);
  EXPECT_EQ(status.cause().sys_errno, ETIMEDOUT);
  EXPECT_TRUE(Has(status, "no answer")) << status.message();
}

}  // namespace
}  // namespace ckpt
