// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Removal of a folder with all that is in it, and of nothing else: every step goes through a
// descriptor of the folder above, so neither links nor names moved meanwhile lead out of the tree.
// Test: tests/unit/io/tree_test.cc
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io.h"
#include "io/posix.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr int kMaxDepth = 64;  // descriptors open at once
constexpr int kAttempts = 3;  // names may appear while we remove (NFS keeps open files as .nfsXXXX)

// Looks without following; `absent` when there is nothing of that name.
Status Look(const Dir& dir, const std::string& name, struct stat* st, bool* absent) {
  const int rc =
      RetryEintr([&] { return ::fstatat(dir.fd(), name.c_str(), st, AT_SYMLINK_NOFOLLOW); });
  *absent = rc != 0 && errno == ENOENT;
  if (rc == 0 || *absent) return Status();
  return IoStatus(errno, "stat", JoinPath(dir.path(), name));
}

// OK and *left set: the folder is not empty yet.
Status RemoveEmpty(const Dir& dir, const std::string& name, bool* left) {
  const int rc = RetryEintr([&] { return ::unlinkat(dir.fd(), name.c_str(), AT_REMOVEDIR); });
  *left = rc != 0 && (errno == ENOTEMPTY || errno == EEXIST);
  if (rc == 0 || errno == ENOENT || *left) return Status();
  return IoStatus(errno, "remove folder", JoinPath(dir.path(), name));
}

Status RemoveAt(const Dir& dir, const std::string& name, dev_t device, int depth);

Status RemoveContents(const Dir& dir, dev_t device, int depth) {
  CKPT_ASSIGN_OR_RETURN(const auto entries, dir.List());
  for (const DirEntry& entry : entries) {
    CKPT_RETURN_IF_ERROR(entry.is_dir ? RemoveAt(dir, entry.name, device, depth)
                                      : dir.Unlink(entry.name));
  }
  return Status();
}

Status RemoveAt(const Dir& dir, const std::string& name, dev_t device, int depth) {
  const std::string path = JoinPath(dir.path(), name);
  if (depth > kMaxDepth) return Status(Code::kLimit, Cat("remove ", path, ": nested too deep"));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto folder = dir.OpenDir(name);
    if (folder.status().code() == Code::kNotFound) return Status();
    if (!folder.ok()) return folder.status();
    struct stat st;
    if (::fstat(folder->fd(), &st) != 0) return IoStatus(errno, "stat", path);
    if (st.st_dev != device) {
      return Status(Code::kIo, Cat("remove ", path, ": another file system is mounted there"));
    }
    CKPT_RETURN_IF_ERROR(RemoveContents(*folder, device, depth + 1));
    bool left = false;
    CKPT_RETURN_IF_ERROR(RemoveEmpty(dir, name, &left));
    if (!left) return Status();
  }
  return IoStatus(ENOTEMPTY, "remove folder", path);
}

}  // namespace

Status Dir::RemoveTree(std::string_view name) const {
  CKPT_RETURN_IF_ERROR(CheckComponent(name, path_));
  const std::string own(name);
  struct stat st;
  bool absent = false;
  CKPT_RETURN_IF_ERROR(Look(*this, own, &st, &absent));
  if (absent) return Status();
  if (!S_ISDIR(st.st_mode)) return Unlink(name);
  return RemoveAt(*this, own, st.st_dev, 0);
}

}  // namespace ckpt
