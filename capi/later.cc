// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions of the ABI that are not built yet: they check their handles and say so.
// Test: tests/conformance/later.c
#include <string>

#include "capi/barrier.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "capi/values.h"
#include "util/text.h"

namespace ckpt::capi {
namespace {

Status NotYet(const char* function) {
  return Unsupported(function, Cat(function, " is not in this version"));
}

// Of a context.
ckpt_status Later(const ckpt_ctx* c, const char* function, ckpt_error** err) noexcept {
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckCtx(c));
    return NotYet(function);
  });
}

ckpt_status Later(const ckpt_reader* r, const char* function, ckpt_error** err) noexcept {
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckReader(r));
    return NotYet(function);
  });
}

// Of a request, which no call of this version makes.
Status RequestError(const ckpt_request* r, const char* function) {
  if (r == nullptr) return Invalid("request", Cat(function, ": the request is NULL"));
  return NotYet(function);
}

}  // namespace
}  // namespace ckpt::capi

using namespace ckpt::capi;  // NOLINT: the entries below are C

ckpt_status ckpt_background(ckpt_ctx* c, uint32_t, ckpt_error** err) noexcept {
  return Later(c, "ckpt_background", err);
}

ckpt_status ckpt_reader_read(ckpt_reader* r, const ckpt_tensor*, ckpt_error** err) noexcept {
  return Later(r, "ckpt_reader_read", err);
}

ckpt_status ckpt_reader_map(ckpt_reader* r, const char*, const char*, const void** data,
                            uint64_t* bytes, ckpt_error** err) noexcept {
  if (data != nullptr) *data = nullptr;
  if (bytes != nullptr) *bytes = 0;
  return Later(r, "ckpt_reader_map", err);
}

ckpt_status ckpt_request_result(ckpt_request* r, ckpt_result*) noexcept {
  return Enter(nullptr, [&] { return RequestError(r, "ckpt_request_result"); });
}

ckpt_status ckpt_fence(ckpt_request* r, const char*, uint64_t, ckpt_error** err) noexcept {
  return Enter(err, [&] { return RequestError(r, "ckpt_fence"); });
}

ckpt_status ckpt_wait(ckpt_request* r, uint32_t, uint64_t, ckpt_error** err) noexcept {
  return Enter(err, [&] { return RequestError(r, "ckpt_wait"); });
}

ckpt_status ckpt_request_status(ckpt_request* r, ckpt_request_info*) noexcept {
  return Enter(nullptr, [&] { return RequestError(r, "ckpt_request_status"); });
}

int32_t ckpt_request_fd(ckpt_request*) noexcept { return -1; }

ckpt_status ckpt_cancel(ckpt_request* r) noexcept {
  return EnterAny(nullptr, [&] { return RequestError(r, "ckpt_cancel"); });
}

void ckpt_request_free(ckpt_request*) noexcept {}
