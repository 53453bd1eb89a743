// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What MakeTensor accepts and refuses.
#include <gtest/gtest.h>

#include <limits>

#include "meta/meta.h"

namespace ckpt {
namespace {

Code Refusal(std::string group, std::string name, Dims shape = {2}, DType dtype = kF32) {
  return MakeTensor(std::move(group), std::move(name), dtype, std::move(shape)).status().code();
}

TEST(ElementCount, AScalarHasOneElementAndAnEmptyTensorNone) {
  EXPECT_EQ(*ElementCount({}), 1);
  EXPECT_EQ(*ElementCount({3, 4, 5}), 60);
  EXPECT_EQ(*ElementCount({0}), 0);
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(*ElementCount({huge, huge, 0}), 0);
}

TEST(ElementCount, NegativeIsInvalidAndTooManyIsALimit) {
  EXPECT_EQ(ElementCount({3, -1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(ElementCount({0, -1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(*ElementCount({int64_t{1} << 62}), int64_t{1} << 62);
  EXPECT_EQ(ElementCount({(int64_t{1} << 62) + 1}).status().code(), Code::kLimit);
  EXPECT_EQ(ElementCount({int64_t{1} << 32, int64_t{1} << 32}).status().code(), Code::kLimit);
}

TEST(MakeTensor, FillsTheSizes) {
  const auto t = MakeTensor("model", "w", kBF16, {3, 5});
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->elem_bytes, 2u);
  EXPECT_EQ(t->bytes, 30u);
}

TEST(MakeTensor, H01_NamesWithSlashesAndDotsAreNames) {
  for (const char* name : {"a/~/foo", "x/y", "..", "../../t", "a.b", "con", "\"\\\n:", "\u00e9"}) {
    EXPECT_TRUE(MakeTensor("model", name, kF32, {1}).ok()) << name;
  }
}

TEST(MakeTensor, H03_EmptyReservedOrBrokenNamesAreRefused) {
  EXPECT_EQ(Refusal("model", ""), Code::kInvalidArgument);
  EXPECT_EQ(Refusal("model", "__metadata__"), Code::kInvalidArgument);
  EXPECT_EQ(Refusal("model", "\xff\xfe"), Code::kInvalidArgument);
  EXPECT_EQ(Refusal("model", std::string("a\0b", 3)), Code::kInvalidArgument);
}

TEST(MakeTensor, AGroupIsAShortPlainWordOtherThanBlobs) {
  EXPECT_EQ(Refusal("Optim_2-x", "w"), Code::kOk);
  EXPECT_EQ(Refusal(std::string(64, 'a'), "w"), Code::kOk);
  for (const std::string& group : {std::string(), std::string(65, 'a'), std::string("a/b"),
                                   std::string("a.b"), std::string("blobs")}) {
    EXPECT_EQ(Refusal(group, "w"), Code::kInvalidArgument) << group;
  }
}

TEST(MakeTensor, ErrorsNameTheTensorAndTheField) {
  const Status s = MakeTensor("model", "w", kF32, {2, -3}).status();
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_EQ(s.cause().name, "w");
  EXPECT_EQ(s.cause().field, "shape");
  EXPECT_NE(s.message().find("model/w"), std::string::npos) << s.message();
  EXPECT_NE(s.message().find("-3"), std::string::npos) << s.message();
  EXPECT_EQ(MakeTensor("model", "w", 9999, {2}).status().cause().field, "dtype");
}

TEST(MakeTensor, WhatSafetensorsCannotNameNeedsADimensionForItself) {
  const Dims most(64, 1), one_less(63, 1);
  const DType complex128 = MakeDType(5, 128);
  EXPECT_TRUE(MakeTensor("g", "w", kF32, most).ok());
  EXPECT_EQ(MakeTensor("g", "w", complex128, most).status().code(), Code::kLimit);
  EXPECT_TRUE(MakeTensor("g", "w", complex128, one_less).ok());
}

TEST(MakeTensor, TooManyBytesOrDimensionsIsALimit) {
  EXPECT_EQ(Refusal("model", "w", {int64_t{1} << 60}, kF32), Code::kOk);
  EXPECT_EQ(Refusal("model", "w", {(int64_t{1} << 60) + 1}, kF32), Code::kLimit);
  EXPECT_EQ(Refusal("model", "w", Dims(64, 1)), Code::kOk);
  EXPECT_EQ(Refusal("model", "w", Dims(65, 1)), Code::kLimit);
}

}  // namespace
}  // namespace ckpt
