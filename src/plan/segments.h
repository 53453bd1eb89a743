// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A file's bytes in order, as stretches with the set of ranks that may own them.  Pure.
// Test: tests/unit/plan/spans_test.cc
#ifndef CKPT_PLAN_SEGMENTS_H_
#define CKPT_PLAN_SEGMENTS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "plan/plan.h"
#include "plan/spans.h"

namespace ckpt {

// Sets of ranks, each stored once.
class RankSets {
 public:
  // `ranks` ascending, without duplicates.
  uint32_t Intern(const std::vector<int32_t>& ranks);
  const std::vector<int32_t>& operator[](uint32_t set) const { return *sets_[set]; }
  uint32_t size() const { return static_cast<uint32_t>(sets_.size()); }

 private:
  std::map<std::vector<int32_t>, uint32_t> index_;
  std::vector<const std::vector<int32_t>*> sets_;  // keys of index_: a map does not move them
};

// One file with what the plan needs to know of each of its tensors.
struct PlannedFile {
  const FileLayout* layout = nullptr;
  std::vector<const GlobalTensor*> tensors;  // as layout->tensors
  std::vector<TensorSpans> spans;            // as layout->tensors
};

struct Segment {
  uint64_t begin = 0, end = 0;  // of the file
  uint32_t set = 0;             // who may own it; never empty
};
// Segments of one file, ascending, covering it.  The blocks that the header touches form a segment
// of their own, for the coordinator.  Holders are narrowed to ranks that may write, or, where none
// of them may, replaced by `writers`; stretches shorter than min_run are joined. REQUIRES:
// `writers` ascending and not empty.
std::vector<Segment> MakeSegments(const PlannedFile& file, const std::vector<int32_t>& writers,
                                  const SavePlanOptions& options, RankSets* sets);

}  // namespace ckpt

#endif  // CKPT_PLAN_SEGMENTS_H_
