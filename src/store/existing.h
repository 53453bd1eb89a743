// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What to do about a step that is there already.  Private to src/store; any thread.
// Test: tests/unit/store/existing_test.cc
#ifndef CKPT_STORE_EXISTING_H_
#define CKPT_STORE_EXISTING_H_

#include <string>

#include "store/store.h"

namespace ckpt {

enum class Existing {
  kNone,
  kLeftover,  // a step's folder without ckpt.json: not a step, in the way
  kReplace,   // a step that this save may replace
  kKept,      // a valid step that stays: nothing is to be written
};
struct ExistingStep {
  Existing what = Existing::kNone;
  // What somebody else may miss once it is replaced, as a sentence; "" for a step of one's own.
  std::string loss;
};

// A record is there and cannot be used, whatever one tries.
bool IsDamage(Code code);

// EXISTS naming lineage and time, or the damage; under KEEP a damaged step is its own error
// (CORRUPT, UNSUPPORTED for a newer format).
Result<ExistingStep> DecideExisting(const Dir& root, const StepTransaction::Options& options);

}  // namespace ckpt

#endif  // CKPT_STORE_EXISTING_H_
