// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Random jobs. Everything is a function of a seed, so that every rank and the parent draw the same
// without talking: the options of a block of states, and of each state its tensors, its split over
// the ranks that save, and what the ranks that load ask for.
#pragma once

#include <string>
#include <vector>

#include "oracle/reference.h"

namespace oracle {

// States with seeds of one block run under one context.
inline constexpr uint64_t kBlock = 50;

struct JobOptions {
  std::string job;                // keys that all ranks share
  std::vector<std::string> rank;  // a rank's own
  int no_write = -1;              // this rank has CKPT_INIT_NO_WRITE
  StoreOptions store;
  bool checks_replicas = true;
  bool large_tensors = false;  // not with tiny messages

  std::string Text(int r) const { return job + rank.at(static_cast<size_t>(r)); }
};
JobOptions DrawOptions(uint64_t seed, int ranks);

// Another way to say the same shard: a random kind and memory of it.
enum class Use { kSave, kLoad };
struct Region {
  bool flat = false;
  Dims offset, extent;
  int64_t begin = 0, count = 0;
};
void Describe(Rng* rng, const Region& region, Shard* s);
void DrawMemory(Rng* rng, Use use, int same_along, Shard* s);

Region WholeOf(const Dims& shape);
Region AnyRegion(Rng* rng, const Dims& shape);

// How one rank spells names: renames, and for each stored name the one that becomes it.
class Speller {
 public:
  Speller(Rng* rng, const std::vector<std::string>& stored);
  const Pairs& renames() const { return renames_; }
  const std::string& Local(const std::string& stored) const { return local_.at(stored); }

 private:
  bool Try(Rng* rng, const std::vector<std::string>& stored);
  Pairs renames_;
  std::map<std::string, std::string> local_;
};

Model DrawModel(Rng* rng, int ranks, bool large_tensors);

struct SaveCase {
  uint64_t seed = 0;
  Model model;
  std::vector<Part> parts;  // by rank
  std::string tag;
};
SaveCase DrawSave(uint64_t seed, int ranks, const JobOptions& options);

std::vector<uint32_t> FloatDTypes();

}  // namespace oracle
