// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Overlap of boxes by recursive decomposition: sorted along some dimension, a set falls apart where
// no box crosses; what does not fall apart along any dimension is swept.
// Test: tests/unit/plan/boxes_test.cc
#include "plan/boxes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace ckpt {
namespace {

using Pair = std::optional<std::pair<uint32_t, uint32_t>>;

// A spiral of n boxes would need n levels; the sweep is as right, so it takes over at this depth.
constexpr int kMaxDepth = 48;
constexpr size_t kPairwise = 4;  // sets up to this size are compared pair by pair

class OverlapFinder {
 public:
  explicit OverlapFinder(const BoxSet& boxes) : boxes_(boxes), ids_(boxes.size()) {
    std::iota(ids_.begin(), ids_.end(), 0u);
  }

  Pair Find() {
    std::vector<Part> work = {{0, ids_.size(), 0}};
    while (!work.empty()) {
      const Part part = work.back();
      work.pop_back();
      if (part.end - part.begin <= kPairwise) {
        if (Pair found = Pairwise(part)) return found;
      } else if (part.depth >= kMaxDepth || !Split(part, &work)) {
        if (Pair found = Sweep(part)) return found;
      }
    }
    return std::nullopt;
  }

 private:
  struct Part {
    size_t begin, end;
    int depth;
  };

  bool Meet(uint32_t a, uint32_t b) const {
    for (size_t k = 0; k < boxes_.ndim(); ++k) {
      if (boxes_.lo(a, k) >= boxes_.hi(b, k) || boxes_.lo(b, k) >= boxes_.hi(a, k)) return false;
    }
    return true;
  }

  Pair Pairwise(const Part& part) const {
    for (size_t i = part.begin; i < part.end; ++i) {
      for (size_t j = part.begin; j < i; ++j) {
        if (Meet(ids_[i], ids_[j])) return std::make_pair(ids_[j], ids_[i]);
      }
    }
    return std::nullopt;
  }

  void SortByLow(const Part& part, size_t dim) {
    const auto first = ids_.begin();
    std::sort(first + static_cast<std::ptrdiff_t>(part.begin),
              first + static_cast<std::ptrdiff_t>(part.end), [&](uint32_t a, uint32_t b) {
                return std::make_pair(boxes_.lo(a, dim), a) < std::make_pair(boxes_.lo(b, dim), b);
              });
  }

  bool Split(const Part& part, std::vector<Part>* work) {
    for (size_t dim = 0; dim < boxes_.ndim(); ++dim) {
      SortByLow(part, dim);
      const size_t before = work->size();
      size_t begin = part.begin;
      int64_t reach = boxes_.hi(ids_[begin], dim);
      for (size_t i = begin + 1; i < part.end; ++i) {
        if (boxes_.lo(ids_[i], dim) >= reach) {
          work->push_back({begin, i, part.depth + 1});
          begin = i;
        }
        reach = std::max(reach, boxes_.hi(ids_[i], dim));
      }
      if (work->size() > before) {
        work->push_back({begin, part.end, part.depth + 1});
        return true;
      }
    }
    return false;
  }

  // The dimensions with the most different starts: most boxes end early, few candidates meet.
  std::pair<size_t, size_t> SweepDims(const Part& part) const {
    std::vector<std::pair<size_t, size_t>> starts;  // number, dimension
    for (size_t k = 0; k < boxes_.ndim(); ++k) {
      std::set<int64_t> seen;
      for (size_t i = part.begin; i < part.end; ++i) seen.insert(boxes_.lo(ids_[i], k));
      starts.emplace_back(seen.size(), k);
    }
    std::sort(starts.rbegin(), starts.rend());
    return {starts[0].second, starts.size() > 1 ? starts[1].second : starts[0].second};
  }

  Pair Sweep(const Part& part) {
    const auto [along, across] = SweepDims(part);
    SortByLow(part, along);
    int64_t longest = 0;
    for (size_t i = part.begin; i < part.end; ++i) {
      longest = std::max(longest, boxes_.hi(ids_[i], across) - boxes_.lo(ids_[i], across));
    }
    std::set<std::pair<int64_t, uint32_t>> active, ending;  // by start across, by end along
    for (size_t i = part.begin; i < part.end; ++i) {
      const uint32_t box = ids_[i];
      while (!ending.empty() && ending.begin()->first <= boxes_.lo(box, along)) {
        const uint32_t gone = ending.begin()->second;
        active.erase({boxes_.lo(gone, across), gone});
        ending.erase(ending.begin());
      }
      for (auto it = active.lower_bound({boxes_.lo(box, across) - longest, 0});
           it != active.end() && it->first < boxes_.hi(box, across); ++it) {
        if (Meet(it->second, box)) return std::make_pair(it->second, box);
      }
      active.insert({boxes_.lo(box, across), box});
      ending.insert({boxes_.hi(box, along), box});
    }
    return std::nullopt;
  }

  const BoxSet& boxes_;
  std::vector<uint32_t> ids_;
};

}  // namespace

void BoxSet::Add(const TensorDesc& t, const Geometry& g, uint32_t piece) {
  if (!g.is_box) return AddFlat(t.shape, g.begin, g.begin + g.count, piece);
  for (size_t k = 0; k < ndim_; ++k) {
    coords_.push_back(g.offset[k]);
    coords_.push_back(g.offset[k] + g.extent[k]);
  }
  piece_.push_back(piece);
}

void BoxSet::AddFlat(const Dims& shape, int64_t begin, int64_t end, uint32_t piece) {
  Dims stride(ndim_, 1);
  for (size_t k = ndim_ - 1; k > 0; --k) stride[k - 1] = stride[k] * shape[k];
  while (begin < end) {
    size_t d = 0;
    while (begin % stride[d] != 0 || end - begin < stride[d]) ++d;
    const int64_t index = begin / stride[d] % shape[d];
    const int64_t count = std::min((end - begin) / stride[d], shape[d] - index);
    for (size_t k = 0; k < ndim_; ++k) {
      const int64_t at = k > d ? 0 : begin / stride[k] % shape[k];
      coords_.push_back(at);
      coords_.push_back(k < d ? at + 1 : k == d ? at + count : shape[k]);
    }
    piece_.push_back(piece);
    begin += count * stride[d];
  }
}

std::optional<std::pair<uint32_t, uint32_t>> FindOverlap(const BoxSet& boxes) {
  return OverlapFinder(boxes).Find();
}

}  // namespace ckpt
