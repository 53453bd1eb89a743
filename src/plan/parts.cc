// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One part for each piece that has bytes in the extent, however many runs it has there.
// Test: tests/unit/plan/save_plan_test.cc
#include "plan/parts.h"

#include <algorithm>

namespace ckpt {
namespace {

// The owner itself if it holds the piece; else a holder that depends on the place, so that the
// parts of many extents come from many ranks.
const Holder& Source(const Piece& piece, int32_t owner, uint64_t place) {
  const auto own = std::lower_bound(piece.holders.begin(), piece.holders.end(), owner,
                                    [](const Holder& h, int32_t rank) { return h.rank < rank; });
  if (own != piece.holders.end() && own->rank == owner) return *own;
  return piece.holders[place % piece.holders.size()];
}

// Pieces with bytes in `range` of the tensor, maybe with some that have none.
std::vector<uint32_t> PiecesNear(const TensorSpans& s, ByteRange range) {
  std::vector<uint32_t> out;
  auto span = std::lower_bound(s.spans.begin(), s.spans.end(), range.begin,
                               [](const Span& x, uint64_t at) { return x.range.end <= at; });
  for (; span != s.spans.end() && span->range.begin < range.end; ++span) {
    const auto first = s.order.begin() + static_cast<std::ptrdiff_t>(span->first);
    out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(span->count));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

ByteRange Common(ByteRange a, ByteRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

uint32_t TensorIndex(const PlacedTensor& t, RankPlan* plan) {
  if (plan->tensors.empty() || plan->tensors.back().desc.name != t.desc.name ||
      plan->tensors.back().desc.group != t.desc.group) {
    plan->tensors.push_back(t);
  }
  return static_cast<uint32_t>(plan->tensors.size() - 1);
}

}  // namespace

void AddExtent(const PlannedFile& file, uint32_t file_index, ByteRange range, int32_t owner,
               const SavePlanOptions& options, RankPlan* plan) {
  PlanExtent extent;
  extent.file = file_index;
  extent.range = range;
  const uint64_t header = file.layout->header.size();
  if (range.begin < header) extent.header_bytes = std::min(header, range.end) - range.begin;
  const uint64_t place = range.begin / std::max<uint64_t>(options.min_run, 1) + file_index;

  const auto& tensors = file.layout->tensors;
  auto placed = std::lower_bound(
      tensors.begin(), tensors.end(), range.begin,
      [](const PlacedTensor& t, uint64_t at) { return t.offset + t.desc.bytes <= at; });
  for (; placed != tensors.end() && placed->offset < range.end; ++placed) {
    const auto i = static_cast<size_t>(placed - tensors.begin());
    const uint64_t at = placed->offset;
    if (placed->desc.bytes == 0) continue;
    const ByteRange within = Common(range, {at, at + placed->desc.bytes});
    const ByteRange local{within.begin - at, within.end - at};
    for (const uint32_t p : PiecesNear(file.spans[i], local)) {
      const Piece& piece = file.tensors[i]->pieces[p];
      if (BytesWithin(placed->desc, piece.geometry, local) == 0) continue;
      const ByteRange hull = Common(local, Hull(placed->desc, piece.geometry));
      const Holder& from = Source(piece, owner, place + p);
      extent.parts.push_back({TensorIndex(*placed, plan),
                              piece.geometry,
                              {at + hull.begin, at + hull.end},
                              from.rank,
                              from.shard});
    }
  }
  std::stable_sort(
      extent.parts.begin(), extent.parts.end(),
      [](const PlanPart& a, const PlanPart& b) { return a.range.begin < b.range.begin; });
  plan->extents.push_back(std::move(extent));
}

}  // namespace ckpt
