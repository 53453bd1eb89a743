// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Whoever does not know the secret is shown the door, and harms nobody.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <random>

#include "comm/auth.h"
#include "comm/secret_file.h"
#include "comm/socket.h"
#include "unit/comm/world.h"

namespace ckpt {
namespace {

using namespace testing;  // NOLINT

const Patience kPatience{Millis(20000), {}};

// True once the other side has closed.
bool IsClosed(int fd) {
  char c;
  Status status;
  while ((status = ReceiveAll(fd, &c, 1, kPatience)).ok()) {
  }
  return status.cause().sys_errno != ETIMEDOUT;
}

uint16_t PortOf(const std::string& job) {
  for (;;) {
    const std::string folder =
        RuntimeFolder([](const char* n) -> const char* { return ::getenv(n); });
    const auto found = ReadRendezvous(folder, HashName(job));
    if (found.ok() && found->has_value()) return (*found)->port;
    std::this_thread::yield();
  }
}

TEST(Stranger, NoiseIsDroppedAtOnceAndTheJobGoesOn) {
  ASSERT_TRUE(StartAuth().ok());
  const std::string job = NewJob();
  Status first;
  std::shared_ptr<Group> zero;
  std::thread rank0([&] {
    auto g = Group::Create(Options(0, 2, job));
    first = g.status();
    if (g.ok()) zero = *g;
  });
  const Endpoint door{"127.0.0.1", PortOf(job)};
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    auto fd = Connect(door, kPatience);
    ASSERT_TRUE(fd.ok());
    std::string noise(41 + random() % 400, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    if (i % 3 == 0) noise.replace(0, 4, std::string("\x25\0\0\0", 4));  // a good length
    (void)SendAll(fd->get(), noise, kPatience);
    EXPECT_TRUE(IsClosed(fd->get())) << i;
  }
  // Some say nothing at all, and stay.
  std::vector<Fd> silent;
  for (int i = 0; i < 20; ++i) {
    auto fd = Connect(door, kPatience);
    if (fd.ok()) silent.push_back(std::move(*fd));
  }
  auto one = Group::Create(Options(1, 2, job));
  rank0.join();
  ASSERT_TRUE(one.ok()) << one.status().message();
  ASSERT_TRUE(first.ok()) << first.message();
  std::thread peer([&] {
    std::string sum;
    EXPECT_TRUE(SumOfRanks(*zero, 1, &sum).ok());
  });
  std::string sum;
  EXPECT_TRUE(SumOfRanks(**one, 1, &sum).ok());
  peer.join();
}

TEST(Stranger, AHugeLengthIsMalformed) {
  ASSERT_TRUE(StartAuth().ok());
  const std::string job = NewJob();
  std::thread rank0([&] {
    GroupOptions o = Options(0, 2, job);
    o.contract_timeout = Millis(2000);
    EXPECT_FALSE(Group::Create(std::move(o)).ok());
  });
  auto fd = Connect({"127.0.0.1", PortOf(job)}, kPatience);
  ASSERT_TRUE(fd.ok());
  EXPECT_TRUE(SendAll(fd->get(), "\xff\xff\xff\xff", kPatience).ok());
  EXPECT_TRUE(IsClosed(fd->get()));
  rank0.join();
}

}  // namespace
}  // namespace ckpt
