// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/load.h"

namespace ckpt {
namespace {

float kMemory[64];

TensorDesc Desc(const std::string& name, DType dtype, Dims shape) {
  return *MakeTensor("model", name, dtype, std::move(shape));
}

// A catalog of one group with f32 a[4], b[2,2] and rank 0's blob of 3 bytes.
Catalog SomeCatalog() {
  Catalog c;
  c.folder = "step-000000000005";
  c.record.step = 5;
  c.record.world_size = 1;
  c.record.groups["model"] = {"model.safetensors"};
  c.record.groups["blobs"] = {"blobs.safetensors"};
  FileLayout model;
  model.name = "model.safetensors";
  model.group = "model";
  model.tensors = {{Desc("_orig_mod.a", kF32, {4}), 4096}, {Desc("b", kF32, {2, 2}), 4112}};
  model.bytes = 4128;
  FileLayout blobs;
  blobs.name = "blobs.safetensors";
  TensorDesc rng;
  rng.name = "rank/000000/rng";
  rng.dtype = kU8;
  rng.shape = {3};
  rng.elem_bytes = 1;
  rng.bytes = 3;
  blobs.tensors = {{rng, 4096}};
  c.files = {model, blobs};
  return c;
}

void Want(State* state, const std::string& name, DType dtype, Dims shape, bool optional = false) {
  TensorSpec spec;
  spec.group = "model";
  spec.name = name;
  spec.dtype = dtype;
  spec.shape = std::move(shape);
  spec.data = kMemory;
  spec.optional = optional;
  ASSERT_TRUE(state->AddTensor(spec).ok());
}

Status Match(const State& state, LoadMatch* match, const LoadOptions& options = {}) {
  return MatchState(state, SomeCatalog(), options, 0, match);
}

TEST(LoadMatch, NamesThatAreThereAreWanted) {
  State state;
  Want(&state, "b", kF32, {2, 2});
  LoadMatch match;
  ASSERT_TRUE(Match(state, &match).ok());
  EXPECT_EQ(match.tensors, 1u);
  EXPECT_EQ(match.bytes, 16u);
  EXPECT_EQ(UnusedNames(SomeCatalog(), match.asked), std::vector<std::string>{"_orig_mod.a"});
}

TEST(LoadMatch, H08_AMissingNameHintsAtTheWrappersPrefix) {
  State state;
  Want(&state, "a", kF32, {4});
  LoadMatch match;
  const Status status = Match(state, &match);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.cause().name, "a");
  EXPECT_NE(status.message().find("_orig_mod.a"), std::string::npos) << status.message();
  EXPECT_EQ(match.missing, std::vector<std::string>{"a"});
}

TEST(LoadMatch, MissingIsNoErrorWhenAllowedOrOptional) {
  State state;
  Want(&state, "c", kF32, {4});
  LoadOptions allow;
  allow.allow_missing = true;
  LoadMatch match;
  EXPECT_TRUE(Match(state, &match, allow).ok());
  EXPECT_EQ(match.missing, std::vector<std::string>{"c"});
  State optional;
  Want(&optional, "c", kF32, {4}, true);
  EXPECT_TRUE(Match(optional, &match).ok());
}

TEST(LoadMatch, G15_AnotherDtypeIsNeverCut) {
  State state;
  Want(&state, "b", kBF16, {2, 2});
  LoadMatch match;
  const Status status = Match(state, &match);
  EXPECT_EQ(status.code(), Code::kDtype);
  EXPECT_EQ(status.cause().field, "dtype");
  EXPECT_NE(status.message().find("BF16"), std::string::npos);
}

TEST(LoadMatch, G16_AnotherShapeOfAsManyElementsIsRefused) {
  State state;
  Want(&state, "b", kF32, {4});
  LoadMatch match;
  const Status status = Match(state, &match);
  EXPECT_EQ(status.code(), Code::kShape);
  EXPECT_NE(status.message().find("[2, 2]"), std::string::npos) << status.message();
}

TEST(LoadMatch, ABlobLargerThanItsDestinationChangesNothingAndSaysItsSize) {
  char memory[2] = {7, 7};
  uint64_t actual = 0;
  State state;
  BlobSpec blob;
  blob.name = "rng";
  blob.data = memory;
  blob.bytes = sizeof memory;
  blob.actual = &actual;
  ASSERT_TRUE(state.AddBlob(blob).ok());
  LoadMatch match;
  EXPECT_EQ(Match(state, &match).code(), Code::kLimit);
  EXPECT_EQ(actual, 3u);
  EXPECT_EQ(memory[0], 7);
}

TEST(LoadMatch, AnotherRanksBlobIsFoundByItsWriter) {
  State state;
  BlobSpec blob;
  blob.name = "rng";
  blob.bytes = sizeof kMemory;
  blob.data = kMemory;
  blob.writer_rank = 1;
  ASSERT_TRUE(state.AddBlob(blob).ok());
  LoadMatch match;
  const Status status = Match(state, &match);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("of rank 1"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace ckpt
