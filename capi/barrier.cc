// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Reporting at the C edge.  Test: tests/conformance/callbacks.c, errors.c
#include "capi/barrier.h"

#include <utility>
#include <vector>

#include "capi/handles.h"

namespace ckpt::capi {

thread_local int CallbackScope::depth_ = 0;
thread_local int EntryScope::depth_ = 0;

namespace {

thread_local std::vector<std::function<void()>> put_off;

void RunPutOff() {
  if (CallbackScope::Active() || EntryScope::Active()) return;
  // A free may run a callback that frees.
  while (!put_off.empty()) {
    const std::vector<std::function<void()>> now = std::exchange(put_off, {});
    for (const auto& free : now) free();
  }
}

}  // namespace

CallbackScope::~CallbackScope() {
  --depth_;
  RunPutOff();
}

EntryScope::~EntryScope() {
  --depth_;
  RunPutOff();
}

void FreeWhenUnused(std::function<void()> free) noexcept {
  try {
    if (!CallbackScope::Active()) return free();
    put_off.push_back(std::move(free));
  } catch (const std::exception&) {
    // No memory to remember it: the object stays.
  }
}

Status CheckNotInCallback() {
  if (!CallbackScope::Active()) return Status();
  return Status(Code::kState, "called inside a callback: only functions marked [cb] may be");
}

ckpt_status Report(const Status& status, ckpt_error** err) {
  if (!status.ok() && err != nullptr) *err = new ckpt_error{status};
  return static_cast<ckpt_status>(status.code());
}

ckpt_status ReportPlain(Code code, const char* message, ckpt_error** err) noexcept {
  try {
    return Report(Status(code, message), err);
  } catch (...) {
    return static_cast<ckpt_status>(code);
  }
}

}  // namespace ckpt::capi
