// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes between ranks: any amount in chunks, early askers, slow readers, errors, ends.
#include "comm/exchange.h"

#include <gtest/gtest.h>

#include <atomic>

#include "comm/bootstrap.h"
#include "unit/comm/world.h"

namespace ckpt {
namespace {

using namespace testing;  // NOLINT

char ByteAt(int32_t rank, uint64_t offset) {
  return static_cast<char>(static_cast<uint64_t>(rank) * 7 + offset * 31 + (offset >> 10));
}

// Serves the bytes of ByteAt; a request is "offset size".
Group::Provider Pattern(int32_t rank) {
  return [rank](std::string_view request, std::string* reply) {
    unsigned long long offset = 0, size = 0;
    if (std::sscanf(std::string(request).c_str(), "%llu %llu", &offset, &size) != 2) {
      return Status(Code::kInternal, "bad request");
    }
    for (uint64_t i = 0; i < size; ++i) reply->push_back(ByteAt(rank, offset + i));
    return Status();
  };
}

Status Fetch(Group& group, uint64_t round, int32_t peer, uint64_t total, uint64_t chunk,
             std::string* out) {
  out->assign(total, '\0');
  for (uint64_t at = 0; at < total; at += chunk) {
    const uint64_t n = std::min(chunk, total - at);
    CKPT_RETURN_IF_ERROR(group.Ask(round, peer, Cat(at, " ", n), out->data() + at, n));
  }
  return Status();
}

TEST(Exchange, F03_ThreeRanksGiveOneMebibyteAndOneByteInChunksOfOneKibibyte) {
  World world(4);
  ASSERT_TRUE(world.ok());
  constexpr uint64_t kTotal = (1 << 20) + 1;
  world.All([](int32_t rank, Group& group) {
    auto round = group.Arrive(Save(1), Status());
    ASSERT_TRUE(round.ok());
    group.StartServing(*round, Pattern(rank));
    if (rank == 0) {
      OnAll(3, [&](int32_t i) {
        const int32_t peer = i + 1;
        std::string got;
        const Status status = Fetch(group, *round, peer, kTotal, 1024, &got);
        ASSERT_TRUE(status.ok()) << status.message();
        for (uint64_t at = 0; at < kTotal; ++at) ASSERT_EQ(got[at], ByteAt(peer, at));
      });
      std::string own;  // a rank may ask itself
      EXPECT_TRUE(Fetch(group, *round, 0, 5, 2, &own).ok());
    }
    group.Contribute(*round, 1, Status(), "", false);
    if (rank == 0) {
      ASSERT_TRUE(group.Collect(*round, 1).ok());
      group.Publish(*round, 1, Status(), {}, true);
    }
    EXPECT_TRUE(group.Await(*round, 1).ok());
    group.StopServing(*round);
  });
}

// One server and its clients, without a group.
struct Pair {
  explicit Pair(Millis stall = Millis(20000)) {
    EXPECT_TRUE(StartAuth().ok());
    uint16_t port = 0;
    auto listening = Listen(Interface::kLoopback, 0, &port);
    EXPECT_TRUE(listening.ok());
    endpoint = {"127.0.0.1", port};
    credentials = {SecretFromToken("t"), "job", 5};
    server = std::make_unique<ExchangeServer>(std::move(*listening), credentials, 0);
    client =
        std::make_unique<ExchangeClient>(std::vector<Endpoint>{endpoint}, credentials, 1, stall);
  }
  Status Ask(uint64_t round, std::string_view request, std::string* out, size_t n) {
    out->assign(n, '\0');
    return client->Ask(round, 0, request, out->data(), n, [] { return false; });
  }
  Endpoint endpoint;
  Credentials credentials;
  std::unique_ptr<ExchangeServer> server;
  std::unique_ptr<ExchangeClient> client;
};

ExchangeServer::Provider Echo() {
  return [](std::string_view request, std::string* reply) {
    *reply = request;
    return Status();
  };
}

TEST(Exchange, AnEarlyAskerWaitsForTheServer) {
  Pair pair;
  std::atomic<int> waited{0};
  std::string out(2, '\0');
  std::thread asker([&] {
    const Status status = pair.client->Ask(7, 0, "hi", out.data(), 2, [&] {
      ++waited;
      return false;
    });
    EXPECT_TRUE(status.ok()) << status.message();
  });
  while (waited < 3) std::this_thread::yield();  // it waits
  pair.server->Start(6, Echo());                 // not its round yet
  while (waited < 6) std::this_thread::yield();
  pair.server->Start(7, Echo());
  asker.join();
  EXPECT_EQ(out, "hi");
  pair.server->Stop(6);
  pair.server->Stop(7);
}

TEST(Exchange, ThePeersOwnErrorComesBack) {
  Pair pair;
  pair.server->Start(
      1, [](std::string_view, std::string*) { return Status(Code::kCorrupt, "block 3 of model"); });
  std::string out;
  const Status status = pair.Ask(1, "x", &out, 4);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.message(), "block 3 of model");
  pair.server->Stop(1);
}

TEST(Exchange, AReplyOfTheWrongSizeIsAnError) {
  Pair pair;
  pair.server->Start(1, Echo());
  std::string out;
  EXPECT_FALSE(pair.Ask(1, "abc", &out, 4).ok());
  EXPECT_TRUE(pair.Ask(1, "abcd", &out, 4).ok());
  EXPECT_EQ(out, "abcd");
  pair.server->Stop(1);
}

TEST(Exchange, AClosedRoundEndsTheWait) {
  Pair pair;
  std::atomic<bool> closed{false};
  std::string out(1, '\0');
  std::thread asker([&] {
    const Status status = pair.client->Ask(1, 0, "x", out.data(), 1, [&] { return closed.load(); });
    EXPECT_EQ(status.code(), Code::kComm);
    EXPECT_EQ(status.cause().rank, 0);
  });
  closed = true;
  asker.join();
}

TEST(Exchange, SilenceEndsTheWaitAndNamesThePeer) {
  Pair pair(Millis(150));
  std::string out;
  const Status status = pair.Ask(1, "x", &out, 1);
  EXPECT_EQ(status.code(), Code::kComm);
  EXPECT_NE(status.message().find("rank 0"), std::string::npos) << status.message();
}

TEST(Exchange, ConnectionsOutliveRoundsOrAreReplaced) {
  Pair pair;
  std::string out;
  for (uint64_t round = 1; round < 20; ++round) {
    pair.server->Start(round, Echo());
    EXPECT_TRUE(pair.Ask(round, "abc", &out, 3).ok());
    pair.server->Stop(round);
  }
}

TEST(Exchange, ASlowReaderDelaysNobodyElse) {
  Pair pair;
  constexpr size_t kBig = 8 << 20;
  pair.server->Start(1, [](std::string_view request, std::string* reply) {
    *reply = request == "big" ? std::string(kBig, 'b') : std::string(request);
    return Status();
  });
  const Patience patience{Millis(20000), {}};
  auto slow = Connect(pair.endpoint, patience);
  ASSERT_TRUE(slow.ok());
  ClientHandshake handshake(pair.credentials, 2, 0, Purpose::kExchange);
  ASSERT_TRUE(ProveSecret(slow->get(), &handshake, patience).ok());
  WireWriter w;
  w.U64(1);
  w.U64(kBig);
  w.Str("big");
  ASSERT_TRUE(SendFrame(slow->get(), w.bytes(), patience).ok());
  char first[5];  // its reply is under way, and it reads no further
  ASSERT_TRUE(ReceiveAll(slow->get(), first, sizeof first, patience).ok());
  std::string out;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(pair.Ask(1, "small", &out, 5).ok());
  std::string rest(kBig, '\0');
  EXPECT_TRUE(ReceiveAll(slow->get(), rest.data(), rest.size(), patience).ok());
  EXPECT_EQ(rest, std::string(kBig, 'b'));
  pair.server->Stop(1);
}

TEST(Exchange, ManyThreadsAskAtOnceWithinBoundedMemory) {
  Pair pair;
  std::atomic<int> served{0};
  constexpr size_t kBytes = 12 << 20;
  pair.server->Start(1, [&](std::string_view, std::string* reply) {
    ++served;
    reply->assign(kBytes, 'x');
    return Status();
  });
  OnAll(6, [&](int32_t) {
    std::string out;
    EXPECT_TRUE(pair.Ask(1, "", &out, kBytes).ok());
    EXPECT_EQ(out.back(), 'x');
  });
  EXPECT_EQ(served, 6);
  pair.server->Stop(1);
}

TEST(Exchange, StopReturnsOnlyWhenNoProviderRuns) {
  Pair pair;
  std::atomic<bool> entered{false}, release{false}, running{false};
  pair.server->Start(1, [&](std::string_view, std::string*) {
    running = true;
    entered = true;
    while (!release) std::this_thread::yield();
    running = false;
    return Status(Code::kIo, "late");
  });
  std::thread asker([&] {
    std::string out;
    EXPECT_FALSE(pair.Ask(1, "x", &out, 1).ok());
  });
  while (!entered) std::this_thread::yield();
  std::thread stopper([&] {
    pair.server->Stop(1);
    EXPECT_FALSE(running);
  });
  release = true;
  stopper.join();
  pair.server.reset();
  asker.join();
}

}  // namespace
}  // namespace ckpt
