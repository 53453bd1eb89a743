// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What a load gives: names looked up, dtypes and shapes compared, each unit where it belongs.
#include "oracle/load_case.h"

namespace oracle {
namespace {

using Key = std::pair<std::string, std::string>;  // group, name as stored
using Recorded = std::map<std::string, std::map<std::string, std::string>>;

const Stored* Exactly(const Step& step, const Key& key) {
  for (const Stored& t : step.tensors)
    if (t.group == key.first && t.name == key.second) return &t;
  return nullptr;
}

// As a tensor, or as a tie that the checkpoint knows.
const Stored* Known(const Step& step, const Key& key) {
  if (const Stored* t = Exactly(step, key)) return t;
  const auto group = step.aliases.find(key.first);
  if (group == step.aliases.end() || group->second.count(key.second) == 0) return nullptr;
  return Exactly(step, {key.first, group->second.at(key.second)});
}

// The name and all that this rank declares to be other names of it.
std::vector<Key> NamesOf(const LoadPart& part, const Key& asked) {
  std::vector<Alias> aliases = part.aliases;
  for (Alias& a : aliases) {
    a.name = Renamed(part.renames, a.name);
    a.of = Renamed(part.renames, a.of);
  }
  std::vector<Key> names = {asked};
  for (const Alias& a : Resolved(aliases))
    if (Key(a.group, a.of) == asked) names.emplace_back(a.group, a.name);
  return names;
}

bool MayConvert(const Shard& s, const Stored& t, bool convert) {
  if (s.dtype == t.dtype) return true;
  return IsFloat(s.dtype) && IsFloat(t.dtype) && (convert || s.store_dtype == t.dtype);
}

std::vector<std::string> WantedUnits(const Shard& s, const Stored& t) {
  std::vector<std::string> units;
  const int64_t bytes = FindDType(t.dtype).bytes;
  for (const int64_t i : Units(s))
    units.push_back(Cast(t.dtype, t.bytes.data() + i * bytes, s.dtype));
  return units;
}

struct Answering {
  const SaveCase& saved;
  const Step& step;
  const LoadCase& load;
  LoadAnswer answer = {};
  std::set<Key> used = {};
  std::set<Key> missed = {};  // by the rank that is asking

  void Ask(const LoadPart& part, const Shard& s, LoadWant* want) {
    const Stored* found = nullptr;
    for (const Key& name : NamesOf(part, {s.group, Renamed(part.renames, s.name)})) {
      if (Exactly(step, name) != nullptr) used.insert(name);
      if (found == nullptr) found = Known(step, name);
    }
    want->memory.push_back(Background(s));
    if (found == nullptr) return Miss(s, want);
    used.insert({found->group, found->name});
    want->found += 1;
    if (!MayConvert(s, *found, load.flags & CKPT_LOAD_CONVERT)) {
      answer.errors.insert({CKPT_ERR_DTYPE, s.name});
    } else if (found->shape != s.shape) {
      answer.errors.insert({CKPT_ERR_SHAPE, s.name});
    } else {
      want->memory.back() = WithUnits(s, WantedUnits(s, *found));
    }
  }

  void Miss(const Shard& s, LoadWant* want) {
    if (missed.insert({s.group, s.name}).second) want->missing.push_back(s.name);
    const bool allowed = load.flags & CKPT_LOAD_ALLOW_MISSING && !(s.flags & CKPT_TENSOR_REQUIRED);
    if (allowed || s.flags & CKPT_TENSOR_OPTIONAL) return;
    answer.errors.insert({CKPT_ERR_NOT_FOUND, s.name});
  }

  void AskBlob(const BlobAsk& ask, int rank, LoadWant* want) {
    want->blobs.push_back(BlobBackground(ask));
    want->actual.push_back(UINT64_MAX);
    const int writer = ask.scope != CKPT_BLOB_PER_RANK ? -1
                       : ask.writer_rank < 0           ? rank
                                                       : ask.writer_rank;
    for (const Blob& blob : saved.model.blobs) {
      if (blob.scope != ask.scope || blob.name != ask.name) continue;
      for (const int r : blob.ranks) {
        if (writer >= 0 && writer != r) continue;
        const std::string bytes = BlobBytes(blob, r);
        want->actual.back() = bytes.size();
        if (static_cast<int64_t>(bytes.size()) > ask.capacity) {
          answer.errors.insert({CKPT_ERR_LIMIT, ask.name});
        } else {
          want->blobs.back().replace(0, bytes.size(), bytes);
        }
        return;
      }
    }
    if (!(ask.flags & CKPT_BLOB_OPTIONAL)) answer.errors.insert({CKPT_ERR_NOT_FOUND, ask.name});
  }

  // A load that fails before it reads leaves all memory as it was; a blob that is too large says
  // how large.
  void Fail() {
    for (size_t r = 0; r < answer.ranks.size(); ++r) {
      LoadWant& want = answer.ranks[r];
      const LoadPart& part = load.parts[r];
      for (size_t i = 0; i < part.shards.size(); ++i) want.memory[i] = Background(part.shards[i]);
      for (size_t i = 0; i < part.blobs.size(); ++i) {
        want.blobs[i] = BlobBackground(part.blobs[i]);
        const bool too_large = want.actual[i] != UINT64_MAX &&
                               static_cast<int64_t>(want.actual[i]) > part.blobs[i].capacity;
        if (!too_large) want.actual[i] = 0;
      }
    }
  }
};

}  // namespace

std::string BlobBackground(const BlobAsk& ask) {
  return std::string(static_cast<size_t>(ask.capacity), '\xEE');
}

LoadAnswer ExpectLoad(const SaveCase& saved, const Step& step, const LoadCase& load) {
  Answering a{saved, step, load};
  for (size_t r = 0; r < load.parts.size(); ++r) {
    LoadWant want;
    a.missed.clear();
    for (const Shard& s : load.parts[r].shards) a.Ask(load.parts[r], s, &want);
    for (const BlobAsk& b : load.parts[r].blobs) a.AskBlob(b, static_cast<int>(r), &want);
    a.answer.ranks.push_back(std::move(want));
  }
  for (const Stored& t : step.tensors)
    if (a.used.count({t.group, t.name}) == 0) a.answer.unused.push_back(t.name);
  if (a.answer.errors.empty() && load.flags & CKPT_LOAD_NO_UNUSED)
    for (const std::string& name : a.answer.unused)
      a.answer.errors.insert({CKPT_ERR_NOT_FOUND, name});
  if (!a.answer.errors.empty()) a.Fail();
  return std::move(a.answer);
}

}  // namespace oracle
