// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What stands behind the opaque handles of ckpt.h, and whether one may be used now.
// Test: tests/conformance/order.c, fork.c
#ifndef CKPT_CAPI_HANDLES_H_
#define CKPT_CAPI_HANDLES_H_

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ckpt.h"
#include "core/core.h"

struct ckpt_error {
  ckpt::Status status;  // plain memory: outlives everything
};

struct ckpt_ctx {
  pid_t pid = 0;  // of the process that made it (R8)
  std::shared_ptr<ckpt::Session> session;
  // Calls of ckpt_notify_signal, and how many of them an advise has told to all ranks.  Counts, so
  // that a signal during an advise is left for the next one.
  std::atomic<uint32_t> notified{0}, told{0};
  static_assert(std::atomic<uint32_t>::is_always_lock_free, "touched by signal handlers");
};

struct ckpt_state {
  pid_t pid = 0;
  // weak: freeing the context is what its peers see, whatever states are left over.
  std::weak_ptr<ckpt::Session> session;
  ckpt::State state;
};

struct ckpt_reader {
  pid_t pid = 0;
  std::unique_ptr<ckpt::Reader> reader;
  std::vector<std::string> step_paths;  // as reader->steps()
  struct Tensor {
    std::string file;
    const ckpt::PlacedTensor* tensor = nullptr;  // in the reader's catalog
    std::string name, alias_of;                  // a foreign U+0000 shown escaped
    ckpt::Dims shape;                            // in elements
  };
  std::vector<Tensor> tensors;  // then the aliases
};

namespace ckpt::capi {

// INVALID_ARGUMENT (NULL), FORKED, STATE (finalized).
Status CheckCtx(const ckpt_ctx* c);
// The same for a state; STATE also when its context was freed.
Status CheckState(const ckpt_state* s);
Status CheckReader(const ckpt_reader* r);
// FORKED if `pid` is not this process.
Status CheckPid(pid_t pid, const char* what);
bool IsForked(pid_t pid);

}  // namespace ckpt::capi

#endif  // CKPT_CAPI_HANDLES_H_
