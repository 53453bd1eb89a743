// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Every function of the ABI as a pointer, found in $CKPT_LIB with dlsym: the suite links no
// library, so that it can judge any.  Nothing calls ckpt_...() by name; it is api.xxx() everywhere.
#ifndef CKPT_TESTS_CONFORMANCE_API_H_
#define CKPT_TESTS_CONFORMANCE_API_H_

#include "ckpt.h"

#define CKPT_FUNCTIONS(X) \
  X(abi_version)          \
  X(rank)                 \
  X(size)                 \
  X(status_name)          \
  X(version_string)       \
  X(has_feature)          \
  X(error_status)         \
  X(error_message)        \
  X(error_rank_count)     \
  X(error_rank)           \
  X(error_get_cause)      \
  X(error_free)           \
  X(init)                 \
  X(finalize)             \
  X(ctx_free)             \
  X(set_phase)            \
  X(notify_signal)        \
  X(advise)               \
  X(state_new)            \
  X(state_add_tensors)    \
  X(state_add_alias)      \
  X(state_update)         \
  X(state_add_blob)       \
  X(state_update_blob)    \
  X(state_rename)         \
  X(state_free)           \
  X(save_collective)      \
  X(load)                 \
  X(state_name)           \
  X(latest)               \
  X(poll)                 \
  X(request_result)       \
  X(fence)                \
  X(wait)                 \
  X(request_status)       \
  X(background)           \
  X(request_fd)           \
  X(cancel)               \
  X(request_free)         \
  X(pin)                  \
  X(mark_bad)             \
  X(open)                 \
  X(reader_checkpoint)    \
  X(reader_tensor)        \
  X(reader_file)          \
  X(reader_file_writer)   \
  X(reader_blob)          \
  X(reader_read_blob)     \
  X(reader_read)          \
  X(reader_map)           \
  X(reader_verify)        \
  X(reader_free)

struct api {
#define X(name) __typeof__(&ckpt_##name) name;
  CKPT_FUNCTIONS(X)
#undef X
};
extern struct api api;

// Fills `api`; ends the process, with words, if the library or a function is not there.
void load_api(void);
const char* library_path(void);

#endif  // CKPT_TESTS_CONFORMANCE_API_H_
