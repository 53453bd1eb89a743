// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of single values that many entries share: text, flags, times.  Pure.
// Test: tests/conformance/bad_input.c
#ifndef CKPT_CAPI_VALUES_H_
#define CKPT_CAPI_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ckpt.h"
#include "util/status.h"

namespace ckpt::capi {

// INVALID_ARGUMENT, UNSUPPORTED with cause.name = `name`.
Status Invalid(std::string_view name, std::string message);
Status Unsupported(std::string_view name, std::string message);

// A copy of `text`; NULL gives "".  INVALID_ARGUMENT: not UTF-8 or longer than max_bytes.
Result<std::string> CopyText(const char* text, const char* name, size_t max_bytes);

// INVALID_ARGUMENT for bits outside `known`.
Status CheckFlags(uint32_t flags, uint32_t known, const char* name);
// INVALID_ARGUMENT for a value above `last`.
Status CheckEnum(uint32_t value, uint32_t last, const char* name);
Status CheckReserved(uint32_t reserved, const char* name);

// 0 gives `default_ms`.  INVALID_ARGUMENT above max_ms (UINT64_MAX, "for ever", is never allowed).
inline constexpr uint64_t kMaxMillis = 1'000'000'000'000;
Result<uint64_t> CheckMillis(uint64_t ms, uint64_t default_ms, uint64_t max_ms, const char* name);

// INVALID_ARGUMENT for a negative one.
Status CheckStep(int64_t step);

// The step of a load or of a reader.  INVALID_ARGUMENT: unknown `which`, negative step, or a step
// beside "latest", which would be ignored in silence.
Status CheckWhich(uint32_t which, int64_t step);

}  // namespace ckpt::capi

#endif  // CKPT_CAPI_VALUES_H_
