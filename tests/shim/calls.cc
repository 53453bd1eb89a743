// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The C library's file calls, defined once more: ask state.cc, then do the real one. A call that
// shim_test.cc finds missing is added here.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shim/state.h"

#define SHIM_EXPORT __attribute__((visibility("default")))

using shim::Active;
using shim::ActiveForReads;
using shim::Before;
using shim::Next;
using shim::Order;
using shim::PathAt;
using shim::PathOf;

namespace {

// 0, or -1 with errno set.
int Ask(const char* op, const std::string& path, const std::string& to = {}) {
  const Order order = Before(op, path, to);
  if (order.error == 0) return 0;
  errno = order.error;
  return -1;
}

const char* RenameOp(unsigned flags) {
  if (flags & RENAME_EXCHANGE) return "exchange";
  return flags & RENAME_NOREPLACE ? "noreplace" : "rename";
}

// A descriptor on what the environment says instead of the kernel's boot id; -1: it says nothing.
int FakeBootId(const char* path) {
  if (path == nullptr || std::strcmp(path, "/proc/sys/kernel/random/boot_id") != 0) return -1;
  const char* id = std::getenv("SHIM_BOOT_ID");
  if (id == nullptr || *id == '\0') return -1;
  const std::string text = std::string(id) + "\n";
  const int fd = memfd_create("boot_id", MFD_CLOEXEC);
  if (fd < 0 || pwrite(fd, text.data(), text.size(), 0) < 0) abort();
  return fd;
}

const char* FakeHost() {
  const char* host = std::getenv("SHIM_HOST");
  return host != nullptr && *host != '\0' ? host : nullptr;
}

template <typename OpenNext>
int Open(int at, const char* name, int flags, OpenNext next) {
  const int fake = FakeBootId(name);
  if (fake >= 0) return fake;
  if (Active() && (flags & O_CREAT) && Ask("create", PathAt(at, name)) != 0) return -1;
  return next();
}

// `next` transfers at most the bytes that it is given.
template <typename WriteNext>
ssize_t Write(int fd, size_t bytes, WriteNext next) {
  if (!Active()) return next(bytes);
  const Order order = Before("write", PathOf(fd));
  if (order.error != 0) {
    errno = order.error;
    return -1;
  }
  shim::NoteWritten(fd);
  return next(static_cast<size_t>(std::min<uint64_t>(bytes, order.limit)));
}

// A vectored write that is cut short is one of its first vector only.
template <typename WriteNext>
ssize_t WriteVector(int fd, const iovec* vector, int count, WriteNext next) {
  return Write(fd, SIZE_MAX, [&](size_t limit) {
    if (limit == SIZE_MAX || count < 1) return next(vector, count);
    const iovec first = {vector->iov_base, std::min(vector->iov_len, limit)};
    return next(&first, 1);
  });
}

}  // namespace

#define NEXT(name) static const auto next = Next<decltype(&::name)>(#name)

extern "C" {

#define SHIM_OPEN(name)                                        \
  SHIM_EXPORT int name(const char* path, int flags, ...) {     \
    NEXT(name);                                                \
    va_list arguments;                                         \
    va_start(arguments, flags);                                \
    const mode_t mode = va_arg(arguments, mode_t);             \
    va_end(arguments);                                         \
    const auto call = [&] { return next(path, flags, mode); }; \
    return Open(AT_FDCWD, path, flags, call);                  \
  }
#define SHIM_OPENAT(name)                                          \
  SHIM_EXPORT int name(int at, const char* path, int flags, ...) { \
    NEXT(name);                                                    \
    va_list arguments;                                             \
    va_start(arguments, flags);                                    \
    const mode_t mode = va_arg(arguments, mode_t);                 \
    va_end(arguments);                                             \
    const auto call = [&] { return next(at, path, flags, mode); }; \
    return Open(at, path, flags, call);                            \
  }
SHIM_OPEN(open)
SHIM_OPEN(open64)
SHIM_OPENAT(openat)
SHIM_OPENAT(openat64)

SHIM_EXPORT FILE* fopen(const char* path, const char* mode) {
  NEXT(fopen);
  const int fake = FakeBootId(path);
  return fake >= 0 ? fdopen(fake, mode) : next(path, mode);
}

SHIM_EXPORT ssize_t write(int fd, const void* data, size_t bytes) {
  NEXT(write);
  return Write(fd, bytes, [&](size_t n) { return next(fd, data, n); });
}
SHIM_EXPORT ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  NEXT(pwrite);
  return Write(fd, bytes, [&](size_t n) { return next(fd, data, n, offset); });
}
SHIM_EXPORT ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
  NEXT(pwrite64);
  return Write(fd, bytes, [&](size_t n) { return next(fd, data, n, offset); });
}
SHIM_EXPORT ssize_t writev(int fd, const iovec* vector, int count) {
  NEXT(writev);
  return WriteVector(fd, vector, count, [&](const iovec* v, int n) { return next(fd, v, n); });
}
SHIM_EXPORT ssize_t pwritev(int fd, const iovec* vector, int count, off_t offset) {
  NEXT(pwritev);
  return WriteVector(fd, vector, count,
                     [&](const iovec* v, int n) { return next(fd, v, n, offset); });
}
SHIM_EXPORT ssize_t pwritev2(int fd, const iovec* vector, int count, off_t offset, int flags) {
  NEXT(pwritev2);
  return WriteVector(fd, vector, count,
                     [&](const iovec* v, int n) { return next(fd, v, n, offset, flags); });
}

SHIM_EXPORT ssize_t read(int fd, void* data, size_t bytes) {
  NEXT(read);
  return ActiveForReads() && Ask("read", PathOf(fd)) != 0 ? -1 : next(fd, data, bytes);
}
SHIM_EXPORT ssize_t pread(int fd, void* data, size_t bytes, off_t offset) {
  NEXT(pread);
  return ActiveForReads() && Ask("read", PathOf(fd)) != 0 ? -1 : next(fd, data, bytes, offset);
}
SHIM_EXPORT ssize_t pread64(int fd, void* data, size_t bytes, off64_t offset) {
  NEXT(pread64);
  return ActiveForReads() && Ask("read", PathOf(fd)) != 0 ? -1 : next(fd, data, bytes, offset);
}

SHIM_EXPORT int fsync(int fd) {
  NEXT(fsync);
  return Active() && Ask("fsync", PathOf(fd)) != 0 ? -1 : next(fd);
}
SHIM_EXPORT int fdatasync(int fd) {
  NEXT(fdatasync);
  return Active() && Ask("fsync", PathOf(fd)) != 0 ? -1 : next(fd);
}
SHIM_EXPORT int ftruncate(int fd, off_t length) noexcept {
  NEXT(ftruncate);
  return Active() && Ask("truncate", PathOf(fd)) != 0 ? -1 : next(fd, length);
}
SHIM_EXPORT int fallocate(int fd, int mode, off_t offset, off_t length) {
  NEXT(fallocate);
  return Active() && Ask("allocate", PathOf(fd)) != 0 ? -1 : next(fd, mode, offset, length);
}

SHIM_EXPORT int close(int fd) {
  NEXT(close);
  if (!Active() || !shim::ForgetWritten(fd)) return next(fd);
  const Order order = Before("close", PathOf(fd));
  const int rc = next(fd);  // the descriptor goes even where close reports an error
  if (order.error == 0) return rc;
  errno = order.error;
  return -1;
}

SHIM_EXPORT int mkdir(const char* path, mode_t mode) noexcept {
  NEXT(mkdir);
  return Active() && Ask("mkdir", PathAt(AT_FDCWD, path)) != 0 ? -1 : next(path, mode);
}
SHIM_EXPORT int mkdirat(int at, const char* name, mode_t mode) noexcept {
  NEXT(mkdirat);
  return Active() && Ask("mkdir", PathAt(at, name)) != 0 ? -1 : next(at, name, mode);
}
SHIM_EXPORT int unlink(const char* path) noexcept {
  NEXT(unlink);
  return Active() && Ask("unlink", PathAt(AT_FDCWD, path)) != 0 ? -1 : next(path);
}
SHIM_EXPORT int rmdir(const char* path) noexcept {
  NEXT(rmdir);
  return Active() && Ask("rmdir", PathAt(AT_FDCWD, path)) != 0 ? -1 : next(path);
}
SHIM_EXPORT int unlinkat(int at, const char* name, int flags) noexcept {
  NEXT(unlinkat);
  const char* op = flags & AT_REMOVEDIR ? "rmdir" : "unlink";
  return Active() && Ask(op, PathAt(at, name)) != 0 ? -1 : next(at, name, flags);
}
SHIM_EXPORT int link(const char* from, const char* to) noexcept {
  NEXT(link);
  const bool refused = Active() && Ask("link", PathAt(AT_FDCWD, from), PathAt(AT_FDCWD, to)) != 0;
  return refused ? -1 : next(from, to);
}
SHIM_EXPORT int linkat(int a, const char* from, int b, const char* to, int flags) noexcept {
  NEXT(linkat);
  const bool refused = Active() && Ask("link", PathAt(a, from), PathAt(b, to)) != 0;
  return refused ? -1 : next(a, from, b, to, flags);
}
SHIM_EXPORT int rename(const char* from, const char* to) noexcept {
  NEXT(rename);
  const bool refused = Active() && Ask("rename", PathAt(AT_FDCWD, from), PathAt(AT_FDCWD, to)) != 0;
  return refused ? -1 : next(from, to);
}
SHIM_EXPORT int renameat(int a, const char* from, int b, const char* to) noexcept {
  NEXT(renameat);
  const bool refused = Active() && Ask("rename", PathAt(a, from), PathAt(b, to)) != 0;
  return refused ? -1 : next(a, from, b, to);
}
SHIM_EXPORT int renameat2(int a, const char* from, int b, const char* to, unsigned flags) noexcept {
  NEXT(renameat2);
  const bool refused = Active() && Ask(RenameOp(flags), PathAt(a, from), PathAt(b, to)) != 0;
  return refused ? -1 : next(a, from, b, to, flags);
}

// libckpt calls renameat2 by number, for old C libraries. Six words are what any call may have.
SHIM_EXPORT long syscall(long number, ...) noexcept {
  NEXT(syscall);
  va_list arguments;
  va_start(arguments, number);
  long w[6];
  for (long& word : w) word = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_renameat2 && Active()) {
    const auto name = [](long word) { return reinterpret_cast<const char*>(word); };
    const std::string from = PathAt(static_cast<int>(w[0]), name(w[1]));
    const std::string to = PathAt(static_cast<int>(w[2]), name(w[3]));
    if (Ask(RenameOp(static_cast<unsigned>(w[4])), from, to) != 0) return -1;
  }
  return next(number, w[0], w[1], w[2], w[3], w[4], w[5]);
}

SHIM_EXPORT int gethostname(char* name, size_t bytes) noexcept {
  NEXT(gethostname);
  const char* host = FakeHost();
  if (host == nullptr) return next(name, bytes);
  if (std::strlen(host) >= bytes) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::strcpy(name, host);
  return 0;
}
SHIM_EXPORT int uname(utsname* out) noexcept {
  NEXT(uname);
  const int rc = next(out);
  if (rc == 0 && FakeHost() != nullptr) {
    std::snprintf(out->nodename, sizeof out->nodename, "%s", FakeHost());
  }
  return rc;
}
}
