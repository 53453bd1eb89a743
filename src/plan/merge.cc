// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The global state from what the ranks brought: one entry per (group, name), its pieces, checked.
// Test: tests/unit/plan/merge_test.cc

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "plan/aliases.h"
#include "plan/coverage.h"
#include "plan/plan.h"
#include "util/text.h"

namespace ckpt {
namespace {

struct Entry {
  const TensorDesc* desc;
  int32_t first_rank;  // that described it
  std::vector<ShardRef> shards;
  bool required = false;
};

std::string DTypeText(DType dtype) {
  const auto info = FindDType(dtype);
  return info.ok() ? std::string(info->name) : Cat("dtype ", dtype);
}

std::string ShapeText(const TensorDesc& t) { return Bracketed(LogicalShape(t)); }

Status CheckSame(const Entry& e, const TensorDesc& other, int32_t rank) {
  if (*e.desc == other) return Status();
  const bool dtype = e.desc->dtype != other.dtype;
  const std::string was = dtype ? DTypeText(e.desc->dtype) : ShapeText(*e.desc);
  const std::string is = dtype ? DTypeText(other.dtype) : ShapeText(other);
  Cause cause;
  cause.rank = rank;
  cause.name = other.name;
  cause.field = dtype ? "dtype" : "shape";
  const std::string text =
      Cat("tensor ", other.group, "/", Printable(other.name), ": rank ", e.first_rank, " gives ",
          cause.field, " ", was, ", rank ", rank, " gives ", is);
  return Status(Code::kMismatch, text, std::move(cause));
}

// Entries in the order in which they are first met.
class Merger {
 public:
  Status Add(const RankState& state, int32_t rank) {
    std::vector<size_t> entry_of;
    entry_of.reserve(state.tensors.size());
    for (const TensorDesc& t : state.tensors) {
      const size_t e = FindOrAdd(t, rank);
      CKPT_RETURN_IF_ERROR(CheckSame(entries_[e], t, rank));
      entry_of.push_back(e);
    }
    for (uint32_t tensor : state.required) entries_[entry_of[tensor]].required = true;
    for (uint32_t i = 0; i < state.shards.size(); ++i) {
      const RankState::Shard& s = state.shards[i];
      if (Elements(s.geometry) == 0) continue;
      entries_[entry_of[s.tensor]].shards.push_back({&s.geometry, rank, i});
    }
    return Status();
  }

  Result<std::vector<GlobalTensor>> Finish() {
    std::vector<GlobalTensor> out;
    out.reserve(entries_.size());
    for (const auto& [name, e] : index_) {  // sorted by (group, name)
      CKPT_RETURN_IF_ERROR(CheckHeld(entries_[e]));
      auto pieces = MakePieces(*entries_[e].desc, std::move(entries_[e].shards));
      if (!pieces.ok()) return pieces.status();
      out.push_back({*entries_[e].desc, std::move(pieces).value()});
    }
    return out;
  }

 private:
  using Name = std::pair<std::string_view, std::string_view>;

  size_t FindOrAdd(const TensorDesc& t, int32_t rank) {
    // Ranks mostly know the same tensors in the same order: look behind the last one first.
    const size_t guess = last_ + 1 < entries_.size() ? last_ + 1 : 0;
    if (guess < entries_.size() && entries_[guess].desc->name == t.name &&
        entries_[guess].desc->group == t.group) {
      return last_ = guess;
    }
    const auto [it, added] = index_.try_emplace(Name(t.group, t.name), entries_.size());
    if (added) entries_.push_back({&t, rank, {}, false});
    return last_ = it->second;
  }

  static Status CheckHeld(const Entry& e) {
    if (!e.required || !e.shards.empty() || e.desc->bytes == 0) return Status();
    Cause cause;
    cause.name = e.desc->name;
    return Status(Code::kNotFound,
                  Cat("tensor ", e.desc->group, "/", Printable(e.desc->name),
                      " is required, and no rank holds it"),
                  std::move(cause));
  }

  std::vector<Entry> entries_;
  std::map<Name, size_t> index_;
  size_t last_ = 0;
};

}  // namespace

Result<GlobalState> MergeStates(const std::vector<RankState>& ranks) {
  Merger merger;
  GlobalState out;
  out.may_write.reserve(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r) {
    CKPT_RETURN_IF_ERROR(merger.Add(ranks[r], static_cast<int32_t>(r)));
    out.may_write.push_back(ranks[r].may_write);
  }
  CKPT_ASSIGN_OR_RETURN(out.tensors, merger.Finish());
  CKPT_ASSIGN_OR_RETURN(out.aliases, MergeAliases(ranks, out.tensors));
  return out;
}

}  // namespace ckpt
