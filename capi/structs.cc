// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Structs that grow.  The caller's struct is read bytewise, since it may have any size.
// Test: tests/conformance/structs.c
#include "capi/structs.h"

#include <algorithm>
#include <cstring>

#include "util/text.h"

namespace ckpt::capi {
namespace {

uint32_t SizeOf(const void* s) {
  uint32_t size = 0;
  std::memcpy(&size, s, sizeof size);
  return size;
}

Status BadSize(const char* name, uint32_t size, uint32_t least) {
  Cause cause;
  cause.name = name;
  return Status(Code::kInvalidArgument,
                Cat(name, ".struct_size is ", size, ": must be ", least, " to ", kMaxStructSize,
                    " (sizeof the struct)"),
                std::move(cause));
}

}  // namespace

Status ReadBytes(const void* in, const char* name, uint32_t first_size, uint32_t own_size,
                 void* out) {
  if (in == nullptr) return Status(Code::kInvalidArgument, Cat(name, " is NULL"));
  const uint32_t size = SizeOf(in);
  if (size < first_size || size > kMaxStructSize) return BadSize(name, size, first_size);
  const auto* bytes = static_cast<const unsigned char*>(in);
  const uint32_t known = std::min(size, own_size);
  std::memset(out, 0, own_size);
  std::memcpy(out, bytes, known);
  if (std::all_of(bytes + known, bytes + size, [](unsigned char b) { return b == 0; })) {
    return Status();
  }
  Cause cause;
  cause.name = name;
  return Status(Code::kUnsupported,
                Cat(name, " of ", size, " bytes has fields set beyond the ", own_size,
                    " bytes that this library knows: it is older than the caller's header"),
                std::move(cause));
}

Status CheckOutputSize(const void* out, const char* name) {
  if (out == nullptr) return Status(Code::kInvalidArgument, Cat(name, " is NULL"));
  const uint32_t size = SizeOf(out);
  if (size < kMinOutputSize || size > kMaxStructSize) return BadSize(name, size, kMinOutputSize);
  return Status();
}

void WriteBytes(void* value, uint32_t own_size, void* out) {
  const uint32_t written = std::min(SizeOf(out), own_size);
  std::memcpy(value, &written, sizeof written);
  std::memcpy(out, value, written);
}

}  // namespace ckpt::capi
