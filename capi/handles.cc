// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a handle may be used now.  Test: tests/conformance/order.c, fork.c
#include "capi/handles.h"

#include <unistd.h>

#include "util/text.h"

namespace ckpt::capi {

bool IsForked(pid_t pid) { return pid != ::getpid(); }

Status CheckPid(pid_t pid, const char* what) {
  if (!IsForked(pid)) return Status();
  return Status(Code::kForked, Cat("this process was forked from pid ", pid, ", which made the ",
                                   what, ": it cannot be used in a child"));
}

Status CheckCtx(const ckpt_ctx* c) {
  if (c == nullptr) return Status(Code::kInvalidArgument, "the context is NULL");
  CKPT_RETURN_IF_ERROR(CheckPid(c->pid, "context"));
  return c->session->Usable();
}

Status CheckState(const ckpt_state* s) {
  if (s == nullptr) return Status(Code::kInvalidArgument, "the state is NULL");
  CKPT_RETURN_IF_ERROR(CheckPid(s->pid, "state"));
  const std::shared_ptr<Session> session = s->session.lock();
  if (session != nullptr) return session->Usable();
  return Status(Code::kState, "the context of this state was freed: only ckpt_state_free is left");
}

Status CheckReader(const ckpt_reader* r) {
  if (r == nullptr) return Status(Code::kInvalidArgument, "the reader is NULL");
  return CheckPid(r->pid, "reader");
}

}  // namespace ckpt::capi
