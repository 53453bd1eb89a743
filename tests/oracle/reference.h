// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The reference implementation: what the files of a step must hold, and what the memory of a rank
// must look like, element by element. Slow on purpose, pure, and without a line of src/. Written
// from ckpt.h and docs/format.md. Covered by reference_test.cc, on cases spelled out by hand.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ckpt.h"
#include "oracle/numbers.h"

namespace oracle {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// A tensor of the job, with its content: unit i is a function of (seed, i).
struct Tensor {
  std::string group, name;  // as stored
  Dims shape;               // in units: F4's last dimension is halved
  uint32_t dtype = 0;       // as stored
  uint64_t seed = 0;
  bool cast = false;    // ranks hold it as any float dtype
  bool exact = false;   // of a cast one: values that all six float dtypes have
  int same_along = -1;  // the content does not change along this dimension
};

struct Alias {
  std::string group, name, of;
};

struct Blob {
  uint32_t scope = CKPT_BLOB_PER_RANK;
  std::string name;
  uint64_t seed = 0;
  bool required = false;
  std::vector<int> ranks;      // that give it
  std::vector<int64_t> bytes;  // by rank
};
std::string BlobBytes(const Blob& blob, int rank);

struct Model {
  std::vector<Tensor> tensors;
  std::vector<Alias> aliases;
  std::vector<Blob> blobs;
  Pairs metadata;
};

// What one ckpt_tensor says, in units, and where its memory lies in a buffer of `span` units.
struct Shard {
  int tensor = -1;  // of the model, whose content it holds
  std::string group, name;
  Dims shape;
  uint32_t dtype = 0, store_dtype = 0, flags = 0;
  uint32_t kind = CKPT_SHARD_WHOLE;
  Dims offset, extent;
  int64_t begin = 0, count = 0;
  Dims strides;                 // empty: compact
  int64_t first = 0, span = 0;  // unit of the buffer that `data` points to; units in all
  int64_t skew = 0;             // bytes before the buffer's first unit
};

// What one rank brings; names as it spells them, before its renames.
struct Part {
  std::vector<Shard> shards;
  std::vector<Alias> aliases;
  Pairs renames;
};

int64_t Count(const Dims& shape);
std::string Renamed(const Pairs& renames, const std::string& name);

// Row-major indices in the tensor of the shard's units, in the shard's order.
std::vector<int64_t> Units(const Shard& s);
// Where in the buffer each of them lies.
std::vector<int64_t> Places(const Shard& s);

// Unit i as it lies in memory that holds the tensor as `dtype`.
std::string MemoryUnit(const Tensor& t, int64_t i, uint32_t dtype);

// A buffer as it is before anything was put there; and with the units given, one after the other.
std::string Background(const Shard& s);
std::string WithUnits(const Shard& s, const std::vector<std::string>& units);

// The stored bytes of model.tensors[k], by whose memory each unit is in.
std::string StoredBytes(const Model& model, const std::vector<Part>& parts, size_t k);

struct Stored {
  std::string group, name;
  Dims shape;  // in units
  uint32_t dtype = 0;
  std::string bytes;
};

// Each alias and the tensor at the end of its chain.
std::vector<Alias> Resolved(const std::vector<Alias>& aliases);

// The header of a safetensors file that holds these, in this order.
std::string Header(const std::vector<Stored>& tensors,
                   const std::map<std::string, std::string>& metadata);
std::string JsonString(const std::string& text);

// What a step folder must hold, but for the commit record.
struct Step {
  std::map<std::string, std::string> data, index, side;  // files, by name
  std::map<std::string, std::vector<std::string>> groups;
  std::map<std::string, std::map<std::string, std::string>> aliases;
  std::map<std::string, std::map<std::string, uint32_t>> dtypes;
  std::vector<Stored> tensors;  // of the groups, sorted by (group, name)
};
struct StoreOptions {
  uint64_t max_file_bytes = 5'000'000'000;
  bool duplicate_ties = false;
};
Step Expect(const Model& model, const std::vector<Part>& parts, const StoreOptions& options);

}  // namespace oracle
