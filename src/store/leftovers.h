// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What a save or a crash leaves in a root.  By the owner only; private to src/store.
// Test: tests/unit/store/leftovers_test.cc
#ifndef CKPT_STORE_LEFTOVERS_H_
#define CKPT_STORE_LEFTOVERS_H_

#include <set>
#include <string>
#include <vector>

#include "io/io.h"

namespace ckpt {

// Renames staging folders to trash: an owner that lost the root can then not publish them.  Never a
// name in `kept`, never what an intent names.  Returns what could not be done.
std::vector<std::string> RetireLeftovers(const Dir& root, const std::set<std::string>& kept);

// Deletes SyncedTrash, which may take its time.  Returns what could not be done.
std::vector<std::string> RemoveTrash(const Dir& root, const std::set<std::string>& kept);

// Trash folders that may be deleted now (not what a load of this process reads either), after an
// fsync of the root if there are any.  CORRUPT: an intent cannot be read, so nobody knows which of
// them still is a step.
Result<std::vector<std::string>> SyncedTrash(const Dir& root, const std::set<std::string>& kept);

}  // namespace ckpt

#endif  // CKPT_STORE_LEFTOVERS_H_
