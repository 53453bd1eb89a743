// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Reporting at the C edge.  Test: tests/conformance/callbacks.c, errors.c
#include "capi/barrier.h"

#include "capi/handles.h"

namespace ckpt::capi {

thread_local int CallbackScope::depth_ = 0;

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
