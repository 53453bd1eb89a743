// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Who may own which stretch of a file.
// Test: tests/unit/plan/spans_test.cc
#include "plan/segments.h"

#include <algorithm>
#include <iterator>

#include "util/checked.h"

namespace ckpt {
namespace {

using Ranks = std::vector<int32_t>;

// A stretch before narrowing to writers.
struct Stretch {
  uint64_t begin, end;
  Ranks holders;  // ascending
};

Ranks HoldersOf(const GlobalTensor& t, const TensorSpans& s, const Span& span) {
  Ranks out;
  for (uint32_t i = span.first; i < span.first + span.count; ++i) {
    for (const Holder& h : t.pieces[s.order[i]].holders) out.push_back(h.rank);
  }
  if (span.count > 1) {
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }
  return out;
}

void Append(Stretch s, std::vector<Stretch>* out) {
  if (s.begin >= s.end) return;
  if (!out->empty() && out->back().holders == s.holders) {
    out->back().end = s.end;
  } else {
    out->push_back(std::move(s));
  }
}

void Absorb(const Stretch& s, Stretch* into) {
  Ranks both;
  std::set_union(into->holders.begin(), into->holders.end(), s.holders.begin(), s.holders.end(),
                 std::back_inserter(both));
  into->holders = std::move(both);
  into->end = s.end;
}

uint64_t Length(const Stretch& s) { return s.end - s.begin; }

// Joins neighbours shorter than min_run into groups that are not; what is left at the end of a row
// of short ones goes to the last group.
std::vector<Stretch> JoinShort(std::vector<Stretch> in, uint64_t min_run) {
  std::vector<Stretch> out;
  for (size_t i = 0; i < in.size();) {
    if (Length(in[i]) >= min_run) {
      out.push_back(std::move(in[i++]));
      continue;
    }
    const size_t first = out.size();
    for (; i < in.size() && Length(in[i]) < min_run; ++i) {
      if (out.size() > first && Length(out.back()) < min_run) {
        Absorb(in[i], &out.back());
      } else {
        out.push_back(std::move(in[i]));
      }
    }
    if (out.size() - first > 1 && Length(out.back()) < min_run) {
      const Stretch rest = std::move(out.back());
      out.pop_back();
      Absorb(rest, &out.back());
    }
  }
  return out;
}

Ranks Narrow(const Ranks& holders, const Ranks& writers) {
  Ranks out;
  std::set_intersection(holders.begin(), holders.end(), writers.begin(), writers.end(),
                        std::back_inserter(out));
  return out.empty() ? writers : out;
}

std::vector<Stretch> DataStretches(const PlannedFile& file, uint64_t from) {
  std::vector<Stretch> out;
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const uint64_t at = file.layout->tensors[i].offset;
    for (const Span& span : file.spans[i].spans) {
      if (at + span.range.end <= from) continue;
      Append({std::max(from, at + span.range.begin), at + span.range.end,
              HoldersOf(*file.tensors[i], file.spans[i], span)},
             &out);
    }
  }
  return out;
}

}  // namespace

uint32_t RankSets::Intern(const Ranks& ranks) {
  const auto [it, added] = index_.try_emplace(ranks, size());
  if (added) sets_.push_back(&it->first);
  return it->second;
}

std::vector<Segment> MakeSegments(const PlannedFile& file, const Ranks& writers,
                                  const SavePlanOptions& options, RankSets* sets) {
  std::vector<Segment> out;
  uint64_t from = 0;
  if (!file.layout->header.empty()) {
    from = std::min(file.layout->bytes, RoundUp(file.layout->header.size(), options.io_align));
    out.push_back({0, from, sets->Intern({options.coordinator})});
  }
  std::vector<Stretch> narrowed;
  for (Stretch& s : JoinShort(DataStretches(file, from), options.min_run)) {
    s.holders = Narrow(s.holders, writers);
    Append(std::move(s), &narrowed);
  }
  for (const Stretch& s : narrowed) out.push_back({s.begin, s.end, sets->Intern(s.holders)});
  return out;
}

}  // namespace ckpt
