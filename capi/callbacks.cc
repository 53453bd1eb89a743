// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The host's C callbacks.  Test: tests/conformance/callbacks.c
#include "capi/callbacks.h"

#include <algorithm>

#include "capi/barrier.h"
#include "util/text.h"

namespace ckpt::capi {
namespace {

constexpr size_t kDescribeBytes = 4096;

// What a host throws is unwound by its libgcc_s, which calls this library's personality routine,
// which uses this library's static libgcc; and that aborts (_Unwind_SetGR) unless it has
// initialised itself, which it does at its first throw.
void PrepareToCatch() {
  static const bool ready = [] {
    try {
      throw 0;
    } catch (int) {
      return true;
    }
  }();
  static_cast<void>(ready);
}

// `fallback` if the callback throws.  The host's C++ runtime may not be ours, so that the exception
// is caught without looking at it.
template <typename Fn, typename R>
R Call(R fallback, Fn fn) {
  CallbackScope scope;
  try {
    return fn();
  } catch (...) {
    return fallback;
  }
}

}  // namespace

std::function<int32_t(const Event&)> EventSink(ckpt_event_fn fn, void* user) {
  if (fn == nullptr) return nullptr;
  PrepareToCatch();
  return [fn, user](const Event& event) {
    ckpt_event out = {};
    out.struct_size = sizeof out;
    out.kind = event.kind;
    out.step = event.step;
    out.milestone = event.milestone;
    out.bytes_done = event.bytes_done;
    out.bytes_total = event.bytes_total;
    out.text = event.text.c_str();
    constexpr int32_t kCancel = 1;
    return Call(kCancel, [&] { return fn(user, &out); });
  };
}

Log::Sink LogSink(ckpt_log_fn fn, void* user) {
  if (fn == nullptr) return nullptr;
  PrepareToCatch();
  return [fn, user](LogLevel level, const char* component, const char* message) {
    Call(0, [&] {
      fn(user, static_cast<int32_t>(level), component, message);
      return 0;
    });
  };
}

std::function<std::string()> DescribeSink(ckpt_describe_fn fn, void* user) {
  if (fn == nullptr) return nullptr;
  PrepareToCatch();
  return [fn, user] {
    std::string text(kDescribeBytes, '\0');
    const uint64_t bytes = Call(uint64_t{0}, [&] { return fn(user, text.data(), kDescribeBytes); });
    text.resize(std::min<uint64_t>(bytes, kDescribeBytes));
    return Printable(text, kDescribeBytes);
  };
}

}  // namespace ckpt::capi
