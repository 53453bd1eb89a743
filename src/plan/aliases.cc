// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Ties: declared, never guessed from equal pointers.  Test: tests/unit/plan/aliases_test.cc
#include "plan/aliases.h"

#include <algorithm>
#include <utility>

#include "util/text.h"

namespace ckpt {
namespace {

using Key = std::pair<std::string, std::string>;  // group, name

Status Bad(Code code, const Key& alias, int32_t rank, std::string_view field, std::string why) {
  Cause cause;
  cause.rank = rank;
  cause.name = alias.second;
  cause.field = std::string(field);
  return Status(code, Cat("alias ", alias.first, "/", Printable(alias.second), ": ", why),
                std::move(cause));
}

const GlobalTensor* Find(const std::vector<GlobalTensor>& tensors, const Key& key) {
  const auto at = std::lower_bound(
      tensors.begin(), tensors.end(), key, [](const GlobalTensor& t, const Key& k) {
        return std::tie(t.desc.group, t.desc.name) < std::tie(k.first, k.second);
      });
  const bool found =
      at != tensors.end() && at->desc.group == key.first && at->desc.name == key.second;
  return found ? &*at : nullptr;
}

struct Declared {
  std::string of;
  int32_t rank = 0;
};
using Declarations = std::map<Key, Declared>;

Status Collect(const RankState& state, int32_t rank, const std::vector<GlobalTensor>& tensors,
               Declarations* out) {
  for (const AliasDesc& alias : state.aliases) {
    const Key key(alias.group, alias.name);
    if (Find(tensors, key) != nullptr) {
      return Bad(Code::kMismatch, key, rank, "alias",
                 Cat("rank ", rank, " declares it an alias of \"", Printable(alias.of),
                     "\", but it is given as a tensor too"));
    }
    const auto [at, fresh] = out->try_emplace(key, Declared{alias.of, rank});
    if (fresh || at->second.of == alias.of) continue;
    return Bad(Code::kMismatch, key, rank, "alias",
               Cat("rank ", at->second.rank, " says of \"", Printable(at->second.of), "\", rank ",
                   rank, " of \"", Printable(alias.of), "\""));
  }
  return Status();
}

// The tensor at the end of the chain.
Result<std::string> Resolve(const Key& alias, const Declarations& declared,
                            const std::vector<GlobalTensor>& tensors) {
  const Declared& first = declared.at(alias);
  std::string of = first.of;
  for (size_t links = 0; links <= declared.size(); ++links) {
    if (Find(tensors, {alias.first, of}) != nullptr) return of;
    const auto next = declared.find({alias.first, of});
    if (next == declared.end()) {
      return Bad(Code::kInvalidArgument, alias, first.rank, "alias",
                 Cat("no rank gives the tensor \"", Printable(of), "\" that it stands for"));
    }
    of = next->second.of;
  }
  return Bad(Code::kInvalidArgument, alias, first.rank, "alias", "aliases go in a circle");
}

}  // namespace

Result<GlobalAliases> MergeAliases(const std::vector<RankState>& ranks,
                                   const std::vector<GlobalTensor>& tensors) {
  Declarations declared;
  for (size_t r = 0; r < ranks.size(); ++r) {
    CKPT_RETURN_IF_ERROR(Collect(ranks[r], static_cast<int32_t>(r), tensors, &declared));
  }
  GlobalAliases out;
  for (const auto& [alias, unused] : declared) {
    CKPT_ASSIGN_OR_RETURN(out[alias], Resolve(alias, declared, tensors));
  }
  return out;
}

void DuplicateTies(GlobalState* state) {
  std::vector<GlobalTensor> copies;
  for (const auto& [alias, of] : state->aliases) {
    copies.push_back(*Find(state->tensors, {alias.first, of}));
    copies.back().desc.name = alias.second;
  }
  state->aliases.clear();
  std::move(copies.begin(), copies.end(), std::back_inserter(state->tensors));
  std::sort(state->tensors.begin(), state->tensors.end(),
            [](const GlobalTensor& a, const GlobalTensor& b) {
              return std::tie(a.desc.group, a.desc.name) < std::tie(b.desc.group, b.desc.name);
            });
}

}  // namespace ckpt
