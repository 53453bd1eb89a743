// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "oracle/rank_state.h"

#include <sstream>

namespace oracle {
namespace {

using ckpt_test::Outcome;

// From units to elements.
Dims Scaled(Dims dims, int64_t per_unit) {
  if (!dims.empty()) dims.back() *= per_unit;
  return dims;
}

std::string Words(const std::string& what, const Outcome& o) {
  std::ostringstream out;
  out << what << ": " << o;
  return out.str();
}

// The first place where they differ, or nothing.
std::string Difference(const std::string& is, const std::string& want) {
  for (size_t i = 0; i < std::max(is.size(), want.size()); ++i) {
    if (i < is.size() && i < want.size() && is[i] == want[i]) continue;
    std::ostringstream out;
    out << "byte " << i << " of " << want.size() << std::hex;
    if (i < is.size()) out << " is " << (is[i] & 0xff);
    if (i < want.size()) out << ", not " << (want[i] & 0xff);
    return out.str();
  }
  return "";
}

}  // namespace

ckpt_test::Tensor Described(const Shard& s, std::string* buffer) {
  const DType& d = FindDType(s.dtype);
  ckpt_test::Tensor t{.name = s.name, .shape = Scaled(s.shape, d.per_unit), .dtype = s.dtype};
  t.kind = s.kind;
  t.offset = Scaled(s.offset, d.per_unit);
  t.extent = Scaled(s.extent, d.per_unit);
  if (s.kind == CKPT_SHARD_FLAT) {
    t.flat_offset = s.begin * d.per_unit;
    t.flat_count = s.count * d.per_unit;
  }
  t.strides = s.strides;
  for (size_t k = 0; k + 1 < t.strides.size(); ++k) t.strides[k] *= d.per_unit;
  t.group = s.group == "model" && s.skew % 2 == 0 ? "" : s.group;
  t.flags = s.flags;
  t.store_dtype = s.store_dtype;
  const bool empty = Places(s).empty();
  if (!empty) t.data = buffer->data() + s.skew + s.first * d.bytes;
  if (empty && s.skew % 2 == 1) t.data = buffer->data();
  return t;
}

std::string SavedMemory(const Model& model, const Shard& s) {
  std::vector<std::string> units;
  for (const int64_t i : Units(s))
    units.push_back(s.tensor < 0
                        ? std::string(static_cast<size_t>(FindDType(s.dtype).bytes), '\x11')
                        : MemoryUnit(model.tensors[static_cast<size_t>(s.tensor)], i, s.dtype));
  return WithUnits(s, units);
}

SaveState::SaveState(ckpt_test::Ctx& ctx, const SaveCase& c, int rank, const Perturbation& p)
    : state_(ctx) {
  const Part& part = c.parts[static_cast<size_t>(rank)];
  for (const auto& [from, to] : part.renames) Note("rename", state_.Rename(from, to));
  for (size_t i = 0; i < part.shards.size(); ++i) {
    const Shard& s = part.shards[i];
    memory_.push_back(std::make_unique<std::string>(SavedMemory(c.model, s)));
    if (p.rank == rank && p.shard == static_cast<int>(i)) memory_.back()->at(p.byte) ^= 0x01;
    Note(s.name, state_.TryAdd(Described(s, memory_.back().get())));
  }
  for (const Alias& a : part.aliases) Note(a.name, state_.TryAlias(a.name, a.of, a.group));
  AddBlobs(c, rank, p);
}

void SaveState::AddBlobs(const SaveCase& c, int rank, const Perturbation& p) {
  for (size_t i = 0; i < c.model.blobs.size(); ++i) {
    const Blob& blob = c.model.blobs[i];
    bool gives = false;
    for (const int r : blob.ranks) gives = gives || r == rank;
    std::string bytes = BlobBytes(blob, rank);
    if (p.rank == rank && p.blob == static_cast<int>(i)) {
      if (p.fault == Perturbation::BlobFault::kMissing) gives = false;
      if (p.fault == Perturbation::BlobFault::kLonger) bytes += 'x';
      if (p.fault == Perturbation::BlobFault::kOther) bytes.at(bytes.size() / 2) ^= 0x01;
    }
    if (!gives) continue;
    memory_.push_back(std::make_unique<std::string>(bytes));
    Note(blob.name, state_.TryBlob(blob.scope, blob.name, memory_.back()->data(), bytes.size(),
                                   blob.required ? CKPT_BLOB_REQUIRED : 0));
  }
}

void SaveState::Note(const std::string& what, const Outcome& o) {
  if (!o.ok()) refused_.push_back(Words(what, o));
}

LoadState::LoadState(ckpt_test::Ctx& ctx, const LoadPart& part) : state_(ctx) {
  const auto note = [&](const std::string& what, const Outcome& o) {
    if (!o.ok()) refused_.push_back(Words(what, o));
  };
  for (const auto& [from, to] : part.renames) note("rename", state_.Rename(from, to));
  for (const Shard& s : part.shards) {
    memory_.push_back(std::make_unique<std::string>(Background(s)));
    note(s.name, state_.TryAdd(Described(s, memory_.back().get())));
  }
  for (const Alias& a : part.aliases) note(a.name, state_.TryAlias(a.name, a.of, a.group));
  for (const BlobAsk& b : part.blobs) {
    blobs_.push_back(std::make_unique<std::string>(BlobBackground(b)));
    actual_.push_back(std::make_unique<uint64_t>(0));
    note(b.name, state_.TryBlob(b.scope, b.name, blobs_.back()->data(), blobs_.back()->size(),
                                b.flags, actual_.back().get(), b.writer_rank));
  }
}

std::vector<std::string> LoadState::Compare(const LoadPart& part, const LoadWant& want, int rank,
                                            uint64_t* units) const {
  std::vector<std::string> out = refused_;
  const auto add = [&](const std::string& what, const std::string& difference) {
    if (!difference.empty())
      out.push_back("rank " + std::to_string(rank) + ", " + what + ": " + difference);
  };
  for (size_t i = 0; i < part.shards.size(); ++i) {
    const Shard& s = part.shards[i];
    add("shard " + std::to_string(i) + " of " + s.group + "/" + s.name,
        Difference(*memory_[i], want.memory[i]));
    *units += Places(s).size();
  }
  for (size_t i = 0; i < part.blobs.size(); ++i) {
    add("blob " + part.blobs[i].name, Difference(*blobs_[i], want.blobs[i]));
    if (*actual_[i] != want.actual[i])
      add("blob " + part.blobs[i].name,
          "actual is " + std::to_string(*actual_[i]) + ", not " + std::to_string(want.actual[i]));
  }
  return out;
}

}  // namespace oracle
