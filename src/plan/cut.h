// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// From segments and quotas to who owns which bytes of each file.  Pure.
// Test: tests/unit/plan/cut_test.cc
#ifndef CKPT_PLAN_CUT_H_
#define CKPT_PLAN_CUT_H_

#include <cstdint>
#include <vector>

#include "plan/balance.h"
#include "plan/segments.h"

namespace ckpt {

struct Chunk {
  uint64_t begin = 0, end = 0;  // of the file
  int32_t owner = 0;
};

// Cuts the segments of all files, in file order, into chunks: the ranks of a set follow each other,
// each until its quota is used up.  Result per file: ascending, covering it.
std::vector<std::vector<Chunk>> CutByQuota(const std::vector<std::vector<Segment>>& files,
                                           const RankSets& sets, const Quotas& quotas,
                                           const SavePlanOptions& options);

// Moves the boundaries between owners to multiples of `align` and joins chunks of one owner.
// REQUIRES: chunks ascending, covering the file.
std::vector<Chunk> AlignChunks(const std::vector<Chunk>& chunks, uint64_t align);

}  // namespace ckpt

#endif  // CKPT_PLAN_CUT_H_
