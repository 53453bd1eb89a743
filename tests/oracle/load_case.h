// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a load ask for, drawn at random, and what the reference says they get.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "oracle/draw.h"

namespace oracle {

struct BlobAsk {
  uint32_t scope = CKPT_BLOB_PER_RANK;
  std::string name;
  int writer_rank = -1;
  int64_t capacity = 0;
  uint32_t flags = 0;
};

struct LoadPart {
  std::vector<Shard> shards;
  std::vector<Alias> aliases;
  Pairs renames;
  std::vector<BlobAsk> blobs;
};

struct LoadCase {
  uint32_t flags = 0;  // CKPT_LOAD_*
  std::vector<LoadPart> parts;
};
LoadCase DrawLoad(const SaveCase& saved, const Step& step, int ranks);

// Of one rank.
struct LoadWant {
  std::vector<std::string> memory;   // by shard: the whole buffer
  std::vector<std::string> blobs;    // by ask: the whole capacity
  std::vector<uint64_t> actual;      // by ask
  std::vector<std::string> missing;  // names as asked, in that order
  uint64_t found = 0;                // shards whose name is there
};

struct LoadAnswer {
  std::set<std::pair<ckpt_status, std::string>> errors;  // any of them; none: it succeeds
  std::vector<LoadWant> ranks;
  std::vector<std::string> unused;
};
LoadAnswer ExpectLoad(const SaveCase& saved, const Step& step, const LoadCase& load);

// What a blob that is not there leaves in its memory.
std::string BlobBackground(const BlobAsk& ask);

}  // namespace oracle
