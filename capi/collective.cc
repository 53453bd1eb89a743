// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Save and load.  A rank whose own arguments are bad still arrives, with that error, so that its
// peers get the cause at once and not a timeout.
// Test: tests/conformance/bad_input.c, round_trip.c
#include "capi/barrier.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "capi/values.h"
#include "util/text.h"

namespace ckpt::capi {
namespace {

constexpr size_t kMaxTag = 4096, kMaxPath = 4096, kMaxMetadata = 1 << 20;

// `s` may be used in a collective of `c`.
Status CheckOperand(const ckpt_ctx* c, const ckpt_state* s) {
  if (s == nullptr) return Invalid("state", "the state is NULL");
  if (s->session.lock() != c->session) {
    return Invalid("state", "the state was made by another context");
  }
  return s->state.poison();
}

Status CheckOutputs(const ckpt_result* result, ckpt_request** req) {
  if (result != nullptr && req != nullptr) {
    return Invalid("result", "result and req are both given: with req, use ckpt_request_result");
  }
  if (req != nullptr) {
    return Unsupported("req", "asynchronous calls (req) are not in this version: pass NULL");
  }
  return result == nullptr ? Status() : CheckOutput(result);
}

// Fills *out; out->step first, so that it is known whatever else is wrong.
Status ConvertSave(const ckpt_save_options* in, SaveOptions* out) {
  ckpt_save_options o;
  CKPT_RETURN_IF_ERROR(ReadStruct(in, &o));
  out->step = o.step;
  CKPT_RETURN_IF_ERROR(CheckFlags(o.flags, CKPT_SAVE_LAZY, "ckpt_save_options.flags"));
  if ((o.flags & CKPT_SAVE_LAZY) != 0) {
    return Unsupported("CKPT_SAVE_LAZY", "CKPT_SAVE_LAZY is not in this version");
  }
  CKPT_RETURN_IF_ERROR(CheckStep(o.step));
  CKPT_RETURN_IF_ERROR(CheckEnum(o.on_existing, CKPT_EXISTING_KEEP, "on_existing"));
  CKPT_RETURN_IF_ERROR(CheckEnum(o.on_busy, CKPT_BUSY_FAIL, "on_busy"));
  out->on_existing = static_cast<OnExisting>(o.on_existing);
  CKPT_ASSIGN_OR_RETURN(out->tag, CopyText(o.tag, "tag", kMaxTag));
  CKPT_ASSIGN_OR_RETURN(out->metadata, CopyText(o.metadata, "metadata", kMaxMetadata));
  CKPT_ASSIGN_OR_RETURN(out->contract_timeout_ms,
                        CheckMillis(o.contract_timeout_ms, 0, kMaxMillis, "contract_timeout_ms"));
  return Status();
}
static_assert(static_cast<uint32_t>(OnExisting::kAuto) == CKPT_EXISTING_AUTO);
static_assert(static_cast<uint32_t>(OnExisting::kRefuse) == CKPT_EXISTING_REFUSE);
static_assert(static_cast<uint32_t>(OnExisting::kReplace) == CKPT_EXISTING_REPLACE);
static_assert(static_cast<uint32_t>(OnExisting::kKeep) == CKPT_EXISTING_KEEP);

Status CheckLoadFlags(uint32_t flags) {
  constexpr uint32_t kKnown = CKPT_LOAD_CONVERT | CKPT_LOAD_ALLOW_MISSING | CKPT_LOAD_NO_UNUSED |
                              CKPT_LOAD_FALLBACK | CKPT_LOAD_NO_VERIFY;
  return CheckFlags(flags, kKnown, "ckpt_load_options.flags");
}

Status ConvertLoad(const ckpt_load_options* in, LoadOptions* out) {
  ckpt_load_options o;
  CKPT_RETURN_IF_ERROR(ReadStruct(in, &o));
  out->step = o.step;
  CKPT_RETURN_IF_ERROR(CheckLoadFlags(o.flags));
  CKPT_RETURN_IF_ERROR(CheckWhich(o.which, o.step));
  out->fallback = (o.flags & CKPT_LOAD_FALLBACK) != 0;
  if (out->fallback && o.which != CKPT_LOAD_LATEST) {
    return Invalid("CKPT_LOAD_FALLBACK", "CKPT_LOAD_FALLBACK goes with CKPT_LOAD_LATEST only");
  }
  CKPT_RETURN_IF_ERROR(CheckReserved(o.reserved0, "ckpt_load_options.reserved0"));
  if (o.uri != nullptr && *o.uri == '\0') return Invalid("uri", "uri is empty");
  CKPT_ASSIGN_OR_RETURN(out->uri, CopyText(o.uri, "uri", kMaxPath));
  out->latest = o.which == CKPT_LOAD_LATEST;
  out->convert = (o.flags & CKPT_LOAD_CONVERT) != 0;
  out->allow_missing = (o.flags & CKPT_LOAD_ALLOW_MISSING) != 0;
  out->no_unused = (o.flags & CKPT_LOAD_NO_UNUSED) != 0;
  out->no_verify = (o.flags & CKPT_LOAD_NO_VERIFY) != 0;
  CKPT_ASSIGN_OR_RETURN(out->contract_timeout_ms,
                        CheckMillis(o.contract_timeout_ms, 0, kMaxMillis, "contract_timeout_ms"));
  return Status();
}

ckpt_result ToResult(const OpResult& op) {
  ckpt_result out = {};
  out.flags = op.fell_back ? CKPT_RESULT_FELL_BACK : 0;
  out.step = op.step;
  out.tensors = op.tensors;
  out.bytes = op.bytes;
  out.bytes_written = op.bytes_written;
  out.bytes_read = op.bytes_read;
  out.bytes_exchanged = op.bytes_exchanged;
  out.missing = op.missing;
  out.unused = op.unused;
  out.plan_ns = op.plan_ns;
  out.snapshot_ns = op.snapshot_ns;
  out.io_ns = op.io_ns;
  out.commit_ns = op.commit_ns;
  out.total_ns = op.total_ns;
  return out;
}

// `prepare` checks the arguments, `run` makes the call.
template <typename Options, typename Prepare, typename Run>
Status Collective(ckpt_ctx* c, const Options& options, Prepare prepare, Run run) {
  constexpr bool kSave = std::is_same_v<Options, SaveOptions>;
  CKPT_RETURN_IF_ERROR(CheckCtx(c));  // STATE and FORKED are local, never sent
  const Status local = Contain(prepare);
  if (!local.ok()) return c->session->ArriveWithError(kSave, options.step, local);
  return run(*c->session);
}

// One entry: outputs reset, arguments to options, the call, its result also on error.
template <typename Options, typename Convert, typename Run>
ckpt_status Entry(ckpt_ctx* c, ckpt_state* s, ckpt_result* result, ckpt_request** req,
                  ckpt_error** err, Convert convert, Run run) noexcept {
  if (req != nullptr) *req = nullptr;
  return Enter(err, [&]() -> Status {
    Options options;
    OpResult op;
    const auto prepare = [&]() -> Status {
      CKPT_RETURN_IF_ERROR(convert(&options));
      CKPT_RETURN_IF_ERROR(CheckOutputs(result, req));
      return CheckOperand(c, s);
    };
    const Status status = Collective(c, options, prepare,
                                     [&](Session& session) { return run(session, options, &op); });
    if (result != nullptr) (void)WriteStruct(ToResult(op), result);
    return status;
  });
}

}  // namespace
}  // namespace ckpt::capi

using namespace ckpt::capi;  // NOLINT: the entries below are C

ckpt_status ckpt_save_collective(ckpt_ctx* c, ckpt_state* s, const ckpt_save_options* o,
                                 ckpt_result* result, ckpt_request** req,
                                 ckpt_error** err) noexcept {
  return Entry<ckpt::SaveOptions>(
      c, s, result, req, err, [&](ckpt::SaveOptions* out) { return ConvertSave(o, out); },
      [&](ckpt::Session& session, const ckpt::SaveOptions& options, ckpt::OpResult* op) {
        return session.Save(s->state, options, op);
      });
}

ckpt_status ckpt_load(ckpt_ctx* c, ckpt_state* dst, const ckpt_load_options* o, ckpt_result* result,
                      ckpt_request** req, ckpt_error** err) noexcept {
  return Entry<ckpt::LoadOptions>(
      c, dst, result, req, err, [&](ckpt::LoadOptions* out) { return ConvertLoad(o, out); },
      [&](ckpt::Session& session, const ckpt::LoadOptions& options, ckpt::OpResult* op) {
        return session.Load(dst->state, options, op);
      });
}
