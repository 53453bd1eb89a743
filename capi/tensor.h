// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A ckpt_tensor or ckpt_blob of the caller, checked and copied into core's description of it.
// Test: tests/conformance/bad_input.c
#ifndef CKPT_CAPI_TENSOR_H_
#define CKPT_CAPI_TENSOR_H_

#include "ckpt.h"
#include "core/core.h"

namespace ckpt::capi {

// `index` is the place in the caller's array, for a tensor that cannot be named.  Errors name the
// tensor (cause.name).  What core checks itself (names, dtype, shape, bounds) is not checked here.
Result<TensorSpec> ConvertTensor(const ckpt_tensor* in, uint64_t index);

Result<BlobSpec> ConvertBlob(const ckpt_blob* in);

}  // namespace ckpt::capi

#endif  // CKPT_CAPI_TENSOR_H_
