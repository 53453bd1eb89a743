// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The commit: the one place where a step begins to exist.  Private to src/store.
// Test: tests/unit/store/commit_test.cc, tests/unit/store/commit_fault_test.cc
#ifndef CKPT_STORE_COMMIT_H_
#define CKPT_STORE_COMMIT_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "store/owner.h"
#include "store/store.h"

namespace ckpt {

struct CommitPlan {
  Owner* owner = nullptr;
  const Dir* staging = nullptr;
  std::string staging_folder, step_folder;  // names within the root
  StepTransaction::Options options;
  uint64_t sequence = 0;
  std::string record_text;
  const std::vector<std::pair<std::string, std::string>>* index_files = nullptr;
  const std::function<Status()>* enter_commit = nullptr;
  const std::function<bool()>* abandoned = nullptr;
};

// What a commit leaves to FinishStep.
struct Committed {
  int64_t step = 0;
  std::string step_folder;
  uint64_t sequence = 0;
  bool by_intent = false;  // one is still there
  std::string replaced;    // where the step's old folder is now: a staging or trash name; "": none
  std::string loss;        // what was replaced, if somebody else may miss it
  bool kept = false;       // nothing was published: the step that KEEP keeps has appeared meanwhile
};

// OK: committed and durable.  OUTCOME_UNKNOWN: neither confirmed nor undone, both folders must
// stay.  Any other error: not published, the staging folder has the new files.
Result<Committed> CommitStep(const CommitPlan& plan);
// What follows a commit; what fails is a warning.
void FinishStep(Owner& owner, const StepTransaction::Options& options, const Committed& committed,
                std::vector<std::string>* warnings);

}  // namespace ckpt

#endif  // CKPT_STORE_COMMIT_H_
