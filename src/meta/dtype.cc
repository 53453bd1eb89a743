// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The dtypes: what DLPack calls them, what safetensors calls them, how long an element is.
// Test: tests/unit/meta/dtype_test.cc
#include <algorithm>
#include <iterator>

#include "meta/meta.h"
#include "util/text.h"

namespace ckpt {
namespace {

// bytes == 0: known, but not storable.
constexpr DTypeInfo kDTypes[] = {
    {MakeDType(6, 8), "BOOL", 1},
    {MakeDType(1, 8), "U8", 1},
    {MakeDType(0, 8), "I8", 1},
    {MakeDType(12, 8), "F8_E5M2", 1},
    {MakeDType(10, 8), "F8_E4M3", 1},
    {MakeDType(14, 8), "F8_E8M0", 1},
    {MakeDType(0, 16), "I16", 2},
    {MakeDType(1, 16), "U16", 2},
    {MakeDType(2, 16), "F16", 2},
    {MakeDType(4, 16), "BF16", 2},
    {MakeDType(0, 32), "I32", 4},
    {MakeDType(1, 32), "U32", 4},
    {MakeDType(2, 32), "F32", 4},
    {MakeDType(5, 64), "C64", 8},
    {MakeDType(2, 64), "F64", 8},
    {MakeDType(0, 64), "I64", 8},
    {MakeDType(1, 64), "U64", 8},
    {MakeDType(17, 4), "F4", 1, 2},
    {MakeDType(15, 6), "F6_E2M3", 0},
    {MakeDType(16, 6), "F6_E3M2", 0},
    {MakeDType(7, 8), "float8_e3m4", 1, 1, false},
    {MakeDType(8, 8), "float8_e4m3", 1, 1, false},
    {MakeDType(9, 8), "float8_e4m3b11fnuz", 1, 1, false},
    {MakeDType(11, 8), "float8_e4m3fnuz", 1, 1, false},
    {MakeDType(13, 8), "float8_e5m2fnuz", 1, 1, false},
    {MakeDType(0, 1), "int1", 0},
    {MakeDType(0, 2), "int2", 0},
    {MakeDType(0, 4), "int4", 0},
    {MakeDType(0, 128), "int128", 16, 1, false},
    {MakeDType(1, 1), "uint1", 0},
    {MakeDType(1, 2), "uint2", 0},
    {MakeDType(1, 4), "uint4", 0},
    {MakeDType(1, 128), "uint128", 16, 1, false},
    {MakeDType(2, 128), "float128", 16, 1, false},
    {MakeDType(5, 32), "complex32", 4, 1, false},
    {MakeDType(5, 128), "complex128", 16, 1, false},
};

Result<DTypeInfo> Storable(const DTypeInfo& info) {
  if (info.bytes > 0) return info;
  return Status(Code::kUnsupported, Cat("dtype ", info.name, " cannot be stored"));
}

}  // namespace

Result<DTypeInfo> FindDType(DType dtype) {
  const auto* found = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                   [&](const DTypeInfo& info) { return info.dtype == dtype; });
  if (found != std::end(kDTypes)) return Storable(*found);
  return Status(Code::kInvalidArgument, Cat("unknown dtype: code ", dtype & 0xff, ", ",
                                            dtype >> 8 & 0xff, " bits, ", dtype >> 16, " lanes"));
}

Result<DTypeInfo> FindDTypeByName(std::string_view name) {
  // DLPack's own names are lower case: only the upper-case ones are safetensors'.
  const auto* found = std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](const DTypeInfo& i) {
    return i.name == name && name[0] >= 'A' && name[0] <= 'Z';
  });
  if (found != std::end(kDTypes)) return Storable(*found);
  return Status(Code::kCorrupt, Cat("unknown dtype name \"", Printable(name), "\""));
}

}  // namespace ckpt
