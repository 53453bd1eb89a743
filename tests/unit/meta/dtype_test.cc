// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The dtype table, both ways.
#include <gtest/gtest.h>

#include "meta/meta.h"

namespace ckpt {
namespace {

struct Row {
  uint32_t code, bits;
  std::string_view name;
};
constexpr Row kStorable[] = {
    {6, 8, "BOOL"},     {1, 8, "U8"},   {0, 8, "I8"},   {12, 8, "F8_E5M2"}, {10, 8, "F8_E4M3"},
    {14, 8, "F8_E8M0"}, {0, 16, "I16"}, {1, 16, "U16"}, {2, 16, "F16"},     {4, 16, "BF16"},
    {0, 32, "I32"},     {1, 32, "U32"}, {2, 32, "F32"}, {5, 64, "C64"},     {2, 64, "F64"},
    {0, 64, "I64"},     {1, 64, "U64"},
};

TEST(DType, EveryStorableTypeIsFoundByCodeAndByName) {
  for (const Row& row : kStorable) {
    const auto by_code = FindDType(MakeDType(row.code, row.bits));
    const auto by_name = FindDTypeByName(row.name);
    ASSERT_TRUE(by_code.ok() && by_name.ok()) << row.name;
    EXPECT_EQ(by_code->name, row.name);
    EXPECT_EQ(by_code->bytes * 8, row.bits);
    EXPECT_EQ(by_name->dtype, MakeDType(row.code, row.bits));
  }
}

TEST(DType, PackedTypesWithoutANameAreUnsupported) {
  for (const Row& row : {Row{15, 6, "F6_E2M3"}, Row{16, 6, "F6_E3M2"}}) {
    EXPECT_EQ(FindDType(MakeDType(row.code, row.bits)).status().code(), Code::kUnsupported);
    EXPECT_EQ(FindDTypeByName(row.name).status().code(), Code::kUnsupported);
  }
  for (const uint32_t bits : {1u, 2u, 4u}) {
    EXPECT_EQ(FindDType(MakeDType(0, bits)).status().code(), Code::kUnsupported) << bits;
  }
}

TEST(DType, F4PacksTwoElementsIntoAByte) {
  const auto f4 = FindDTypeByName("F4");
  ASSERT_TRUE(f4.ok());
  EXPECT_EQ(f4->dtype, MakeDType(17, 4));
  EXPECT_EQ(f4->bytes, 1u);
  EXPECT_EQ(f4->per_unit, 2u);
}

TEST(DType, WholeByteTypesWithoutANameAreStoredByTheirCode) {
  for (const uint32_t code : {7u, 8u, 9u, 11u, 13u}) {
    const auto info = FindDType(MakeDType(code, 8));
    ASSERT_TRUE(info.ok()) << code;
    EXPECT_FALSE(info->named);
    EXPECT_EQ(info->bytes, 1u);
  }
  EXPECT_EQ(FindDType(MakeDType(5, 128))->bytes, 16u);
  EXPECT_FALSE(FindDType(MakeDType(5, 128))->named);
  EXPECT_TRUE(FindDType(kF32)->named);
}

TEST(DType, AnUnknownCodeWidthOrLaneCountIsInvalid) {
  for (const DType dtype : {MakeDType(18, 8), MakeDType(3, 64), MakeDType(2, 33), MakeDType(2, 0),
                            DType{0}, DType{9999}, DType{2 | 32 << 8 | 4 << 16}}) {
    EXPECT_EQ(FindDType(dtype).status().code(), Code::kInvalidArgument) << dtype;
  }
}

TEST(DType, ANameThatSafetensorsDoesNotDefineIsCorrupt) {
  for (const std::string_view name : {"", "f32", "F33", "int4", "complex128"}) {
    EXPECT_EQ(FindDTypeByName(name).status().code(), Code::kCorrupt) << name;
  }
}

}  // namespace
}  // namespace ckpt
