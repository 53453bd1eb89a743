// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of retention.  Test: tests/unit/store/retention_test.cc
#include "store/retention.h"

#include <algorithm>

namespace ckpt {

std::vector<std::string> Victims(const std::vector<StepEntry>& steps, const std::string& lineage,
                                 uint64_t keep_last) {
  std::vector<std::string> victims;
  if (keep_last == 0) return victims;
  uint64_t kept = 0;
  bool newest_seen = false;
  for (const StepEntry& step : steps) {
    // A folder of another name is the old half of a replacement that is not confirmed.
    if (!step.record || step.folder != StepFolder(step.step)) continue;
    const bool own = step.record->lineage == lineage;
    const bool newest = !step.bad && !newest_seen;
    newest_seen = newest_seen || newest;
    if (!own) continue;
    if (!step.bad && kept < keep_last) {
      ++kept;
    } else if (!newest && !step.pinned) {
      victims.push_back(step.folder);
    }
  }
  std::reverse(victims.begin(), victims.end());
  return victims;
}

}  // namespace ckpt
