// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Which roots this process owns, so that its contexts share them whatever they call them; and which
// step folders its loads read.  A forked child starts with an empty one: what its parent owns is
// not the child's.  Any thread.
// Private to src/store.  Test: tests/unit/store/owner_test.cc
#ifndef CKPT_STORE_REGISTRY_H_
#define CKPT_STORE_REGISTRY_H_

#include <memory>
#include <set>
#include <string>

#include "io/io.h"
#include "util/status.h"
#include "util/sync.h"

namespace ckpt {

class Owner;

// One root, by device and inode.  `mu` is held through the file operations of taking and releasing.
struct RootSlot {
  Mutex mu;
  std::weak_ptr<Owner> owner CKPT_GUARDED_BY(mu);
  // Token of the record that this process last put there; "" once it was released.
  std::string token CKPT_GUARDED_BY(mu);
  // Folders whose commit could be neither confirmed nor undone: this job removes neither.
  std::set<std::string> kept CKPT_GUARDED_BY(mu);
};

// Whether a StepInUse of this process holds that folder.
bool IsInUse(const Dir& root, const std::string& folder);

// shared_ptr: the registry and each owner of the root hold it; slots live as long as the process.
Result<std::shared_ptr<RootSlot>> SlotOf(const Dir& root);

}  // namespace ckpt

#endif  // CKPT_STORE_REGISTRY_H_
