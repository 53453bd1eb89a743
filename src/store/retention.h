// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Which steps a save removes.  Pure; private to src/store.  Test:
// tests/unit/store/retention_test.cc
#ifndef CKPT_STORE_RETENTION_H_
#define CKPT_STORE_RETENTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "store/store.h"

namespace ckpt {

// Folders that go, oldest first, of `steps` as ListSteps gives them.  `keep_last` 0: none.  Never
// the newest valid step that is not bad, a pinned one, another lineage's, an invalid one.  Bad
// steps do not count towards `keep_last`, and go.
std::vector<std::string> Victims(const std::vector<StepEntry>& steps, const std::string& lineage,
                                 uint64_t keep_last);

}  // namespace ckpt

#endif  // CKPT_STORE_RETENTION_H_
