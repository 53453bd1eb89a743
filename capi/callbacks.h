// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The host's C callbacks as the std::functions that core calls.  What a C++ callback throws stops
// here; while one runs, CallbackScope is active on its thread (R6).
// Test: tests/conformance/callbacks.c
#ifndef CKPT_CAPI_CALLBACKS_H_
#define CKPT_CAPI_CALLBACKS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "ckpt.h"
#include "core/core.h"

namespace ckpt::capi {

// Each is empty for a NULL function.
std::function<int32_t(const Event&)> EventSink(ckpt_event_fn fn, void* user);
Log::Sink LogSink(ckpt_log_fn fn, void* user);
std::function<std::string()> DescribeSink(ckpt_describe_fn fn, void* user);

}  // namespace ckpt::capi

#endif  // CKPT_CAPI_CALLBACKS_H_
