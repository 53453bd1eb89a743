// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Few cuts, at places that disks like.
// Test: tests/unit/plan/cut_test.cc
#include "plan/cut.h"

#include <algorithm>
#include <numeric>

#include "util/checked.h"

namespace ckpt {
namespace {

uint64_t RoundNearest(uint64_t n, uint64_t align) { return RoundDown(n + align / 2, align); }

// Hands out one set's bytes in file order.
class Dealer {
 public:
  Dealer(const std::vector<int32_t>& ranks, const std::vector<uint64_t>& quota,
         const SavePlanOptions& options)
      : ranks_(ranks), until_(quota), align_(options.io_align) {
    std::partial_sum(until_.begin(), until_.end(), until_.begin());
    // A cut this close to a segment's end is not worth an extent; small enough for 1 % of balance.
    slack_ = std::min(options.min_run, until_.back() / ranks.size() / 512);
  }

  void Deal(const Segment& s, std::vector<Chunk>* out) {
    uint64_t at = s.begin;
    while (at < s.end) {
      const uint64_t cut = turn_ + 1 == ranks_.size() ? s.end : Cut(s);
      if (cut > at) out->push_back({at, cut, ranks_[turn_]});
      at = std::max(at, cut);
      if (at < s.end) ++turn_;
    }
    dealt_ += s.end - s.begin;
  }

 private:
  // Where the current rank's turn ends, seen from this segment: within [begin, end].
  uint64_t Cut(const Segment& s) const {
    const uint64_t left = until_[turn_] > dealt_ ? until_[turn_] - dealt_ : 0;
    if (left <= slack_) return s.begin;
    if (left + slack_ >= s.end - s.begin) return s.end;
    return std::clamp(RoundNearest(s.begin + left, align_), s.begin, s.end);
  }

  const std::vector<int32_t>& ranks_;
  std::vector<uint64_t> until_;  // bytes dealt when the turn of each rank ends
  const uint64_t align_;
  uint64_t slack_;
  size_t turn_ = 0;
  uint64_t dealt_ = 0;  // in the segments before this one
};

void Append(const Chunk& c, std::vector<Chunk>* out) {
  if (c.begin >= c.end) return;
  if (!out->empty() && out->back().owner == c.owner) {
    out->back().end = c.end;
  } else {
    out->push_back(c);
  }
}

}  // namespace

std::vector<std::vector<Chunk>> CutByQuota(const std::vector<std::vector<Segment>>& files,
                                           const RankSets& sets, const Quotas& quotas,
                                           const SavePlanOptions& options) {
  std::vector<Dealer> dealers;
  dealers.reserve(sets.size());
  for (uint32_t set = 0; set < sets.size(); ++set) {
    dealers.emplace_back(sets[set], quotas[set], options);
  }
  std::vector<std::vector<Chunk>> out(files.size());
  for (size_t f = 0; f < files.size(); ++f) {
    for (const Segment& s : files[f]) dealers[s.set].Deal(s, &out[f]);
  }
  return out;
}

std::vector<Chunk> AlignChunks(const std::vector<Chunk>& chunks, uint64_t align) {
  std::vector<Chunk> joined, out;
  for (const Chunk& c : chunks) Append(c, &joined);
  if (joined.empty()) return joined;
  const uint64_t file_end = joined.back().end;
  uint64_t begin = 0;
  for (const Chunk& c : joined) {
    const uint64_t end =
        c.end == file_end ? file_end : std::min(file_end, RoundNearest(c.end, align));
    Append({begin, end, c.owner}, &out);
    begin = end;
  }
  return out;
}

}  // namespace ckpt
