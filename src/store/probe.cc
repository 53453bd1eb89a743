// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The storage probe: do all hosts see one root?  Test: tests/unit/store/probe_test.cc
#include <chrono>
#include <thread>

#include "store/names.h"
#include "store/store.h"
#include "util/text.h"

namespace ckpt {
namespace {

// Another host may learn late of a root that was made just now.
constexpr int kLooks = 20;
constexpr std::chrono::milliseconds kBetweenLooks(100);

Status CheckNonce(const std::string& nonce) {
  if (IsGroupName(nonce)) return Status();
  return Status(Code::kInvalidArgument, Cat("probe nonce \"", Printable(nonce), "\""));
}

Result<Dir> OpenOwnerDir(const std::string& root) {
  CKPT_ASSIGN_OR_RETURN(const Dir dir, Dir::Open(root));
  return dir.OpenDir(kOwnerDir);
}

}  // namespace

Result<std::string> WriteProbe(const std::string& root, const std::string& nonce, int rank) {
  CKPT_RETURN_IF_ERROR(CheckNonce(nonce));
  auto dir = OpenOwnerDir(root);
  for (int look = 1; look < kLooks && dir.status().code() == Code::kNotFound; ++look) {
    std::this_thread::sleep_for(kBetweenLooks);
    dir = OpenOwnerDir(root);
  }
  if (!dir.ok()) return dir.status();
  std::string name = Cat(kProbePrefix, nonce, "-", rank);
  // Not synced: it is for hosts that look now.
  auto file = dir->CreateFile(name, DirectIo::kOff);
  if (!file.ok() && file.status().code() != Code::kExists) return file.status();
  return name;
}

Result<bool> SeesProbe(const std::string& root, const std::string& name) {
  if (!name.starts_with(kProbePrefix)) {
    return Status(Code::kInvalidArgument, Cat("probe name \"", Printable(name), "\""));
  }
  auto dir = OpenOwnerDir(root);
  if (dir.status().code() == Code::kNotFound) return false;
  if (!dir.ok()) return dir.status();
  return dir->Exists(name);
}

Status RemoveProbes(const std::string& root, const std::string& nonce) {
  CKPT_RETURN_IF_ERROR(CheckNonce(nonce));
  auto dir = OpenOwnerDir(root);
  if (dir.status().code() == Code::kNotFound) return Status();
  if (!dir.ok()) return dir.status();
  CKPT_ASSIGN_OR_RETURN(const auto entries, dir->List());
  for (const DirEntry& entry : entries) {
    if (!entry.name.starts_with(Cat(kProbePrefix, nonce, "-"))) continue;
    CKPT_RETURN_IF_ERROR(dir->Unlink(entry.name));
  }
  return Status();
}

}  // namespace ckpt
