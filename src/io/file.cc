// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes to and from one open file, buffered or direct.  Test: tests/unit/io/file_test.cc
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "io/io.h"
#include "io/posix.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

Status CheckRange(const char* what, const std::string& path, uint64_t n, uint64_t offset) {
  const auto end = CheckedAdd(offset, n);
  if (end && *end <= static_cast<uint64_t>(INT64_MAX)) return Status();
  return Status(Code::kInvalidArgument,
                Cat(what, " ", path, ": ", n, " bytes at ", offset, " exceed the largest offset"));
}

Status Short(const std::string& path, uint64_t n, uint64_t offset, uint64_t got) {
  Cause cause;
  cause.path = path;
  return Status(Code::kCorrupt,
                Cat("read ", path, ": ", n - got, " bytes short of ", n, " at offset ", offset),
                std::move(cause));
}

Status DirectRefused(const char* what, const std::string& path) {
  Cause cause;
  cause.path = path;
  cause.sys_errno = EINVAL;
  return Status(Code::kUnsupported, Cat(what, " ", path, ": the file system refuses direct I/O"),
                std::move(cause));
}

// The direct part of a block: 0 where memory or offset is not aligned.
uint64_t DirectBytes(const void* data, uint64_t n, uint64_t offset) {
  if (reinterpret_cast<uintptr_t>(data) % kDirectAlign != 0) return 0;
  return offset % kDirectAlign == 0 ? RoundDown(n, kDirectAlign) : 0;
}

// Moves the aligned front of a block by `step`.  A short count may end between two alignment
// units; the caller moves the rest through the buffered descriptor.
template <typename Step>
Moved MoveDirect(const void* data, uint64_t n, uint64_t offset, Step step) {
  const uint64_t direct = DirectBytes(data, n, offset);
  return MoveAll(direct, [&](uint64_t done) -> ssize_t {
    return done % kDirectAlign == 0 ? step(done, direct - done) : 0;
  });
}

}  // namespace

Result<uint64_t> File::Size() const {
  struct stat st;
  if (RetryEintr([&] { return ::fstat(fd_.get(), &st); }) != 0) {
    return IoStatus(errno, "stat", path_);
  }
  return static_cast<uint64_t>(st.st_size);
}

Status File::ReadAt(void* data, size_t n, uint64_t offset) const {
  CKPT_RETURN_IF_ERROR(CheckRange("read", path_, n, offset));
  char* out = static_cast<char*>(data);
  const Moved moved = MoveAll(n, [&](uint64_t done) {
    return ::pread(fd_.get(), out + done, n - done, static_cast<off_t>(offset + done));
  });
  if (moved.error != 0) return IoStatus(moved.error, "read", path_);
  return moved.bytes == n ? Status() : Short(path_, n, offset, moved.bytes);
}

Status File::WriteAt(const void* data, size_t n, uint64_t offset) const {
  CKPT_RETURN_IF_ERROR(CheckRange("write", path_, n, offset));
  const char* in = static_cast<const char*>(data);
  const Moved moved = MoveAll(n, [&](uint64_t done) {
    return ::pwrite(fd_.get(), in + done, n - done, static_cast<off_t>(offset + done));
  });
  if (moved.error != 0) return IoStatus(moved.error, "write", path_);
  return moved.bytes == n ? Status() : IoStatus(EIO, "write (nothing accepted)", path_);
}

Status File::WriteBlock(const void* data, size_t n, uint64_t offset) const {
  if (!direct_.valid()) return WriteAt(data, n, offset);
  CKPT_RETURN_IF_ERROR(CheckRange("write", path_, n, offset));
  const char* in = static_cast<const char*>(data);
  const Moved moved = MoveDirect(data, n, offset, [&](uint64_t done, uint64_t count) {
    return ::pwrite(direct_.get(), in + done, count, static_cast<off_t>(offset + done));
  });
  if (moved.error == EINVAL && direct_required_) return DirectRefused("write", path_);
  if (moved.error != 0 && moved.error != EINVAL) return IoStatus(moved.error, "write", path_);
  return WriteAt(in + moved.bytes, n - moved.bytes, offset + moved.bytes);
}

Status File::ReadBlock(void* data, size_t n, uint64_t offset) const {
  if (!direct_.valid()) return ReadAt(data, n, offset);
  CKPT_RETURN_IF_ERROR(CheckRange("read", path_, n, offset));
  char* out = static_cast<char*>(data);
  const Moved moved = MoveDirect(data, n, offset, [&](uint64_t done, uint64_t count) {
    return ::pread(direct_.get(), out + done, count, static_cast<off_t>(offset + done));
  });
  if (moved.error == EINVAL && direct_required_) return DirectRefused("read", path_);
  if (moved.error != 0 && moved.error != EINVAL) return IoStatus(moved.error, "read", path_);
  return ReadAt(out + moved.bytes, n - moved.bytes, offset + moved.bytes);
}

Status File::Preallocate(uint64_t bytes) const {
  CKPT_RETURN_IF_ERROR(CheckRange("preallocate", path_, bytes, 0));
  if (bytes == 0) return Status();
  const auto length = static_cast<off_t>(bytes);
  if (RetryEintr([&] { return ::fallocate(fd_.get(), 0, 0, length); }) == 0) return Status();
  if (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS) {
    return IoStatus(errno, "preallocate", path_);
  }
  CKPT_ASSIGN_OR_RETURN(const uint64_t size, Size());
  if (size >= bytes) return Status();  // ftruncate would cut
  if (RetryEintr([&] { return ::ftruncate(fd_.get(), length); }) != 0) {
    return IoStatus(errno, "extend", path_);
  }
  return Status();
}

Status File::Sync() const { return SyncFd(fd_.get(), path_); }

Status File::Close() {
  direct_.Reset();
  const int fd = fd_.Release();
  // EINTR: the descriptor is gone, and what must be on disk was synced before.
  if (fd < 0 || ::close(fd) == 0 || errno == EINTR) return Status();
  return IoStatus(errno, "close", path_);
}

}  // namespace ckpt
