// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section J: another number of ranks (J01), state that belongs to one rank (J03).
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "process/process.h"

namespace ckpt_test {
namespace {

enum class Cut { kRows, kColumns };

// W [10,6] cut by rows or columns, opt [60] flat, a scalar and a replicated tensor.
struct Model {
  Model(Rank& rank, Ctx& ctx, Cut cut) : state(ctx) {
    const Part part = Even(cut == Cut::kRows ? 10 : 6, rank.id(), rank.size());
    const Part flat = Even(60, rank.id(), rank.size());
    offset = cut == Cut::kRows ? Dims{part.offset, 0} : Dims{0, part.offset};
    extent = cut == Cut::kRows ? Dims{part.count, 6} : Dims{10, part.count};
    flat_offset = flat.offset;
    w = BoxValues(6, offset, extent);
    opt = Values(flat.count, static_cast<float>(1000 + flat.offset));
    state.Box("W", {10, 6}, offset, extent, w).Flat("opt", {60}, flat.offset, opt);
    state.Whole("scalar", {}, scalar).Whole("replicated", {7}, replicated);
  }
  void Clear() {
    for (auto* v : {&w, &opt, &scalar, &replicated}) std::fill(v->begin(), v->end(), kFill);
  }
  void ExpectFilled() const {
    EXPECT_EQ(w, BoxValues(6, offset, extent));
    EXPECT_EQ(opt,
              Values(static_cast<int64_t>(opt.size()), static_cast<float>(1000 + flat_offset)));
    EXPECT_EQ(scalar, std::vector<float>{3.25f});
    EXPECT_EQ(replicated, Values(7, 70));
  }
  Dims offset, extent;
  int64_t flat_offset = 0;
  std::vector<float> w, opt, scalar = {3.25f}, replicated = Values(7, 70);
  State state;
};

using OtherNumbersOfRanks = ForAnyRanks;
INSTANTIATE_TEST_SUITE_P(K09, OtherNumbersOfRanks, testing::Values(1, 4), RankCount);

TEST_P(OtherNumbersOfRanks, J01_WhatWasSavedLoadsOnAnyNumberInAnySplit) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result saved = launch::Run({.ranks = GetParam(), .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    Model model(rank, ctx, Cut::kRows);
    EXPECT_OK(Save(ctx, model.state, 1));
  });
  ASSERT_TRUE(saved.ok()) << saved.report();
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const Cut cut : {Cut::kRows, Cut::kColumns}) {
      const Result r = launch::Run({.ranks = ranks, .deadline_s = 30}, [&](Rank& rank) {
        Ctx ctx({.root = root, .timeout_ms = 10'000});
        ASSERT_INIT(ctx);
        Model model(rank, ctx, cut);
        model.Clear();
        EXPECT_OK(Load(ctx, model.state));
        model.ExpectFilled();
      });
      EXPECT_TRUE(r.ok()) << ranks << " ranks\n" << r.report();
    }
  }
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

std::vector<uint8_t> Rng(int rank) {
  return std::vector<uint8_t>(16, static_cast<uint8_t>(0xA0 + rank));
}

TEST(PerRankState, J03_EveryRankGetsItsOwnBlobBackByItsGlobalRank) {
  Scratch scratch;
  const std::string root = scratch / "root";
  // Two "nodes" of two ranks each: the ranks meet at a port, as over several hosts.
  const launch::Env nodes = {{"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"CKPT_PORT", std::to_string(FreePort())},
                             {"CKPT_TOKEN", "a secret of this job"}};
  const std::vector<launch::Env> local = {
      {{"LOCAL_RANK", "0"}}, {{"LOCAL_RANK", "1"}}, {{"LOCAL_RANK", "0"}}, {{"LOCAL_RANK", "1"}}};
  const Result saved =
      launch::Run({.ranks = 4, .deadline_s = 30, .env = nodes, .rank_env = local}, [&](Rank& rank) {
        Ctx ctx({.root = root});
        ASSERT_INIT(ctx);
        const std::string rendezvous = std::string(std::getenv("XDG_RUNTIME_DIR")) + "/ckpt";
        EXPECT_FALSE(std::filesystem::exists(rendezvous));  // where ranks of one host meet
        State state(ctx);
        std::vector<uint8_t> rng = Rng(rank.id());
        state.Blob(CKPT_BLOB_PER_RANK, "rng", rng);
        EXPECT_OK(Save(ctx, state, 1));
        rng.assign(16, 0);
        EXPECT_OK(Load(ctx, state));
        EXPECT_EQ(rng, Rng(rank.id()));
      });
  ASSERT_TRUE(saved.ok()) << saved.report();
  const auto blobs = safetensors::Read(StepPath(root, 1) + "/blobs.safetensors");
  for (int i = 0; i < 4; ++i) {
    const auto& entry = blobs.tensors.at("rank/00000" + std::to_string(i) + "/rng");
    EXPECT_EQ(entry.dtype, "U8");
    EXPECT_EQ(entry.bytes, std::string(16, static_cast<char>(0xA0 + i)));
  }
}

TEST(PerRankState, J03_ARankThatSavedNoneIsToldSoAndGetsNobodyElses) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result saved = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    State state(ctx);
    std::vector<uint8_t> rng = Rng(rank.id());
    state.Blob(CKPT_BLOB_PER_RANK, "rng", rng);
    EXPECT_OK(Save(ctx, state, 1));
  });
  ASSERT_TRUE(saved.ok()) << saved.report();
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<uint8_t> rng(16, 0xEE);
    uint64_t actual = 0;
    {
      State state(ctx);
      EXPECT_OK(
          state.TryBlob(CKPT_BLOB_PER_RANK, "rng", rng.data(), 16, CKPT_BLOB_OPTIONAL, &actual));
      EXPECT_OK(Load(ctx, state));
      EXPECT_EQ(rng, rank.id() < 2 ? Rng(rank.id()) : std::vector<uint8_t>(16, 0xEE));
      EXPECT_EQ(actual, rank.id() < 2 ? 16 : UINT64_MAX);
    }
    State strict(ctx);
    EXPECT_OK(strict.TryBlob(CKPT_BLOB_PER_RANK, "rng", rng.data(), 16));
    const Outcome o = Load(ctx, strict);
    EXPECT_STATUS(o, CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(o.cause.rank, 2) << o;
    EXPECT_SAYS(o, "rng");
    Publish(rank, "strict", o);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "strict");
}

}  // namespace
}  // namespace ckpt_test
