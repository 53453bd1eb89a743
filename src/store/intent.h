// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// ".replace-<step>": a step is being replaced by two renames, because the file system cannot
// exchange two names.  Between them the old step is under the trash name.  Private to src/store.
// Test: tests/unit/store/intent_test.cc
#ifndef CKPT_STORE_INTENT_H_
#define CKPT_STORE_INTENT_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/io.h"
#include "util/status.h"

namespace ckpt {

struct Intent {
  int64_t step = 0;
  std::string staging, trash;  // names within the root
};
std::string EncodeIntent(const Intent& intent);
// NOT_FOUND; CORRUPT (also while it is being written).
Result<Intent> ReadIntent(const Dir& root, int64_t step);

// Ends the replacement of `step` that was begun, if there is one: where the step is, the intent
// goes; where it is not, the new one gets its name if it is whole, else the old one gets it back.
// By the owner, under its commit lock.
Status RollIntent(const Dir& root, int64_t step);
// All of them; by a new owner.  Returns what could not be done.
std::vector<std::string> RollIntents(const Dir& root);

// Staging and trash folders that intents name: one of them may be a step.  CORRUPT when an intent
// cannot be read.
Result<std::set<std::string>> NamedByIntents(const Dir& root, const std::vector<DirEntry>& entries);

// Where the step is: its folder, or between the two renames the old one's.  Any reader.
// NOT_FOUND; CORRUPT when only an unreadable intent is left of it.
Result<std::string> LocateStep(const Dir& root, int64_t step);

}  // namespace ckpt

#endif  // CKPT_STORE_INTENT_H_
