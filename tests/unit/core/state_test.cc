// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/core.h"

namespace ckpt {
namespace {

float kData[64];

TensorSpec Spec(const std::string& name, Dims shape) {
  TensorSpec spec;
  spec.group = "model";
  spec.name = name;
  spec.dtype = kF32;
  spec.shape = std::move(shape);
  spec.data = kData;
  return spec;
}

BlobSpec Blob(const std::string& name, BlobScope scope) {
  BlobSpec spec;
  spec.name = name;
  spec.scope = scope;
  return spec;
}

// The code and the name in the cause that adding `spec` gives.
std::pair<Code, std::string> Refusal(const TensorSpec& spec) {
  State state;
  const Status status = state.AddTensor(spec).status();
  EXPECT_EQ(state.poison().code(), status.code()) << "a failed add must poison the state";
  return {status.code(), status.cause().name};
}

TEST(State, IdsCountFromZeroPerKind) {
  State state;
  EXPECT_EQ(*state.AddTensor(Spec("a", {4})), 0u);
  EXPECT_EQ(*state.AddTensor(Spec("b", {4})), 1u);
  EXPECT_EQ(*state.AddBlob(Blob("rng", BlobScope::kPerRank)), 0u);
  EXPECT_TRUE(state.poison().ok());
}

TEST(State, BadTensorsAreRefusedByName) {
  EXPECT_EQ(Refusal(Spec("", {4})).first, Code::kInvalidArgument);
  EXPECT_EQ(Refusal(Spec("__metadata__", {4})).first, Code::kInvalidArgument);
  EXPECT_EQ(Refusal(Spec("\xff\xfe", {4})).first, Code::kInvalidArgument);
  EXPECT_EQ(Refusal(Spec("w", {-1})), std::make_pair(Code::kInvalidArgument, std::string("w")));
  TensorSpec no_data = Spec("w", {4});
  no_data.data = nullptr;
  EXPECT_EQ(Refusal(no_data), std::make_pair(Code::kInvalidArgument, std::string("w")));
}

TEST(State, ABoxOutsideTheTensorIsRefused) {
  TensorSpec box = Spec("w", {4, 4});
  box.kind = TensorSpec::Kind::kBox;
  box.offset = {2, 0};
  box.extent = {3, 4};
  const Status status = State().AddTensor(box).status();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.cause().name, "w");
}

TEST(State, AnEmptyShardNeedsNoPointer) {
  TensorSpec flat = Spec("w", {4});
  flat.kind = TensorSpec::Kind::kFlat;
  flat.data = nullptr;
  EXPECT_TRUE(State().AddTensor(flat).ok());
  TensorSpec none = Spec("e", {0, 3});
  none.data = nullptr;
  EXPECT_TRUE(State().AddTensor(none).ok());
}

TEST(State, TheFirstFailedAddIsTheOneThatPoisons) {
  State state;
  EXPECT_FALSE(state.AddTensor(Spec("", {4})).ok());
  EXPECT_FALSE(state.AddTensor(Spec("w", {-2})).ok());
  EXPECT_EQ(state.poison().message(), State().AddTensor(Spec("", {4})).status().message());
}

TEST(State, SideFilesArePlainNamesThatAreNotOurs) {
  for (const char* name : {"", "a/b", "../x", ".hidden", "ckpt.json", "model.safetensors",
                           "model.safetensors.index.json", "\xff"}) {
    State state;
    EXPECT_EQ(state.AddBlob(Blob(name, BlobScope::kFile)).status().code(), Code::kInvalidArgument)
        << name;
  }
  EXPECT_TRUE(State().AddBlob(Blob("config.json", BlobScope::kFile)).ok());
  EXPECT_TRUE(State().AddBlob(Blob("a/b", BlobScope::kPerRank)).ok()) << "never a path";
}

TEST(State, ABlobIsAddedOncePerWriter) {
  State state;
  BlobSpec rng = Blob("rng", BlobScope::kPerRank);
  EXPECT_TRUE(state.AddBlob(rng).ok());
  rng.writer_rank = 3;
  EXPECT_TRUE(state.AddBlob(rng).ok()) << "another rank's copy, for a load";
  EXPECT_EQ(state.AddBlob(rng).status().code(), Code::kInvalidArgument);
}

TEST(State, UpdateTakesANewAddressForAKnownIdOnly) {
  State state;
  ASSERT_TRUE(state.AddTensor(Spec("w", {4})).ok());
  EXPECT_TRUE(state.UpdateTensor(0, kData + 4).ok());
  EXPECT_EQ(state.tensors()[0].memory.data, kData + 4);
  EXPECT_EQ(state.UpdateTensor(1, kData).code(), Code::kInvalidArgument);
  EXPECT_EQ(state.UpdateTensor(0, nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(state.UpdateBlob(0, nullptr, 0).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ckpt
