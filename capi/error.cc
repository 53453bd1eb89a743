// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Error objects.  Nothing here can fail but by a bad argument, and nothing touches a context.
// Test: tests/conformance/errors.c
#include "capi/barrier.h"
#include "capi/handles.h"
#include "capi/structs.h"

namespace ckpt::capi {
namespace {

// The codes of Status are those of the ABI, so that Report only casts.
#define CKPT_SAME(name, code) \
  static_assert(static_cast<ckpt_status>(Code::name) == (code), "Code and CKPT_ERR_* agree")
CKPT_SAME(kOk, CKPT_OK);
CKPT_SAME(kInvalidArgument, CKPT_ERR_INVALID_ARGUMENT);
CKPT_SAME(kUnsupported, CKPT_ERR_UNSUPPORTED);
CKPT_SAME(kState, CKPT_ERR_STATE);
CKPT_SAME(kNotFound, CKPT_ERR_NOT_FOUND);
CKPT_SAME(kCorrupt, CKPT_ERR_CORRUPT);
CKPT_SAME(kIo, CKPT_ERR_IO);
CKPT_SAME(kNoSpace, CKPT_ERR_NO_SPACE);
CKPT_SAME(kNoMemory, CKPT_ERR_NO_MEMORY);
CKPT_SAME(kDevice, CKPT_ERR_DEVICE);
CKPT_SAME(kParticipants, CKPT_ERR_PARTICIPANTS);
CKPT_SAME(kMismatch, CKPT_ERR_MISMATCH);
CKPT_SAME(kComm, CKPT_ERR_COMM);
CKPT_SAME(kCancelled, CKPT_ERR_CANCELLED);
CKPT_SAME(kForked, CKPT_ERR_FORKED);
CKPT_SAME(kExists, CKPT_ERR_EXISTS);
CKPT_SAME(kCoverage, CKPT_ERR_COVERAGE);
CKPT_SAME(kReplica, CKPT_ERR_REPLICA);
CKPT_SAME(kShape, CKPT_ERR_SHAPE);
CKPT_SAME(kDtype, CKPT_ERR_DTYPE);
CKPT_SAME(kNoCheckpoint, CKPT_ERR_NO_CHECKPOINT);
CKPT_SAME(kOwned, CKPT_ERR_OWNED);
CKPT_SAME(kLimit, CKPT_ERR_LIMIT);
CKPT_SAME(kOutcomeUnknown, CKPT_ERR_OUTCOME_UNKNOWN);
CKPT_SAME(kInternal, CKPT_ERR_INTERNAL);
#undef CKPT_SAME
static_assert(static_cast<uint32_t>(Condition::kAliveElsewhere) == CKPT_RANK_ALIVE_ELSEWHERE);
static_assert(static_cast<uint32_t>(Condition::kUnresponsive) == CKPT_RANK_UNRESPONSIVE);
static_assert(static_cast<uint32_t>(Condition::kDead) == CKPT_RANK_DEAD);
static_assert(static_cast<uint32_t>(Condition::kDisagrees) == CKPT_RANK_DISAGREES);
static_assert(static_cast<uint32_t>(Condition::kFailed) == CKPT_RANK_FAILED);
static_assert(static_cast<uint32_t>(Condition::kUnknown) == CKPT_RANK_UNKNOWN);
static_assert(static_cast<uint32_t>(Condition::kLeft) == CKPT_RANK_LEFT);

const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

Status NullError() { return Status(Code::kInvalidArgument, "the error is NULL"); }

ckpt_rank_report ToReport(const RankReport& r) {
  ckpt_rank_report out = {};
  out.rank = r.rank;
  out.condition = static_cast<uint32_t>(r.condition);
  out.heartbeat_age_ns = r.heartbeat_age_ns;
  out.phase_step = r.phase_step;
  out.host = r.host.c_str();
  out.phase = r.phase.c_str();
  out.doing = r.doing.c_str();
  out.last_call = r.last_call.c_str();
  return out;
}

}  // namespace
}  // namespace ckpt::capi

using namespace ckpt::capi;  // NOLINT: the entries below are C
using ckpt::Cause;
using ckpt::Code;
using ckpt::Status;

const char* ckpt_status_name(ckpt_status status) noexcept {
  if (status == CKPT_PENDING) return "PENDING";
  if (status == CKPT_ERR_PEER) return "PEER";         // reserved
  return CodeName(static_cast<Code>(status)).data();  // literals: they end in a NUL
}

ckpt_status ckpt_error_status(const ckpt_error* e) noexcept {
  return e == nullptr ? CKPT_OK : static_cast<ckpt_status>(e->status.code());
}

const char* ckpt_error_message(const ckpt_error* e) noexcept {
  return e == nullptr ? "" : e->status.message().c_str();
}

uint64_t ckpt_error_rank_count(const ckpt_error* e) noexcept {
  return e == nullptr ? 0 : e->status.ranks().size();
}

ckpt_status ckpt_error_rank(const ckpt_error* e, uint64_t i, ckpt_rank_report* out) noexcept {
  return EnterAny(nullptr, [&]() -> Status {
    if (e == nullptr) return NullError();
    CKPT_RETURN_IF_ERROR(CheckOutput(out));
    if (i >= e->status.ranks().size())
      return Status(Code::kNotFound, "the error names fewer ranks");
    return WriteStruct(ToReport(e->status.ranks()[i]), out);
  });
}

ckpt_status ckpt_error_get_cause(const ckpt_error* e, ckpt_error_cause* out) noexcept {
  return EnterAny(nullptr, [&]() -> Status {
    if (e == nullptr) return NullError();
    const Cause& cause = e->status.cause();
    ckpt_error_cause value = {};
    value.rank = cause.rank;
    value.sys_errno = cause.sys_errno;
    value.path = OrNull(cause.path);
    value.name = OrNull(cause.name);
    value.field = OrNull(cause.field);
    return WriteStruct(value, out);
  });
}

void ckpt_error_free(ckpt_error* e) noexcept { delete e; }
