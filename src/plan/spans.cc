// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces whose hulls do not meet are independent of each other, so a tensor falls apart into groups
// (the row blocks of a two-dimensional split); whether runs are long enough is asked of each group.
// Test: tests/unit/plan/spans_test.cc
#include "plan/spans.h"

#include <algorithm>
#include <numeric>

namespace ckpt {
namespace {

void AddRuns(const GlobalTensor& t, const std::vector<uint32_t>& order, uint32_t first,
             uint32_t end, std::vector<Span>* spans) {
  const auto before = static_cast<std::ptrdiff_t>(spans->size());
  for (uint32_t i = first; i < end; ++i) {
    ForEachRun(t.desc, t.pieces[order[i]].geometry, {0, t.desc.bytes}, [&](const Run& run) {
      spans->push_back({{run.tensor_offset, run.tensor_offset + run.bytes}, i, 1});
    });
  }
  std::sort(spans->begin() + before, spans->end(),
            [](const Span& a, const Span& b) { return a.range.begin < b.range.begin; });
}

}  // namespace

TensorSpans MakeSpans(const GlobalTensor& t, uint64_t min_run) {
  TensorSpans out;
  const auto n = static_cast<uint32_t>(t.pieces.size());
  std::vector<ByteRange> hulls;
  hulls.reserve(n);
  for (const Piece& p : t.pieces) hulls.push_back(Hull(t.desc, p.geometry));
  out.order.resize(n);
  std::iota(out.order.begin(), out.order.end(), 0u);
  std::stable_sort(out.order.begin(), out.order.end(),
                   [&](uint32_t a, uint32_t b) { return hulls[a].begin < hulls[b].begin; });
  for (uint32_t first = 0, end = 0; first < n; first = end) {
    ByteRange group = hulls[out.order[first]];
    bool long_runs = true;
    for (end = first; end < n && (end == first || hulls[out.order[end]].begin < group.end); ++end) {
      const uint32_t piece = out.order[end];
      group.end = std::max(group.end, hulls[piece].end);
      long_runs = long_runs && RunBytes(t.desc, t.pieces[piece].geometry) >= min_run;
    }
    if (end - first == 1 || !long_runs) {
      out.spans.push_back({group, first, end - first});
    } else {
      AddRuns(t, out.order, first, end, &out.spans);
    }
  }
  return out;
}

}  // namespace ckpt
