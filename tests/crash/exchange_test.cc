// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md F03: any amount of bytes travels to the rank that writes them, in pieces as small as one
// likes. Here, and not in tests/process, for the shim counts who writes.
#include <cstdlib>

#include "crash/crash.h"

namespace ckpt_test {
namespace {

// Three ranks, of which only rank 0 writes: a tensor and a blob of each go to it.
void EverythingToRank0(int64_t bytes, const std::string& chunk) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const auto byte = [](int64_t rank, int64_t i) {
    return static_cast<uint8_t>(i * 131 + (i >> 8) * 7 + rank * 29);
  };
  const launch::Options options{.ranks = 3, .deadline_s = 110};
  const Result r = launch::Run(options, [&](Rank& rank) {
    Ctx ctx({.root = root,
             .config = "limits.chunk_bytes=" + chunk + "\n",
             .timeout_ms = 60'000,
             .flags = rank.is(0) ? 0u : CKPT_INIT_NO_WRITE});
    ASSERT_INIT(ctx);
    std::vector<uint8_t> own(bytes), blob = {static_cast<uint8_t>(rank.id())};
    for (int64_t i = 0; i < bytes; ++i) own[i] = byte(rank.id(), i);
    State state(ctx);
    state.Add({.name = "of rank " + std::to_string(rank.id()),
               .shape = {bytes},
               .dtype = kU8,
               .data = own.data()});
    state.Blob(CKPT_BLOB_PER_RANK, "b", blob);
    rank.Barrier("filled");
    shim_reset(("root " + root + "\n").c_str());
    const Outcome o = Save(ctx, state, 1);
    EXPECT_OK(o);
    if (!rank.is(0)) {
      EXPECT_EQ(shim_events(), 0u) << "a rank that may not write did";
      EXPECT_EQ(o.result.bytes_written, 0u);
    }
    shim_reset("");
    std::fill(own.begin(), own.end(), 0);
    rank.Barrier("cleared");
    EXPECT_OK(Load(ctx, state));
    int64_t wrong = 0;
    for (int64_t i = 0; i < bytes; ++i) wrong += own[i] != byte(rank.id(), i);
    EXPECT_EQ(wrong, 0);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST(OneWriter, F03_ThreeTimesOneMiBAndAByteInPiecesOfOneKiB) {
  EverythingToRank0((1 << 20) + 1, "1KiB");
}

TEST(OneWriter, F03_PiecesThatDoNotDivideTheBytes) { EverythingToRank0(100'003, "208"); }

// The long form, 3 x 1.5 GiB: CKPT_LONG=1, with memory and disk for 9 GiB.
TEST(OneWriter, F03_MoreThanAnIntCountsToOneRank) {
  const int64_t bytes = std::getenv("CKPT_LONG") == nullptr ? (16 << 20) + 1 : (3ll << 29) + 1;
  EverythingToRank0(bytes, "16MiB");
}

}  // namespace
}  // namespace ckpt_test
