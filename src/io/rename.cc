// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Names within one folder: rename in its three kinds, link, unlink.  Who must fsync the folder, and
// when, is the store's business.  Test: tests/unit/io/rename_test.cc
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "io/io.h"
#include "io/posix.h"
#include "util/text.h"

namespace ckpt {
namespace {

// "rename `dir`/`from` to `to`": what to say of an operation with two names.
Status PairStatus(int err, std::string_view what, std::string_view dir, std::string_view from,
                  std::string_view to) {
  return IoStatus(err, Cat(what, " ", JoinPath(dir, from), " to"), JoinPath(dir, to));
}

Status CheckPair(std::string_view a, std::string_view b, std::string_view dir) {
  CKPT_RETURN_IF_ERROR(CheckComponent(a, dir));
  return CheckComponent(b, dir);
}

// renameat2 through syscall(2): the C library has had a wrapper only since glibc 2.28.
int RenameAt2(int dir, const std::string& from, const std::string& to, unsigned flags) {
  return static_cast<int>(RetryEintr(
      [&] { return ::syscall(SYS_renameat2, dir, from.c_str(), dir, to.c_str(), flags); }));
}

// A kernel or file system without the flag (NFS, FUSE).
bool FlagRefused(int err) { return err == EINVAL || err == ENOSYS || err == ENOTSUP; }

}  // namespace

Status Dir::RenameNoReplace(std::string_view from, std::string_view to) const {
  CKPT_RETURN_IF_ERROR(CheckPair(from, to, path_));
  if (RenameAt2(fd(), std::string(from), std::string(to), RENAME_NOREPLACE) == 0) return Status();
  if (!FlagRefused(errno)) return PairStatus(errno, "rename", path_, from, to);
  // Look, then rename.  Safe although not atomic: only the owner of a root makes step names in it,
  // and it does so one after the other; rename(2) itself refuses a folder that is not empty.
  CKPT_ASSIGN_OR_RETURN(const bool taken, Exists(to));
  if (taken) return PairStatus(EEXIST, "rename", path_, from, to);
  return Rename(from, to);
}

Status Dir::RenameExchange(std::string_view a, std::string_view b) const {
  CKPT_RETURN_IF_ERROR(CheckPair(a, b, path_));
  if (RenameAt2(fd(), std::string(a), std::string(b), RENAME_EXCHANGE) == 0) return Status();
  const Status status = PairStatus(errno, "exchange", path_, a, b);
  if (!FlagRefused(status.cause().sys_errno)) return status;
  return Status(Code::kUnsupported, status.message(), status.cause());
}

Status Dir::Rename(std::string_view from, std::string_view to) const {
  CKPT_RETURN_IF_ERROR(CheckPair(from, to, path_));
  const std::string a(from), b(to);
  const int rc = RetryEintr([&] { return ::renameat(fd(), a.c_str(), fd(), b.c_str()); });
  return rc == 0 ? Status() : PairStatus(errno, "rename", path_, from, to);
}

Status Dir::Link(std::string_view from, std::string_view to) const {
  CKPT_RETURN_IF_ERROR(CheckPair(from, to, path_));
  const std::string a(from), b(to);
  const int rc = RetryEintr([&] { return ::linkat(fd(), a.c_str(), fd(), b.c_str(), 0); });
  return rc == 0 ? Status() : PairStatus(errno, "link", path_, from, to);
}

Status Dir::Unlink(std::string_view name) const {
  CKPT_RETURN_IF_ERROR(CheckComponent(name, path_));
  const std::string own(name);
  const int rc = RetryEintr([&] { return ::unlinkat(fd(), own.c_str(), 0); });
  if (rc == 0 || errno == ENOENT) return Status();
  return IoStatus(errno, "unlink", JoinPath(path_, name));
}

}  // namespace ckpt
