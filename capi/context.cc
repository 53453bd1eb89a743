// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The rest of a context's life: phase, newest step, events, ends.
// Test: tests/conformance/order.c, forked.c
#include "capi/barrier.h"
#include "capi/handles.h"
#include "capi/values.h"
#include "util/text.h"

using namespace ckpt::capi;  // NOLINT: the entries below are C
using ckpt::Status;

ckpt_status ckpt_finalize(ckpt_ctx* c, uint64_t timeout_ms, ckpt_error** err) noexcept {
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckCtx(c));
    const auto ms = CheckMillis(timeout_ms, 0, kMaxMillis, "timeout_ms");
    // Collective: the peers, who may be in their finalize already, hear why this one does not come.
    if (!ms.ok()) return c->session->ArriveWithError(false, -1, ms.status());
    return c->session->Finalize(*ms);
  });
}

void ckpt_ctx_free(ckpt_ctx* c) noexcept {
  // In a child the session's threads are not there to be joined: left alone.
  if (c == nullptr || IsForked(c->pid)) return;
  FreeWhenUnused([c] {
    EnterAny(nullptr, [&] {
      delete c;
      return Status();
    });
  });
}

int32_t ckpt_rank(const ckpt_ctx* c) noexcept { return c == nullptr ? -1 : c->session->rank(); }

int32_t ckpt_size(const ckpt_ctx* c) noexcept { return c == nullptr ? -1 : c->session->size(); }

void ckpt_set_phase(ckpt_ctx* c, const char* phase, int64_t step) noexcept {
  if (c == nullptr || IsForked(c->pid)) return;
  EnterAny(nullptr, [&] {
    c->session->SetPhase(phase == nullptr ? "" : phase, step);
    return Status();
  });
}

ckpt_status ckpt_latest(ckpt_ctx* c, int64_t* step, ckpt_error** err) noexcept {
  if (step != nullptr) *step = -1;
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckCtx(c));
    if (step == nullptr) return Invalid("step", "ckpt_latest: step is NULL");
    CKPT_ASSIGN_OR_RETURN(*step, c->session->Latest());
    return Status();
  });
}

ckpt_status ckpt_poll(ckpt_ctx* c, ckpt_error** err) noexcept {
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckCtx(c));
    return c->session->Poll();
  });
}

ckpt_status ckpt_pin(ckpt_ctx* c, int64_t step, int32_t pinned, ckpt_error** err) noexcept {
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckCtx(c));
    CKPT_RETURN_IF_ERROR(CheckStep(step));
    if (pinned != 0 && pinned != 1) {
      return Invalid("pinned", ckpt::Cat("pinned is ", pinned, ": must be 0 or 1"));
    }
    return c->session->SetPinned(step, pinned == 1);
  });
}

ckpt_status ckpt_mark_bad(ckpt_ctx* c, int64_t step, ckpt_error** err) noexcept {
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckCtx(c));
    CKPT_RETURN_IF_ERROR(CheckStep(step));
    return c->session->MarkBad(step);
  });
}
