// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One thing that is wrong with a state: a gap, an overlap, a copy that differs, descriptions,
// aliases or blobs that disagree, something required that nobody gives.
#pragma once

#include <string>

#include "oracle/draw.h"

namespace oracle {

struct Perturbation {
  std::string kind;  // "": nothing is wrong
  ckpt_status status = CKPT_OK;
  std::string name;  // that the error gives
  // What cannot be said in a Part: one byte of a shard's memory, a blob of one rank.
  int rank = -1, shard = -1;
  int64_t byte = 0;
  int blob = -1;
  enum class BlobFault { kNone, kMissing, kLonger, kOther } fault = BlobFault::kNone;
};

// Changes *c; kind "" and nothing changed when the state has no place for what was drawn.
Perturbation Perturb(uint64_t seed, const JobOptions& options, SaveCase* c);

}  // namespace oracle
