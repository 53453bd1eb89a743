// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Connections that forked children must not keep open: a data loader's worker that outlives its
// killed trainer would otherwise hide that death from the peers.  (Children that exec need no help:
// every descriptor is close-on-exec.)  Thread-safe.  Test: tests/unit/comm/fault_test.cc
#ifndef CKPT_COMM_FORK_GUARD_H_
#define CKPT_COMM_FORK_GUARD_H_

namespace ckpt {

class ForkGuard {
 public:
  // From now on a child made by fork() closes its copy of `fd`.  Best effort: beyond 4096
  // descriptors of one process nothing happens.
  explicit ForkGuard(int fd);
  ~ForkGuard() { Release(); }
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  // Before the descriptor is closed: its number may be given to somebody else at once.
  void Release();

 private:
  int slot_ = -1;
};

}  // namespace ckpt

#endif  // CKPT_COMM_FORK_GUARD_H_
