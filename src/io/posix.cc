// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared helpers of src/io and the owner of a descriptor.  Test: tests/unit/io/posix_test.cc
#include "io/posix.h"

#include <fcntl.h>
#include <unistd.h>

#include "util/text.h"

namespace ckpt {

void Fd::Reset() {
  // Linux frees the descriptor even when close is interrupted: a second close could hit a
  // stranger's.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Status IoStatus(int err, std::string_view what, std::string_view path) {
  Status status = ErrnoStatus(err, what, path);
  Code code = status.code();
  if (err == ENOENT) code = Code::kNotFound;
  if (err == EEXIST || err == ENOTEMPTY) code = Code::kExists;
  return Status(code, status.message(), status.cause());
}

Status CheckComponent(std::string_view name, std::string_view dir_path) {
  const bool bad = name.empty() || name == "." || name == ".." ||
                   name.find('/') != std::string_view::npos ||
                   name.find('\0') != std::string_view::npos;
  if (!bad) return Status();
  return Status(Code::kInvalidArgument,
                Cat("name \"", Printable(name), "\" in ", dir_path, ": not a plain file name"));
}

std::string JoinPath(std::string_view dir, std::string_view name) {
  return dir.empty() || dir.back() == '/' ? Cat(dir, name) : Cat(dir, "/", name);
}

Result<Fd> OpenFolder(int at, const std::string& name, int flags, std::string_view path) {
  Fd fd(RetryEintr(
      [&] { return ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags); }));
  if (!fd.valid()) return IoStatus(errno, "open folder", path);
  return fd;
}

Status SyncFd(int fd, std::string_view path) {
  if (RetryEintr([&] { return ::fsync(fd); }) != 0) return IoStatus(errno, "fsync", path);
  return Status();
}

}  // namespace ckpt
