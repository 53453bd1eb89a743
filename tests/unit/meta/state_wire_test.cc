// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank's state as bytes: what is sent arrives, and nothing else is believed.
#include <gtest/gtest.h>

#include <random>

#include "meta/meta.h"

namespace ckpt {
namespace {

RankState Example() {
  RankState s;
  s.tensors = {*MakeTensor("model", "w", kF32, {4, 6}), *MakeTensor("optim", "m", kBF16, {}),
               *MakeTensor("model", "none", kI64, {0, 3})};
  s.shards = {{0, *MakeBox(s.tensors[0], {0, 2}, {4, 3})}, {1, MakeWhole(s.tensors[1])}, {2, {}}};
  s.blobs = {{"rng", BlobScope::kPerRank, 16, 0x1234, 2},
             {"config.json", BlobScope::kFile, 9, 1, 0}};
  s.may_write = false;
  return s;
}

Code Decoded(const RankState& s) { return DecodeRankState(EncodeRankState(s)).status().code(); }

TEST(StateWire, AStateArrivesAsItWasSent) {
  const RankState sent = Example();
  const auto got = DecodeRankState(EncodeRankState(sent));
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->tensors, sent.tensors);
  EXPECT_FALSE(got->may_write);
  ASSERT_EQ(got->shards.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got->shards[i].tensor, sent.shards[i].tensor);
    EXPECT_EQ(got->shards[i].geometry, sent.shards[i].geometry);
  }
  ASSERT_EQ(got->blobs.size(), 2u);
  EXPECT_EQ(got->blobs[1].name, "config.json");
  EXPECT_EQ(got->blobs[1].scope, BlobScope::kFile);
  EXPECT_EQ(got->blobs[0].bytes, 16u);
  EXPECT_EQ(got->blobs[0].crc32c, 0x1234u);
  EXPECT_EQ(got->blobs[0].flags, 2u);
  EXPECT_EQ(Decoded(RankState{}), Code::kOk);
}

TEST(StateWire, EveryTruncationAndEveryAppendedByteIsRefused) {
  const Bytes bytes = EncodeRankState(Example());
  for (size_t n = 0; n < bytes.size(); ++n) {
    ASSERT_EQ(DecodeRankState(bytes.substr(0, n)).status().code(), Code::kComm) << n;
  }
  EXPECT_EQ(DecodeRankState(bytes + "x").status().code(), Code::kComm);
}

TEST(StateWire, RandomDamageNeverCrashesAndNeverYieldsABadShard) {
  const Bytes good = EncodeRankState(Example());
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    std::mt19937_64 rng(seed);
    Bytes bytes = good;
    for (uint64_t i = 0; i <= rng() % 3; ++i)
      bytes[rng() % bytes.size()] = static_cast<char>(rng());
    const auto s = DecodeRankState(bytes);
    if (!s.ok()) {
      ASSERT_EQ(s.status().code(), Code::kComm);
      continue;
    }
    for (const auto& shard : s->shards) {
      ASSERT_LT(shard.tensor, s->tensors.size()) << "seed " << seed;
      ASSERT_TRUE(CheckGeometry(s->tensors[shard.tensor], shard.geometry).ok()) << "seed " << seed;
    }
  }
}

TEST(StateWire, HostileCountsDimensionsAndShapesAreRefused) {
  WireWriter w;
  w.U8(1);
  w.U64(~uint64_t{0});
  EXPECT_EQ(DecodeRankState(w.bytes()).status().code(), Code::kComm);

  RankState many = Example();
  many.tensors[0].shape = Dims(65, 1);
  EXPECT_EQ(Decoded(many), Code::kComm);
  RankState huge = Example();
  huge.tensors[0].shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(Decoded(huge), Code::kComm);
  RankState name = Example();
  name.tensors[0].group = "../../etc";
  EXPECT_EQ(Decoded(name), Code::kComm);
  RankState index = Example();
  index.shards[0].tensor = 3;
  EXPECT_EQ(Decoded(index), Code::kComm);
  RankState outside = Example();
  outside.shards[0].geometry.extent[1] = 5;
  EXPECT_EQ(Decoded(outside), Code::kComm);
  RankState scope = Example();
  scope.blobs[0].scope = static_cast<BlobScope>(3);
  EXPECT_EQ(Decoded(scope), Code::kComm);
}

}  // namespace
}  // namespace ckpt
