// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Disjoint and complete: pieces without overlap whose volumes add up to the tensor leave no gap.
// Test: tests/unit/plan/merge_test.cc
#include "plan/coverage.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plan/boxes.h"
#include "util/text.h"

namespace ckpt {
namespace {

using PiecePair = std::pair<uint32_t, uint32_t>;

Status Uncovered(const TensorDesc& t, int32_t rank, std::string_view field, std::string why) {
  Cause cause;
  cause.rank = rank;
  cause.name = t.name;
  cause.field = std::string(field);
  return Status(Code::kCoverage, Cat("tensor ", t.group, "/", Printable(t.name), ": ", why),
                std::move(cause));
}

Status GivenTwice(const TensorDesc& t, int32_t rank, const std::string& what) {
  return Uncovered(t, rank, "duplicate", Cat("rank ", rank, " gives ", what, " twice"));
}

Result<std::vector<Piece>> GroupReplicas(const TensorDesc& t, std::vector<ShardRef> shards) {
  std::sort(shards.begin(), shards.end(), [](const ShardRef& a, const ShardRef& b) {
    const auto order = *a.geometry <=> *b.geometry;
    if (order != 0) return order < 0;
    return std::make_pair(a.rank, a.shard) < std::make_pair(b.rank, b.shard);
  });
  std::vector<Piece> pieces;
  for (const ShardRef& s : shards) {
    if (pieces.empty() || pieces.back().geometry != *s.geometry) {
      pieces.push_back({*s.geometry, {}});
    } else if (pieces.back().holders.back().rank == s.rank) {
      return GivenTwice(t, s.rank, Describe(t, *s.geometry));
    }
    pieces.back().holders.push_back({s.rank, s.shard});
  }
  return pieces;
}

// REQUIRES: flat pieces in ascending order.
std::optional<PiecePair> FlatOverlap(const std::vector<Piece>& pieces, Geometry* common) {
  for (uint32_t i = 1; i < pieces.size(); ++i) {
    const Geometry &a = pieces[i - 1].geometry, &b = pieces[i].geometry;
    if (b.begin >= a.begin + a.count) continue;
    common->begin = b.begin;
    common->count = std::min(a.begin + a.count, b.begin + b.count) - b.begin;
    return PiecePair(i - 1, i);
  }
  return std::nullopt;
}

std::optional<PiecePair> BoxOverlap(const TensorDesc& t, const std::vector<Piece>& pieces,
                                    Geometry* common) {
  BoxSet boxes(t.shape.size());
  for (uint32_t i = 0; i < pieces.size(); ++i) boxes.Add(t, pieces[i].geometry, i);
  const auto found = FindOverlap(boxes);
  if (!found) return std::nullopt;
  const auto [a, b] = *found;
  common->is_box = true;
  for (size_t k = 0; k < boxes.ndim(); ++k) {
    const int64_t lo = std::max(boxes.lo(a, k), boxes.lo(b, k));
    common->offset.push_back(lo);
    common->extent.push_back(std::min(boxes.hi(a, k), boxes.hi(b, k)) - lo);
  }
  return std::minmax(boxes.piece(a), boxes.piece(b));
}

Status CheckDisjoint(const TensorDesc& t, const std::vector<Piece>& pieces) {
  const bool boxes =
      std::any_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.geometry.is_box; });
  Geometry common;
  const auto found = boxes ? BoxOverlap(t, pieces, &common) : FlatOverlap(pieces, &common);
  if (!found) return Status();
  const Piece &a = pieces[found->first], &b = pieces[found->second];
  for (const Holder& h : a.holders) {
    const auto same = std::lower_bound(b.holders.begin(), b.holders.end(), h.rank,
                                       [](const Holder& x, int32_t rank) { return x.rank < rank; });
    if (same == b.holders.end() || same->rank != h.rank) continue;
    return GivenTwice(t, h.rank,
                      Cat(Describe(t, common), " (in ", Describe(t, a.geometry), " and in ",
                          Describe(t, b.geometry), ")"));
  }
  const int32_t ra = a.holders[0].rank, rb = b.holders[0].rank;
  return Uncovered(t, std::max(ra, rb), "overlap",
                   Cat("rank ", ra, " gives ", Describe(t, a.geometry), " and rank ", rb, " gives ",
                       Describe(t, b.geometry), ": they overlap in ", Describe(t, common),
                       ", and only equal shards are replicas"));
}

int64_t HeldBefore(const TensorDesc& t, const std::vector<Piece>& pieces, int64_t element) {
  const ByteRange range{0, static_cast<uint64_t>(element) * t.elem_bytes};
  uint64_t bytes = 0;
  for (const Piece& p : pieces) bytes += BytesWithin(t, p.geometry, range);
  return static_cast<int64_t>(bytes / t.elem_bytes);
}

// The largest x in [from, count] for which holds(x); REQUIRES: it holds for `from`, and once it
// fails it fails for all that follow.
template <typename Fn>
int64_t LastWhere(int64_t from, int64_t count, const Fn& holds) {
  int64_t lo = from, hi = count;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo + 1) / 2;
    if (holds(mid)) {
      lo = mid;
    } else {
      hi = mid - 1;
    }
  }
  return lo;
}

std::string IndexOf(const Dims& shape, int64_t element) {
  Dims index(shape.size());
  for (size_t k = shape.size(); k-- > 0; element /= shape[k]) index[k] = element % shape[k];
  return Bracketed(index);
}

// REQUIRES: disjoint.  The pieces hold x elements below x up to the gap, and no more of them until
// its end: both are found by bisection.
Status CheckComplete(const TensorDesc& t, const std::vector<Piece>& pieces) {
  const int64_t count = MakeWhole(t).count;
  if (HeldBefore(t, pieces, count) == count) return Status();
  if (pieces.empty()) {
    return Uncovered(t, -1, "gap", Cat("no rank holds any of its ", count, " elements"));
  }
  const int64_t begin =
      LastWhere(0, count, [&](int64_t x) { return HeldBefore(t, pieces, x) == x; });
  const int64_t end =
      LastWhere(begin, count, [&](int64_t x) { return HeldBefore(t, pieces, x) == begin; });
  Geometry gap;
  gap.begin = begin;
  gap.count = end - begin;
  std::vector<int32_t> ranks;
  for (const Piece& p : pieces) {
    for (const Holder& h : p.holders) ranks.push_back(h.rank);
  }
  return Uncovered(
      t, -1, "gap",
      Cat("no rank holds ", Describe(t, gap), " (of ", count, "; from index ",
          IndexOf(t.shape, begin), "); held in part by rank ", RankRanges(std::move(ranks))));
}

}  // namespace

Result<std::vector<Piece>> MakePieces(const TensorDesc& t, std::vector<ShardRef> shards) {
  auto pieces = GroupReplicas(t, std::move(shards));
  if (!pieces.ok()) return pieces;
  CKPT_RETURN_IF_ERROR(CheckDisjoint(t, *pieces));
  CKPT_RETURN_IF_ERROR(CheckComplete(t, *pieces));
  return pieces;
}

}  // namespace ckpt
