// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Folders: open, make (with the fsyncs that make the new names durable), look into.
// Test: tests/unit/io/dir_test.cc
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "io/io.h"
#include "io/posix.h"
#include "util/text.h"

namespace ckpt {
namespace {

// Without trailing slashes; "/" stays.
std::string Trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string ParentOf(const std::string& absolute) {
  const size_t slash = absolute.rfind('/');
  return slash == 0 ? "/" : Trimmed(absolute.substr(0, slash));
}

Result<std::string> WorkingDirectory() {
  std::string cwd(256, '\0');
  while (::getcwd(cwd.data(), cwd.size()) == nullptr) {
    if (errno != ERANGE) return IoStatus(errno, "find the working directory of", "this process");
    cwd.resize(cwd.size() * 2);
  }
  cwd.resize(cwd.find('\0'));
  return cwd;
}

Result<std::string> Absolute(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Status(Code::kInvalidArgument,
                  Cat("path \"", Printable(path), "\": empty or with a NUL"));
  }
  if (path.front() == '/') return Trimmed(path);
  CKPT_ASSIGN_OR_RETURN(const std::string cwd, WorkingDirectory());
  return Trimmed(path == "." ? cwd : JoinPath(cwd, path));
}

// The folders of `path`, deepest first, that do not exist yet.
Result<std::vector<std::string>> MissingFolders(std::string path) {
  std::vector<std::string> missing;
  struct stat st;
  while (RetryEintr([&] { return ::stat(path.c_str(), &st); }) != 0) {
    if (errno != ENOENT || path == "/") return IoStatus(errno, "stat", path);
    missing.push_back(path);
    path = ParentOf(path);
  }
  return missing;
}

Status MakeOne(const std::string& path) {
  if (RetryEintr([&] { return ::mkdir(path.c_str(), 0777); }) != 0 && errno != EEXIST) {
    return IoStatus(errno, "make folder", path);
  }
  // Also after EEXIST: another rank may have made it a moment ago and not have synced it yet.
  const std::string parent = ParentOf(path);
  CKPT_ASSIGN_OR_RETURN(Fd fd, OpenFolder(AT_FDCWD, parent, 0, parent));
  return SyncFd(fd.get(), parent);
}

struct CloseStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};
using Stream = std::unique_ptr<DIR, CloseStream>;

// False: gone since it was listed.
Result<bool> IsFolder(int at, const dirent& entry, const std::string& path) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat st;
  const int rc = RetryEintr([&] { return ::fstatat(at, entry.d_name, &st, AT_SYMLINK_NOFOLLOW); });
  if (rc != 0 && errno == ENOENT) return false;
  if (rc != 0) return IoStatus(errno, "stat", JoinPath(path, entry.d_name));
  return S_ISDIR(st.st_mode);
}

}  // namespace

Result<Dir> Dir::Open(const std::string& path) {
  Dir dir;
  CKPT_ASSIGN_OR_RETURN(dir.path_, Absolute(path));
  CKPT_ASSIGN_OR_RETURN(dir.fd_, OpenFolder(AT_FDCWD, dir.path_, 0, dir.path_));
  return dir;
}

Result<Dir> Dir::Make(const std::string& path) {
  CKPT_ASSIGN_OR_RETURN(const std::string absolute, Absolute(path));
  CKPT_ASSIGN_OR_RETURN(auto missing, MissingFolders(absolute));
  for (auto it = missing.rbegin(); it != missing.rend(); ++it) {
    CKPT_RETURN_IF_ERROR(MakeOne(*it));
  }
  return Open(absolute);
}

Result<Dir> Dir::OpenDir(std::string_view name) const {
  CKPT_RETURN_IF_ERROR(CheckComponent(name, path_));
  Dir dir;
  dir.path_ = JoinPath(path_, name);
  CKPT_ASSIGN_OR_RETURN(dir.fd_, OpenFolder(fd(), std::string(name), O_NOFOLLOW, dir.path_));
  return dir;
}

Status Dir::MakeDir(std::string_view name) const {
  CKPT_RETURN_IF_ERROR(CheckComponent(name, path_));
  const std::string own(name);
  if (RetryEintr([&] { return ::mkdirat(fd(), own.c_str(), 0777); }) == 0) return Status();
  return IoStatus(errno, "make folder", JoinPath(path_, name));
}

Result<std::vector<DirEntry>> Dir::List() const {
  // A descriptor of its own: a read position shared with other threads would lose entries.
  CKPT_ASSIGN_OR_RETURN(Fd own, OpenFolder(fd(), ".", 0, path_));
  const Stream stream(::fdopendir(own.get()));
  if (!stream) return IoStatus(errno, "list", path_);
  own.Release();  // closed with the stream
  std::vector<DirEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno == EINTR) continue;
    if (entry == nullptr && errno != 0) return IoStatus(errno, "list", path_);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    CKPT_ASSIGN_OR_RETURN(const bool is_dir, IsFolder(fd(), *entry, path_));
    entries.push_back({name, is_dir});
  }
  std::sort(entries.begin(), entries.end(),
            [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
  return entries;
}

Result<bool> Dir::Exists(std::string_view name) const {
  CKPT_RETURN_IF_ERROR(CheckComponent(name, path_));
  const std::string own(name);
  struct stat st;
  const int rc = RetryEintr([&] { return ::fstatat(fd(), own.c_str(), &st, AT_SYMLINK_NOFOLLOW); });
  if (rc != 0 && errno != ENOENT) return IoStatus(errno, "stat", JoinPath(path_, name));
  return rc == 0;
}

Status Dir::Sync() const { return SyncFd(fd(), path_); }

}  // namespace ckpt
