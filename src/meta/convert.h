// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversion between floating-point dtypes, for a save or load in another dtype than memory's.
// Pure functions of the bits: neither the rounding mode nor flush-to-zero changes a result.
// Test: tests/unit/meta/convert_test.cc
#ifndef CKPT_META_CONVERT_H_
#define CKPT_META_CONVERT_H_

#include <cstdint>

#include "meta/meta.h"

namespace ckpt {

// Whether elements of `from` can be converted to `to`: equal, or both among F64, F32, BF16, F16,
// F8_E4M3 and F8_E5M2.
bool CanConvert(DType from, DType to);

// Converts n elements: round to nearest even, overflow to infinity (F8_E4M3 has none: to its NaN);
// a NaN stays one (made quiet, its sign and the upper bits of its payload kept), -0 stays -0. Equal
// dtypes: copies the bytes. REQUIRES: CanConvert, both storable (FindDType); the memory ranges do
// not overlap.  No alignment is needed.
void ConvertElements(DType from, const void* src, DType to, void* dst, uint64_t n);

}  // namespace ckpt

#endif  // CKPT_META_CONVERT_H_
