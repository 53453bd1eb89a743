// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// From the shards that all ranks bring of one tensor to its pieces.  Pure.
// Test: tests/unit/plan/merge_test.cc
#ifndef CKPT_PLAN_COVERAGE_H_
#define CKPT_PLAN_COVERAGE_H_

#include <cstdint>
#include <vector>

#include "meta/meta.h"
#include "plan/plan.h"

namespace ckpt {

struct ShardRef {
  const Geometry* geometry = nullptr;
  int32_t rank = 0;
  uint32_t shard = 0;
};

// Pieces in ascending order of their geometry.  REQUIRES: no empty shards among `shards`.
// COVERAGE naming tensor and ranks: a rank gives bytes twice, shards overlap without being
// replicas, a gap.
Result<std::vector<Piece>> MakePieces(const TensorDesc& t, std::vector<ShardRef> shards);

}  // namespace ckpt

#endif  // CKPT_PLAN_COVERAGE_H_
