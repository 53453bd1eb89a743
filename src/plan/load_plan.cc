// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The load plan: the blocks that hold wanted bytes, each read once, however many shards want them.
// Test: tests/unit/plan/load_plan_test.cc
#include <algorithm>

#include "plan/plan.h"
#include "util/checked.h"

namespace ckpt {
namespace {

struct Need {  // whole blocks of a file
  uint32_t file = 0;
  ByteRange range;
};

bool Before(const Need& a, const Need& b) {
  return a.file != b.file ? a.file < b.file : a.range.begin < b.range.begin;
}

// Appends the blocks that hold bytes of the shard, ascending; neighbours joined.
void AddNeeds(const WantedShard& w, uint64_t file_bytes, uint64_t block, std::vector<Need>* out) {
  const uint64_t at = w.tensor.offset, bytes = w.tensor.desc.bytes;
  const uint64_t hull_end = Hull(w.tensor.desc, w.geometry).end;
  const size_t first = out->size();
  for (uint64_t next = NextByte(w.tensor.desc, w.geometry, 0); next < bytes;) {
    // A flat range has no holes to look for.
    const uint64_t last = w.geometry.is_box ? next : hull_end - 1;
    const uint64_t begin = RoundDown(at + next, block), end = RoundUp(at + last + 1, block);
    if (out->size() > first && out->back().range.end == begin) {
      out->back().range.end = end;
    } else {
      out->push_back({w.file, {begin, end}});
    }
    next = NextByte(w.tensor.desc, w.geometry, end - at);
  }
  if (out->size() > first) out->back().range.end = std::min(out->back().range.end, file_bytes);
}

// The union of the needs, cut to at most max_bytes.
std::vector<ReadExtent> MakeExtents(std::vector<Need> needs, uint64_t max_bytes) {
  std::sort(needs.begin(), needs.end(), Before);
  std::vector<ReadExtent> out;
  for (size_t i = 0; i < needs.size();) {
    ByteRange all = needs[i].range;
    const uint32_t file = needs[i].file;
    for (; i < needs.size() && needs[i].file == file && needs[i].range.begin <= all.end; ++i) {
      all.end = std::max(all.end, needs[i].range.end);
    }
    for (uint64_t at = all.begin; at < all.end; at += std::min(max_bytes, all.end - at)) {
      out.push_back({file, {at, at + std::min(max_bytes, all.end - at)}, {}});
    }
  }
  return out;
}

void AddParts(uint32_t index, const WantedShard& w, const std::vector<Need>& needs,
              std::vector<ReadExtent>* extents) {
  const ByteRange hull = Hull(w.tensor.desc, w.geometry);
  for (const Need& need : needs) {
    auto e = std::lower_bound(
        extents->begin(), extents->end(), need, [](const ReadExtent& x, const Need& n) {
          return x.file != n.file ? x.file < n.file : x.range.end <= n.range.begin;
        });
    for (; e != extents->end() && e->file == need.file && e->range.begin < need.range.end; ++e) {
      if (!e->parts.empty() && e->parts.back().wanted == index) continue;
      e->parts.push_back({index,
                          {std::max(e->range.begin, w.tensor.offset + hull.begin),
                           std::min(e->range.end, w.tensor.offset + hull.end)}});
    }
  }
}

}  // namespace

std::vector<ReadExtent> PlanLoad(const std::vector<WantedShard>& wanted,
                                 const std::vector<uint64_t>& file_bytes, uint64_t block,
                                 uint64_t max_bytes) {
  std::vector<std::vector<Need>> needs(wanted.size());
  std::vector<Need> all;
  for (size_t i = 0; i < wanted.size(); ++i) {
    AddNeeds(wanted[i], file_bytes[wanted[i].file], block, &needs[i]);
    all.insert(all.end(), needs[i].begin(), needs[i].end());
  }
  std::vector<ReadExtent> extents = MakeExtents(std::move(all), std::max(max_bytes, block));
  for (size_t i = 0; i < wanted.size(); ++i) {
    AddParts(static_cast<uint32_t>(i), wanted[i], needs[i], &extents);
  }
  return extents;
}

}  // namespace ckpt
