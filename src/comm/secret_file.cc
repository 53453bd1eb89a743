// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules of the rendezvous file.  Not a checkpoint: nothing here has to survive a crash, so that
// nothing is synced and src/io is not needed.  Test: tests/unit/comm/secret_file_test.cc
#include "comm/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "comm/auth.h"
#include "comm/proc.h"
#include "comm/socket.h"
#include "util/text.h"
#include "util/wire.h"

namespace ckpt {
namespace {

constexpr uint32_t kMagic = 0x32504B43;  // "CKP2"
constexpr size_t kMaxFile = 4096;

Status Unsafe(const std::string& path, const std::string& why) {
  Cause cause;
  cause.path = path;
  return Status(Code::kIo, Cat("rendezvous ", path, ": ", why), std::move(cause));
}

Status CheckOwner(const std::string& path, const struct stat& st) {
  if (st.st_uid != ::geteuid()) {
    return Unsafe(path, Cat("belongs to user ", st.st_uid, ", not to this one"));
  }
  if ((st.st_mode & 077) != 0) {
    return Unsafe(path, fmt::format("mode {:04o} lets others in", st.st_mode & 07777));
  }
  return Status();
}

// An empty Fd: it is not there.
Result<Fd> OpenFolder(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT) return Fd();
    if (errno == ELOOP || errno == ENOTDIR) {
      return Unsafe(folder, "is a symbolic link or not a folder");
    }
    return ErrnoStatus(errno, "open of rendezvous folder", folder);
  }
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return ErrnoStatus(errno, "fstat of", folder);
  CKPT_RETURN_IF_ERROR(CheckOwner(folder, st));
  return fd;
}

Bytes Encode(const Rendezvous& v) {
  WireWriter w;
  w.U32(kMagic);
  w.U32(v.port);
  w.Str(v.secret);
  w.U64(v.incarnation);
  w.I64(v.pid);
  w.U64(v.start_time);
  return w.Take();
}

std::optional<Rendezvous> Decode(std::string_view bytes) {
  WireReader r(bytes);
  Rendezvous v;
  const uint32_t magic = r.U32();
  const uint32_t port = r.U32();
  v.secret = r.Str();
  v.incarnation = r.U64();
  v.pid = static_cast<pid_t>(r.I64());
  v.start_time = r.U64();
  if (!r.AtEnd() || magic != kMagic || port == 0 || port > 65535 ||
      v.secret.size() != kSecretBytes || v.pid <= 0) {
    return std::nullopt;
  }
  v.port = static_cast<uint16_t>(port);
  return v;
}

Result<std::optional<Rendezvous>> ReadAt(int folder, const std::string& path,
                                         const std::string& name) {
  Fd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT) return std::optional<Rendezvous>();
    if (errno == ELOOP) return Unsafe(path, "is a symbolic link");
    return ErrnoStatus(errno, "open of rendezvous", path);
  }
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return ErrnoStatus(errno, "fstat of", path);
  if (!S_ISREG(st.st_mode)) return Unsafe(path, "is not a regular file");
  CKPT_RETURN_IF_ERROR(CheckOwner(path, st));
  char buffer[kMaxFile];
  ssize_t n = 0;
  do {
    n = ::read(fd.get(), buffer, sizeof buffer);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return ErrnoStatus(errno, "read of rendezvous", path);
  auto found = Decode(std::string_view(buffer, static_cast<size_t>(n)));
  // Half a job's worth of garbage is as good as no file: its owner is not one of ours.
  if (found && StartTime(found->pid) != found->start_time) found.reset();
  return found;
}

Status WriteAt(int folder, const std::string& path, const std::string& temporary,
               const Rendezvous& rendezvous) {
  Fd fd(::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                 0600));
  if (!fd.valid()) return ErrnoStatus(errno, "creation of rendezvous", path);
  const Bytes bytes = Encode(rendezvous);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "write of rendezvous", path);
    done += static_cast<size_t>(n);
  }
  return Status();
}

}  // namespace

std::string RuntimeFolder(const std::function<const char*(const char*)>& get) {
  const char* runtime = get("XDG_RUNTIME_DIR");
  struct stat st {};
  if (runtime != nullptr && *runtime == '/' && ::stat(runtime, &st) == 0 && S_ISDIR(st.st_mode) &&
      st.st_uid == ::geteuid()) {
    return Cat(runtime, "/ckpt");
  }
  return Cat("/tmp/ckpt-", ::geteuid());
}

Result<std::string> Publish(const std::string& folder, const std::string& name,
                            const Rendezvous& rendezvous) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, "creation of rendezvous folder", folder);
  }
  CKPT_ASSIGN_OR_RETURN(const Fd dir, OpenFolder(folder));
  if (!dir.valid()) return ErrnoStatus(ENOENT, "open of rendezvous folder", folder);
  const std::string path = Cat(folder, "/", name);
  const auto old = ReadAt(dir.get(), path, name);
  if (old.ok() && old->has_value()) {
    return Status(Code::kInvalidArgument,
                  Cat("rank 0 of this job is already there, as process ", (*old)->pid,
                      "; this is process ", ::getpid(), ": two processes have the same rank"),
                  Cause{0, 0, path, "", "rank"});
  }
  const std::string temporary = Cat(name, ".", HashName(RandomSecret()), ".tmp");
  Status status = WriteAt(dir.get(), path, temporary, rendezvous);
  if (status.ok() && ::renameat(dir.get(), temporary.c_str(), dir.get(), name.c_str()) != 0) {
    status = ErrnoStatus(errno, "rename of rendezvous", path);
  }
  if (!status.ok()) {
    ::unlinkat(dir.get(), temporary.c_str(), 0);
    return status;
  }
  return path;
}

Result<std::optional<Rendezvous>> ReadRendezvous(const std::string& folder,
                                                 const std::string& name) {
  CKPT_ASSIGN_OR_RETURN(const Fd dir, OpenFolder(folder));
  if (!dir.valid()) return std::optional<Rendezvous>();
  return ReadAt(dir.get(), Cat(folder, "/", name), name);
}

void Withdraw(const std::string& folder, const std::string& name, uint64_t incarnation) {
  auto dir = OpenFolder(folder);
  if (!dir.ok() || !dir->valid()) return;
  const auto now = ReadAt(dir->get(), folder, name);
  if (now.ok() && now->has_value() && (*now)->incarnation == incarnation) {
    ::unlinkat(dir->get(), name.c_str(), 0);
  }
}

}  // namespace ckpt
