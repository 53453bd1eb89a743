// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What file.cc, dir.cc, rename.cc and tree.cc share: EINTR, short counts, errno to Status, names.
// Private to src/io.  Pure but for the calls passed in; any thread.
// Test: tests/unit/io/posix_test.cc
#ifndef CKPT_IO_POSIX_H_
#define CKPT_IO_POSIX_H_

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/io.h"
#include "util/status.h"

namespace ckpt {

// Repeats `call` while it returns -1 with EINTR.
template <typename Call>
auto RetryEintr(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

// How far a transfer came; `error` is 0 when all was moved or the source ended.
struct Moved {
  uint64_t bytes = 0;
  int error = 0;
};

// Calls `step(done)`, which moves bytes from `done` on and returns their number like pread, until
// `n` are moved, it returns 0, or it fails with something other than EINTR.
template <typename Step>
Moved MoveAll(uint64_t n, Step step) {
  Moved moved;
  while (moved.bytes < n) {
    const ssize_t got = RetryEintr([&] { return step(moved.bytes); });
    if (got < 0) {
      moved.error = errno;
      break;
    }
    if (got == 0) break;
    moved.bytes += static_cast<uint64_t>(got);
  }
  return moved;
}

// ErrnoStatus, with ENOENT as NOT_FOUND and EEXIST, ENOTEMPTY as EXISTS.
Status IoStatus(int err, std::string_view what, std::string_view path);

// INVALID_ARGUMENT unless `name` is one component that stays in its folder.
Status CheckComponent(std::string_view name, std::string_view dir_path);

// "dir/name" for messages.
std::string JoinPath(std::string_view dir, std::string_view name);

// open(2) of a folder; `flags` is added to O_RDONLY|O_DIRECTORY|O_CLOEXEC.
Result<Fd> OpenFolder(int at, const std::string& name, int flags, std::string_view path);

Status SyncFd(int fd, std::string_view path);

}  // namespace ckpt

#endif  // CKPT_IO_POSIX_H_
