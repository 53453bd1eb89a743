// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A shard in the caller's memory: any strides, another dtype than the stored one.  Everything else
// in the library sees a shard in its compact form: its units in row-major order, in the stored
// dtype, without holes.  Here the one becomes the other.  Pure; the memory is the caller's.
// Test: tests/unit/meta/memory_test.cc
#ifndef CKPT_META_MEMORY_H_
#define CKPT_META_MEMORY_H_

#include "meta/meta.h"

namespace ckpt {

struct ShardMemory {
  void* data = nullptr;     // the unit with local index 0 in every dimension
  DType dtype = 0;          // in memory
  uint32_t elem_bytes = 0;  // of a unit in memory
  // Empty: compact.  Else dimensions in row-major order, joined where they can be, and how many
  // units lie between neighbours in each (negative, and 0 for a broadcast one, included).
  Dims extent, strides;
};

// `extent` is the shard's shape in units, `strides` in units of memory (empty = compact; a
// dimension of at most one unit may have any).  LIMIT when the farthest unit is out of the address
// space's reach.
Result<ShardMemory> MakeMemory(void* data, const DTypeInfo& dtype, const Dims& extent,
                               const Dims& strides);

// Whether two indices of the shard share memory: a save may read it so, a load must not write it
// so.  Exact up to 2^20 units; above that strides that are not nested count as overlapping.
bool SelfOverlaps(const ShardMemory& m);

// Bytes [begin, begin + n) of the compact form, of dtype `stored`, out of memory and back.
// REQUIRES: CanConvert in that direction; where the dtypes differ, begin and n are multiples of the
// stored element.
void PackShard(const ShardMemory& m, DType stored, uint64_t begin, uint64_t n, void* out);
void UnpackShard(const ShardMemory& m, DType stored, uint64_t begin, uint64_t n, const void* in);

// The same for the runs of geometry g in the tensor's bytes [range): into and out of a buffer that
// holds those bytes (Gather, Scatter), or the runs one after the other (Append).
void GatherShard(const TensorDesc& t, const Geometry& g, ByteRange range, const ShardMemory& m,
                 char* buffer);
void ScatterShard(const TensorDesc& t, const Geometry& g, ByteRange range, const char* buffer,
                  const ShardMemory& m);
void AppendShard(const TensorDesc& t, const Geometry& g, ByteRange range, const ShardMemory& m,
                 char* packed);

}  // namespace ckpt

#endif  // CKPT_META_MEMORY_H_
