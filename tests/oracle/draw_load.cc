// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Random loads: other splits, other memory, other names, some of them wrong.
#include <algorithm>

#include "oracle/load_case.h"

namespace oracle {
namespace {

// A name under which a rank may ask, and what it then gets.
struct Candidate {
  std::string group, name;
  const Stored* tensor = nullptr;  // null: never saved
};

// What all ranks of the load have in common.
struct Wishes {
  std::vector<Candidate> names;
  std::vector<Alias> aliases;
  uint32_t flags = 0;
  bool sloppy = false;  // mistakes are made
};

// Instead of its own name a new one, of which its own is declared an alias, maybe by way of
// another alias.
void AskFreshly(Rng* rng, Candidate* c, std::vector<Alias>* aliases) {
  const std::string number = std::to_string(aliases->size());
  std::string of = "fresh." + number;
  if (rng->OneIn(3)) {
    aliases->push_back({c->group, "between." + number, of});
    of = "between." + number;
  }
  aliases->push_back({c->group, c->name, of});
  c->name = "fresh." + number;
}

Wishes DrawWishes(Rng* rng, const SaveCase& saved, const Step& step) {
  Wishes w;
  w.sloppy = rng->OneIn(4);
  for (const uint32_t flag : {CKPT_LOAD_CONVERT, CKPT_LOAD_ALLOW_MISSING})
    if (rng->OneIn(2)) w.flags |= flag;
  if (rng->OneIn(5)) w.flags |= CKPT_LOAD_NO_UNUSED;
  if (rng->OneIn(5)) w.flags |= CKPT_LOAD_NO_VERIFY;
  const bool ties = rng->OneIn(2);
  if (ties) w.aliases = saved.model.aliases;
  const auto is_tie = [&](const std::string& group, const std::string& name) {
    return std::any_of(w.aliases.begin(), w.aliases.end(),
                       [&](const Alias& a) { return a.group == group && a.name == name; });
  };
  for (const Stored& t : step.tensors)
    if (!is_tie(t.group, t.name)) w.names.push_back({t.group, t.name, &t});
  for (const auto& [group, aliases] : step.aliases) {
    for (const auto& [alias, of] : aliases) {
      if (is_tie(group, alias)) continue;
      for (const Stored& t : step.tensors)
        if (t.group == group && t.name == of) w.names.push_back({group, alias, &t});
    }
  }
  for (Candidate& c : w.names)
    if (rng->OneIn(8)) AskFreshly(rng, &c, &w.aliases);
  for (int64_t n = rng->OneIn(2) ? 0 : rng->In(1, 2); n > 0; --n)
    w.names.push_back(
        {rng->OneIn(2) ? "model" : "other", "never." + std::to_string(rng->In(1, 2)), nullptr});
  return w;
}

void DrawDType(Rng* rng, const Wishes& w, uint32_t stored, Shard* s) {
  const bool convert = w.flags & CKPT_LOAD_CONVERT;
  s->dtype = stored;
  if (IsFloat(stored) && rng->OneIn(2)) {
    s->dtype = rng->Of(FloatDTypes());
    if (!convert || rng->OneIn(3)) s->store_dtype = stored;
  } else if (rng->OneIn(3)) {
    s->store_dtype = IsFloat(stored) && rng->OneIn(2) ? rng->Of(FloatDTypes()) : stored;
  }
  if (!w.sloppy || !rng->OneIn(8)) return;
  std::vector<uint32_t> others;  // of the same size, so that the shape stays
  for (const DType& d : DTypes())
    if (d.bytes == FindDType(stored).bytes && d.per_unit == 1 && d.code != stored)
      others.push_back(d.code);
  if (FindDType(stored).per_unit > 1) return;
  s->dtype = rng->Of(others);
  s->store_dtype = 0;
}

Shard DrawAsk(Rng* rng, const Wishes& w, const Candidate& c, const std::string& local) {
  Shard s;
  s.group = c.group;
  s.name = local;
  s.flags = static_cast<uint32_t>(rng->In(0, 7));
  if (s.flags & CKPT_TENSOR_REQUIRED) s.flags &= ~CKPT_TENSOR_OPTIONAL;  // both say nothing clear
  if (c.tensor == nullptr) {
    s.shape = {rng->In(1, 5)};
    s.dtype = CKPT_DTYPE(2, 32);
    if (!w.sloppy || rng->OneIn(2)) {  // it may be missing, for one reason or the other
      s.flags &= ~CKPT_TENSOR_REQUIRED;
      if (!(w.flags & CKPT_LOAD_ALLOW_MISSING)) s.flags |= CKPT_TENSOR_OPTIONAL;
    }
  } else {
    s.shape = c.tensor->shape;
    DrawDType(rng, w, c.tensor->dtype, &s);
    if (w.sloppy && rng->OneIn(12)) s.shape.push_back(1);
  }
  Describe(rng, AnyRegion(rng, s.shape), &s);
  DrawMemory(rng, Use::kLoad, -1, &s);
  return s;
}

BlobAsk DrawBlobAsk(Rng* rng, const Wishes& w, const Blob& blob, int rank) {
  BlobAsk ask{.scope = blob.scope, .name = blob.name};
  if (blob.scope == CKPT_BLOB_PER_RANK && rng->OneIn(2))
    ask.writer_rank = static_cast<int>(rng->In(0, static_cast<int64_t>(blob.bytes.size())));
  const int writer = blob.scope != CKPT_BLOB_PER_RANK ? blob.ranks[0]
                     : ask.writer_rank < 0            ? rank
                                                      : ask.writer_rank;
  const bool there = std::count(blob.ranks.begin(), blob.ranks.end(), writer) > 0;
  ask.capacity = there ? blob.bytes[static_cast<size_t>(writer)] : 5;
  if (rng->OneIn(2)) ask.capacity += rng->In(0, 9);
  if (w.sloppy && ask.capacity > 0 && rng->OneIn(6)) ask.capacity -= 1;
  if (rng->OneIn(3) || (!there && (!w.sloppy || rng->OneIn(2)))) ask.flags = CKPT_BLOB_OPTIONAL;
  return ask;
}

LoadPart DrawPart(Rng* rng, const Wishes& w, const SaveCase& saved, int rank) {
  std::vector<std::string> names;
  for (const Candidate& c : w.names) names.push_back(c.name);
  for (const Alias& a : w.aliases) {
    names.push_back(a.name);
    names.push_back(a.of);
  }
  const Speller spell(rng, names);
  LoadPart part;
  part.renames = spell.renames();
  for (const Candidate& c : w.names) {
    const int64_t times = rng->OneIn(3) && !(w.flags & CKPT_LOAD_NO_UNUSED) ? 0 : rng->In(1, 2);
    for (int64_t i = 0; i < times; ++i)
      part.shards.push_back(DrawAsk(rng, w, c, spell.Local(c.name)));
  }
  rng->Shuffle(&part.shards);
  for (const Alias& a : w.aliases)
    part.aliases.push_back({a.group, spell.Local(a.name), spell.Local(a.of)});
  rng->Shuffle(&part.aliases);
  for (const Blob& blob : saved.model.blobs)
    if (rng->OneIn(2)) part.blobs.push_back(DrawBlobAsk(rng, w, blob, rank));
  if (rng->OneIn(4))
    part.blobs.push_back(
        {static_cast<uint32_t>(rng->In(0, 2)), "no.such", -1, 4, CKPT_BLOB_OPTIONAL});
  return part;
}

}  // namespace

LoadCase DrawLoad(const SaveCase& saved, const Step& step, int ranks) {
  Rng rng(Mix(saved.seed, 2));
  const Wishes w = DrawWishes(&rng, saved, step);
  LoadCase load;
  load.flags = w.flags;
  for (int r = 0; r < ranks; ++r) load.parts.push_back(DrawPart(&rng, w, saved, r));
  return load;
}

}  // namespace oracle
