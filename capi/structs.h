// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Structs that grow (R1): one reader for what the caller passes in, one writer for what goes out.
// Test: tests/conformance/structs.c
#ifndef CKPT_CAPI_STRUCTS_H_
#define CKPT_CAPI_STRUCTS_H_

#include <cstddef>
#include <cstdint>

#include "ckpt.h"
#include "util/status.h"

namespace ckpt::capi {

// Name and size of each struct in its first release.  The size never changes again: a caller that
// was compiled then must be understood for ever.
template <typename T>
struct StructInfo;
#define CKPT_STRUCT(type, first_size)                  \
  template <>                                          \
  struct StructInfo<type> {                            \
    static constexpr const char* kName = #type;        \
    static constexpr uint32_t kFirstSize = first_size; \
  };                                                   \
  static_assert(sizeof(type) == (first_size), "CKPT_1.0 is the current release")
CKPT_STRUCT(ckpt_rank_report, 64);
CKPT_STRUCT(ckpt_error_cause, 40);
CKPT_STRUCT(ckpt_event, 48);
CKPT_STRUCT(ckpt_comm, 72);
CKPT_STRUCT(ckpt_init_options, 120);
CKPT_STRUCT(ckpt_advice, 24);
CKPT_STRUCT(ckpt_tensor, 112);
CKPT_STRUCT(ckpt_blob, 48);
CKPT_STRUCT(ckpt_result, 112);
CKPT_STRUCT(ckpt_save_options, 48);
CKPT_STRUCT(ckpt_load_options, 40);
CKPT_STRUCT(ckpt_request_info, 72);
CKPT_STRUCT(ckpt_checkpoint_info, 88);
CKPT_STRUCT(ckpt_tensor_info, 72);
CKPT_STRUCT(ckpt_file_info, 32);
CKPT_STRUCT(ckpt_blob_info, 32);
#undef CKPT_STRUCT

// What a struct of ours will never reach: a larger size is memory that nobody initialised.
inline constexpr uint32_t kMaxStructSize = 4096;
// Room for struct_size and the field beside it.
inline constexpr uint32_t kMinOutputSize = 8;

Status ReadBytes(const void* in, const char* name, uint32_t first_size, uint32_t own_size,
                 void* out);
Status CheckOutputSize(const void* out, const char* name);
void WriteBytes(void* value, uint32_t own_size, void* out);

// *out = the caller's struct, fields that it does not have zero.  INVALID_ARGUMENT (NULL, size),
// UNSUPPORTED (fields of a later release that are set).
template <typename T>
Status ReadStruct(const T* in, T* out) {
  return ReadBytes(in, StructInfo<T>::kName, StructInfo<T>::kFirstSize, sizeof(T), out);
}

// INVALID_ARGUMENT for NULL or a size that cannot be.
template <typename T>
Status CheckOutput(const T* out) {
  return CheckOutputSize(out, StructInfo<T>::kName);
}

// Writes as much of `value` as the caller has room for, and how much that was.
template <typename T>
Status WriteStruct(T value, T* out) {
  CKPT_RETURN_IF_ERROR(CheckOutput(out));
  WriteBytes(&value, sizeof(T), out);
  return Status();
}

}  // namespace ckpt::capi

#endif  // CKPT_CAPI_STRUCTS_H_
