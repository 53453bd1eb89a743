// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A small language for tests of planning: ranks, tensors, who holds what, files; and the shards'
// memory and the files' bytes, made element by element with index arithmetic of their own.
#ifndef CKPT_TESTS_UNIT_PLAN_WORLD_H_
#define CKPT_TESTS_UNIT_PLAN_WORLD_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace ckpt::testing {

using Memory = std::vector<uint8_t>;

class World {
 public:
  explicit World(int world_size) : ranks(static_cast<size_t>(world_size)) {}

  // Index of a new tensor.  A side file's tensor has no group.
  size_t Add(const std::string& name, DType dtype, Dims shape, const std::string& group = "model");
  void Give(int rank, size_t tensor, const Geometry& g);  // the rank holds this
  void Know(int rank, size_t tensor);                     // the rank knows it, without a shard
  void Box(int rank, size_t tensor, const Dims& offset, const Dims& extent);
  void Flat(int rank, size_t tensor, int64_t begin, int64_t count);
  void Whole(int rank, size_t tensor);
  void WholeOnAll(size_t tensor);
  // Rows (dim 0) or other slices of dim: sizes[r] of them for rank r.
  void Slices(size_t tensor, size_t dim, const std::vector<int64_t>& sizes);
  // A file with these tensors in this order behind a header of so many bytes (0: a side file).
  void File(const std::string& name, uint64_t header_bytes, const std::vector<size_t>& of);

  std::vector<TensorDesc> tensors;
  std::vector<RankState> ranks;
  std::vector<FileLayout> files;

 private:
  uint32_t LocalIndex(int rank, size_t tensor);
};

// Flat indices of g's elements in ascending order, by looking at every element of the tensor.
std::vector<int64_t> ElementsOf(const TensorDesc& t, const Geometry& g);
uint8_t TensorByte(const TensorDesc& t, uint64_t at);  // made up from name and place
Memory ShardMemory(const TensorDesc& t, const Geometry& g);
Memory FileBytes(const FileLayout& file);

// Disjoint pieces that cover the tensor: one, flat ranges, slabs, boxes, or flat ranges and boxes.
std::vector<Geometry> RandomPieces(const TensorDesc& t, std::mt19937_64& rng);
// 1-9 ranks, several tensors and files, random splits and holders; all valid.
World RandomWorld(std::mt19937_64& rng);

}  // namespace ckpt::testing

#endif  // CKPT_TESTS_UNIT_PLAN_WORLD_H_
