// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of single values.  Test: tests/conformance/bad_input.c
#include "capi/values.h"

#include <cstring>

#include "util/text.h"

namespace ckpt::capi {
namespace {

Status Named(Code code, std::string_view name, std::string message) {
  Cause cause;
  cause.name = Lendable(name);  // R4: what we return is UTF-8
  return Status(code, std::move(message), std::move(cause));
}

}  // namespace

Status Invalid(std::string_view name, std::string message) {
  return Named(Code::kInvalidArgument, name, std::move(message));
}

Status Unsupported(std::string_view name, std::string message) {
  return Named(Code::kUnsupported, name, std::move(message));
}

Result<std::string> CopyText(const char* text, const char* name, size_t max_bytes) {
  if (text == nullptr) return std::string();
  const size_t bytes = strnlen(text, max_bytes + 1);
  if (bytes > max_bytes) return Invalid(name, Cat(name, " is longer than ", max_bytes, " bytes"));
  std::string copy(text, bytes);
  if (!IsUtf8(copy)) return Invalid(name, Cat(name, " \"", Printable(copy), "\" is not UTF-8"));
  return copy;
}

Status CheckFlags(uint32_t flags, uint32_t known, const char* name) {
  if ((flags & ~known) == 0) return Status();
  return Invalid(name, fmt::format("{}: unknown flag {:#x}", name, flags & ~known));
}

Status CheckEnum(uint32_t value, uint32_t last, const char* name) {
  if (value <= last) return Status();
  return Invalid(name, Cat(name, ": unknown value ", value));
}

Status CheckReserved(uint32_t reserved, const char* name) {
  if (reserved == 0) return Status();
  return Invalid(name, Cat(name, " is reserved and must be 0, not ", reserved));
}

Result<uint64_t> CheckMillis(uint64_t ms, uint64_t default_ms, uint64_t max_ms, const char* name) {
  if (ms <= max_ms) return ms == 0 ? default_ms : ms;
  return Invalid(name, Cat(name, " is ", ms, " ms: at most ", max_ms));
}

Status CheckStep(int64_t step) {
  if (step >= 0) return Status();
  return Invalid("step", Cat("step is ", step, ": must not be negative"));
}

Status CheckWhich(uint32_t which, int64_t step) {
  CKPT_RETURN_IF_ERROR(CheckEnum(which, CKPT_LOAD_STEP, "which"));
  if (which == CKPT_LOAD_STEP && step < 0) {
    return Invalid("step", Cat("step is ", step, ": must not be negative"));
  }
  if (which == CKPT_LOAD_LATEST && step > 0) {
    return Invalid("which", Cat("which is CKPT_LOAD_LATEST but step is ", step,
                                ": set CKPT_LOAD_STEP to get that step"));
  }
  return Status();
}

}  // namespace ckpt::capi
