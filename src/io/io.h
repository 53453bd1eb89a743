// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Files and folders: the only code of the library that calls write, fsync, rename and their kin.
// Every call retries EINTR and continues short counts; every error is a Status that names the
// operation and the path, with errno in cause.sys_errno.  Folders are opened with
// O_DIRECTORY|O_NOFOLLOW relative to a Dir where one is given; every descriptor is O_CLOEXEC. Files
// are made with 0666 & ~umask, folders 0777 & ~umask. Dir and File: move-only; const functions may
// be called by several threads at once. Test: tests/unit/io/
#ifndef CKPT_IO_IO_H_
#define CKPT_IO_IO_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "util/status.h"

namespace ckpt {

class Fd {  // owns a descriptor
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Reset(); }
  Fd(Fd&& o) noexcept : fd_(o.Release()) {}
  Fd& operator=(Fd&& o) noexcept {
    if (this != &o) {
      Reset();
      fd_ = o.Release();
    }
    return *this;
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void Reset();

 private:
  int fd_ = -1;
};

// Page-aligned memory, reused; not initialised.  NO_MEMORY when refused.
class AlignedBuffer {
 public:
  static Result<AlignedBuffer> Make(size_t bytes);
  AlignedBuffer() = default;
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& o) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& o) noexcept;
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

inline constexpr uint64_t kDirectAlign = 4096;  // of memory, offset and length for direct I/O

enum class FileMode { kRead, kReadWrite };
enum class DirectIo {
  kOff,
  kAuto,
  kOn
};  // io.direct; kAuto falls back where the file system refuses

class File {
 public:
  File() = default;
  const std::string& path() const { return path_; }  // for messages
  bool valid() const { return fd_.valid(); }
  // Whether WriteBlock/ReadBlock use a direct descriptor.
  bool direct() const { return direct_.valid(); }

  Result<uint64_t> Size() const;
  // Exactly n bytes at offset, or an error; a read past the end is CORRUPT ("n bytes short").
  Status ReadAt(void* data, size_t n, uint64_t offset) const;
  Status WriteAt(const void* data, size_t n, uint64_t offset) const;
  // As above, through O_DIRECT where data, n and offset are multiples of kDirectAlign and the file
  // has it; the unaligned tail of a file goes through the buffered descriptor.
  Status WriteBlock(const void* data, size_t n, uint64_t offset) const;
  Status ReadBlock(void* data, size_t n, uint64_t offset) const;
  // Extends to `bytes`; fallocate (KEEP_SIZE off), ftruncate where that is refused (EOPNOTSUPP,
  // EINVAL, ENOSYS): never glibc's emulation, which writes.  NO_SPACE is an error.
  Status Preallocate(uint64_t bytes) const;
  Status Sync() const;
  Status Close();  // reports close errors

 private:
  friend class Dir;
  Fd fd_, direct_;
  bool direct_required_ = false;  // DirectIo::kOn: no fallback at run time either
  std::string path_;
};

struct DirEntry {
  std::string name;
  bool is_dir = false;
};

class Dir {
 public:
  Dir() = default;
  // Absolute or relative to the working directory at the time of the call; the path kept for
  // messages is absolute. NOT_FOUND when it does not exist; symbolic links in the user's own path
  // are followed.
  static Result<Dir> Open(const std::string& path);
  // mkdir -p, then Open; the parents of what was made are synced.
  static Result<Dir> Make(const std::string& path);

  const std::string& path() const { return path_; }
  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }

  // `name` is one component: no '/', not "." or "..": INVALID_ARGUMENT otherwise.  Links are not
  // followed.
  Result<Dir> OpenDir(std::string_view name) const;                                    // NOT_FOUND
  Status MakeDir(std::string_view name) const;                                         // EXISTS
  Result<File> OpenFile(std::string_view name, FileMode mode, DirectIo direct) const;  // NOT_FOUND
  Result<File> CreateFile(std::string_view name,
                          DirectIo direct) const;  // O_EXCL: EXISTS; read-write
  // Whole small file; LIMIT above max_bytes (checked before allocation).
  Result<std::string> ReadFile(std::string_view name, uint64_t max_bytes) const;
  // Creates (O_EXCL) and syncs a small file.
  Status WriteFile(std::string_view name, std::string_view content) const;
  // temp + rename over the name, file synced; the folder is not.  The temporary is ".<name>.tmp";
  // one that a crash left is replaced.  REQUIRES: one writer per name at a time.
  Status ReplaceFile(std::string_view name, std::string_view content) const;
  Result<std::vector<DirEntry>> List() const;  // without "." and "..", sorted by name
  Result<bool> Exists(std::string_view name) const;

  Status RenameNoReplace(std::string_view from, std::string_view to) const;  // EXISTS
  Status RenameExchange(std::string_view a, std::string_view b) const;  // UNSUPPORTED where refused
  Status Rename(std::string_view from, std::string_view to) const;      // plain rename(2)
  Status Link(std::string_view from, std::string_view to) const;        // EXISTS; never overwrites
  Status Unlink(std::string_view name) const;                           // absent is OK
  Status RemoveTree(std::string_view name)
      const;  // absent is OK; does not follow links, does not cross into other names
  Status Sync() const;

 private:
  Fd fd_;
  std::string path_;
};

}  // namespace ckpt

#endif  // CKPT_IO_IO_H_
