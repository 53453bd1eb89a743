// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A signal of one rank, and the answer of all to it.
// Test: tests/process/l_advise_test.cc
#include "capi/barrier.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "capi/values.h"

using namespace ckpt::capi;  // NOLINT: the entries below are C
using ckpt::Status;

// Runs in a signal handler: one lock-free addition, no entry guard.
void ckpt_notify_signal(ckpt_ctx* c, int32_t) noexcept {
  if (c != nullptr) c->notified.fetch_add(1);
}

ckpt_status ckpt_advise(ckpt_ctx* c, int64_t step, ckpt_advice* out, ckpt_error** err) noexcept {
  return Enter(err, [&]() -> Status {
    ckpt_advice advice = {};
    const Status status = [&]() -> Status {
      CKPT_RETURN_IF_ERROR(CheckCtx(c));  // STATE and FORKED are local, never sent
      const Status local = Contain([&]() -> Status {
        CKPT_RETURN_IF_ERROR(CheckStep(step));
        return CheckOutput(out);
      });
      const uint32_t notified = c->notified.load();
      CKPT_ASSIGN_OR_RETURN(const bool any,
                            c->session->Advise(step, notified != c->told.load(), local));
      c->told.store(notified);
      advice.flags = any ? CKPT_ADVICE_SAVE_NOW | CKPT_ADVICE_EXIT_SOON : 0;
      advice.next_step = step == INT64_MAX ? step : step + 1;
      return Status();
    }();
    if (out != nullptr) (void)WriteStruct(advice, out);
    return status;
  });
}
