// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversion between floating-point dtypes, for a load into another dtype than the stored one.
// Pure functions of the bits: neither the rounding mode nor flush-to-zero changes a result.
// Test: tests/unit/meta/convert_test.cc
#ifndef CKPT_META_CONVERT_H_
#define CKPT_META_CONVERT_H_

#include <cstdint>

#include "meta/meta.h"

namespace ckpt {

// Whether elements of `from` can be converted to `to`: equal, any pair of F32, BF16 and F16, or
// F64 to F32.
bool CanConvert(DType from, DType to);

// Converts n elements: round to nearest even, overflow to infinity; a NaN stays one (made quiet,
// its sign and the upper bits of its payload kept), -0 stays -0.  Equal dtypes: copies the bytes.
// REQUIRES: CanConvert, both storable (FindDType); the memory ranges do not overlap.  No alignment
// is needed.
void ConvertElements(DType from, const void* src, DType to, void* dst, uint64_t n);

// As ScatterRuns, converting: `buffer` holds the stored tensor's bytes [range.begin, range.end),
// `shard` is the compact destination, of elements of `to`.
// REQUIRES: as ConvertElements; `range` begins and ends between elements.
void ScatterConverted(const TensorDesc& stored, const Geometry& g, ByteRange range,
                      const void* buffer, DType to, void* shard);

}  // namespace ckpt

#endif  // CKPT_META_CONVERT_H_
