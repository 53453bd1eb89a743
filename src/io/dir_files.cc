// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of a folder: open, create, and small ones whole.  Test: tests/unit/io/dir_files_test.cc
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "io/io.h"
#include "io/posix.h"
#include "util/text.h"

namespace ckpt {
namespace {

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Status NotRegular(const std::string& path) {
  Cause cause;
  cause.path = path;
  return Status(Code::kCorrupt, Cat("open ", path, ": not a regular file"), std::move(cause));
}

Status OpenError(int err, const std::string& path) {
  Status status = IoStatus(err, "open", path);
  if (err != ELOOP) return status;
  return status.WithMessage(status.message() + "; links are not followed");
}

// Opens a regular file and says which.  O_NONBLOCK: a FIFO that somebody put there must not hang
// us; EAGAIN is a lease on a regular file, which a blocking open waits out.
Result<Fd> OpenRegular(int at, const std::string& name, int flags, const std::string& path,
                       struct stat* st) {
  const int all = flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
  Fd fd(RetryEintr([&] { return ::openat(at, name.c_str(), all | O_NONBLOCK, 0666); }));
  if (!fd.valid() && errno == EAGAIN) {
    fd = Fd(RetryEintr([&] { return ::openat(at, name.c_str(), all, 0666); }));
  }
  if (!fd.valid()) return OpenError(errno, path);
  if (::fstat(fd.get(), st) != 0) return IoStatus(errno, "stat", path);
  if (!S_ISREG(st->st_mode)) return NotRegular(path);
  if (::fcntl(fd.get(), F_SETFL, flags & O_DIRECT) != 0) return IoStatus(errno, "open", path);
  return fd;
}

// The second, direct descriptor of a file that is open already; invalid where kAuto has to do
// without.
Result<Fd> OpenDirect(int at, const std::string& name, int access, DirectIo direct,
                      const std::string& path, const struct stat& opened) {
  if (direct == DirectIo::kOff) return Fd();
  struct stat st;
  auto fd = OpenRegular(at, name, access | O_DIRECT, path, &st);
  if (fd.ok() && SameFile(st, opened)) return fd;
  if (fd.ok()) return Status(Code::kIo, Cat("open ", path, ": replaced by another file meanwhile"));
  const Cause cause = fd.status().cause();
  if (cause.sys_errno != EINVAL) return fd.status();
  if (direct == DirectIo::kAuto) return Fd();
  return Status(Code::kUnsupported,
                Cat("open ", path, " for direct I/O: the file system refuses it"), cause);
}

}  // namespace

Result<File> Dir::OpenFile(std::string_view name, FileMode mode, DirectIo direct) const {
  CKPT_RETURN_IF_ERROR(CheckComponent(name, path_));
  const int access = mode == FileMode::kRead ? O_RDONLY : O_RDWR;
  const std::string own(name);
  File file;
  file.path_ = JoinPath(path_, name);
  file.direct_required_ = direct == DirectIo::kOn;
  struct stat st;
  CKPT_ASSIGN_OR_RETURN(file.fd_, OpenRegular(fd(), own, access, file.path_, &st));
  CKPT_ASSIGN_OR_RETURN(file.direct_, OpenDirect(fd(), own, access, direct, file.path_, st));
  return file;
}

Result<File> Dir::CreateFile(std::string_view name, DirectIo direct) const {
  CKPT_RETURN_IF_ERROR(CheckComponent(name, path_));
  const std::string own(name);
  File file;
  file.path_ = JoinPath(path_, name);
  file.direct_required_ = direct == DirectIo::kOn;
  struct stat st;
  CKPT_ASSIGN_OR_RETURN(file.fd_,
                        OpenRegular(fd(), own, O_RDWR | O_CREAT | O_EXCL, file.path_, &st));
  auto second = OpenDirect(fd(), own, O_RDWR, direct, file.path_, st);
  if (!second.ok()) {
    (void)Unlink(name);  // ours, by O_EXCL; the first error is the one that counts
    return second.status();
  }
  file.direct_ = std::move(second).value();
  return file;
}

Result<std::string> Dir::ReadFile(std::string_view name, uint64_t max_bytes) const {
  CKPT_ASSIGN_OR_RETURN(const File file, OpenFile(name, FileMode::kRead, DirectIo::kOff));
  CKPT_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size > max_bytes) {
    Cause cause;
    cause.path = file.path();
    return Status(Code::kLimit,
                  Cat("read ", file.path(), ": ", size, " bytes exceed the limit of ", max_bytes),
                  std::move(cause));
  }
  std::string content(size, '\0');
  CKPT_RETURN_IF_ERROR(file.ReadAt(content.data(), content.size(), 0));
  return content;
}

Status Dir::WriteFile(std::string_view name, std::string_view content) const {
  CKPT_ASSIGN_OR_RETURN(File file, CreateFile(name, DirectIo::kOff));
  Status status = file.WriteAt(content.data(), content.size(), 0);
  if (status.ok()) status = file.Sync();
  if (status.ok()) status = file.Close();
  if (!status.ok()) (void)Unlink(name);  // half a file is worse than none; ours, by O_EXCL
  return status;
}

Status Dir::ReplaceFile(std::string_view name, std::string_view content) const {
  CKPT_RETURN_IF_ERROR(CheckComponent(name, path_));
  const std::string temporary = Cat(".", name, ".tmp");
  CKPT_RETURN_IF_ERROR(Unlink(temporary));
  CKPT_RETURN_IF_ERROR(WriteFile(temporary, content));
  const Status status = Rename(temporary, name);
  if (!status.ok()) (void)Unlink(temporary);
  return status;
}

}  // namespace ckpt
