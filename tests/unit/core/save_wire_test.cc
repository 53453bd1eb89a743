// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/save.h"

namespace ckpt {
namespace {

SaveOrder SomeOrder() {
  SaveOrder order;
  order.staging = ".staging-1";
  order.files = {{"model.safetensors", 8192}, {"config.json", 17}};
  order.hash_shards = {0, 7};
  PlanExtent extent;
  extent.range = {0, 8192};
  extent.header_bytes = 4096;
  order.plan.extents.push_back(extent);
  return order;
}

TEST(SaveWire, AnOrderArrivesAsItWasSent) {
  Result<SaveOrder> got = DecodeOrder(EncodeOrder(SomeOrder()));
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->staging, ".staging-1");
  EXPECT_EQ(got->files, SomeOrder().files);
  EXPECT_EQ(got->hash_shards, SomeOrder().hash_shards);
  ASSERT_EQ(got->plan.extents.size(), 1u);
  EXPECT_EQ(got->plan.extents[0].header_bytes, 4096u);
}

TEST(SaveWire, AVoteArrivesAsItWasSent) {
  SaveVote vote;
  vote.contributions = {{1, 2, 3}, {}};
  vote.shard_hashes = {{0xdeadbeef}};
  Result<SaveVote> got = DecodeVote(EncodeVote(vote));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->contributions, vote.contributions);
  EXPECT_EQ(got->shard_hashes, vote.shard_hashes);
}

TEST(SaveWire, EveryTruncationIsRefused) {
  const Bytes order = EncodeOrder(SomeOrder());
  for (size_t n = 0; n < order.size(); ++n) {
    EXPECT_FALSE(DecodeOrder(std::string_view(order).substr(0, n)).ok()) << n;
  }
  const Bytes vote = EncodeVote({{{1, 2}}, {{3}}});
  for (size_t n = 0; n < vote.size(); ++n) {
    EXPECT_FALSE(DecodeVote(std::string_view(vote).substr(0, n)).ok()) << n;
  }
  EXPECT_FALSE(DecodeVote(vote + "x").ok()) << "nothing may follow";
  const Bytes probe = EncodeProbeOrder({"nonce", true});
  EXPECT_TRUE(DecodeProbeOrder(probe).has_value());
  for (size_t n = 0; n < probe.size(); ++n) {
    EXPECT_FALSE(DecodeProbeOrder(std::string_view(probe).substr(0, n)).has_value()) << n;
  }
}

TEST(SaveWire, AHugeCountIsRefusedBeforeAnyAllocation) {
  WireWriter w;
  w.U64(UINT64_MAX / 8);
  EXPECT_EQ(DecodeVote(w.bytes()).status().code(), Code::kComm);
}

TEST(SaveWire, APullRequestIsChecked) {
  Result<PullRequest> got = DecodePull(EncodePull({3, {10, 20}}));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->shard, 3u);
  EXPECT_EQ(got->range, (ByteRange{10, 20}));
  EXPECT_FALSE(DecodePull(EncodePull({3, {20, 10}})).ok());
  EXPECT_FALSE(DecodePull("short").ok());
}

TEST(Metadata, LinesBecomePairs) {
  Result<std::map<std::string, std::string>> got = ParseMetadata("a=1\nb=x=y\n\n");
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->at("a"), "1");
  EXPECT_EQ(got->at("b"), "x=y");
}

TEST(Metadata, ABadLineIsNamed) {
  for (const char* text :
       {"a=1\nnothing", "a=1\n=2", "a=1\na=2", "a=1\nformat=tf", "a=1\nb=\xff"}) {
    const Status status = ParseMetadata(text).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(status.message().find("line 2"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace ckpt
