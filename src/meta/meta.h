// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The nouns of a checkpoint: dtype, shape, geometry of a shard, tensor, blob, file layout; and the
// pure function from a shard's geometry to runs.  No I/O, no threads; values, safe to share const.
// All byte offsets are u64, all element counts int64 (the ABI's type), checked on the way in.
// Test: tests/unit/meta/
#ifndef CKPT_META_META_H_
#define CKPT_META_META_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "util/status.h"
#include "util/wire.h"

namespace ckpt {

// A dtype is the bytes of a DLDataType: code | bits << 8 | lanes << 16 (dlpack.h, v1.1).
using DType = uint32_t;
constexpr DType MakeDType(uint32_t code, uint32_t bits) { return code | bits << 8 | 1u << 16; }
inline constexpr DType kF32 = MakeDType(2, 32), kBF16 = MakeDType(4, 16), kU8 = MakeDType(1, 8),
                       kI64 = MakeDType(0, 64);

struct DTypeInfo {
  DType dtype = 0;
  std::string_view name;  // safetensors' name: "F32"; without one DLPack's, in lower case
  uint32_t bytes = 0;     // of one unit
  uint32_t per_unit = 1;  // elements in a unit: 2 for F4, else 1
  // safetensors has a name for it.  Else it is stored as U8 with one more dimension of `bytes`, and
  // the commit record has the code.
  bool named = true;
};
// INVALID_ARGUMENT for an unknown code; UNSUPPORTED for a known one that cannot be stored (packed
// ones without a name in safetensors).
Result<DTypeInfo> FindDType(DType dtype);
// CORRUPT for a name that safetensors does not define; UNSUPPORTED for one that we cannot read.
Result<DTypeInfo> FindDTypeByName(std::string_view name);

using Dims = std::vector<int64_t>;

// Product of the dims; INVALID_ARGUMENT (negative) or LIMIT (above 2^62 elements or bytes).
// A 0-d tensor has one element.
Result<int64_t> ElementCount(const Dims& shape);

// Everything below counts in units: an element, or the elements that share a byte (F4: two).  A
// packed tensor is taken if its last dimension holds whole units, so that no row begins within a
// byte.
struct TensorDesc {
  std::string group, name;
  DType dtype = 0;          // as stored
  Dims shape;               // global; the last dimension in units
  uint32_t elem_bytes = 0;  // of a unit
  uint64_t bytes = 0;       // of the whole tensor
  bool operator==(const TensorDesc&) const = default;
};
// The shape in elements: what callers and files say.
Dims LogicalShape(const TensorDesc& t);

// Checks name (not empty, UTF-8, not "__metadata__", no NUL), group ([A-Za-z0-9_-]{1,64}, not
// "blobs"), dtype and shape; fills elem_bytes and bytes.  Errors name the tensor (cause.name).
Result<TensorDesc> MakeTensor(std::string group, std::string name, DType dtype, Dims shape);
// The part of MakeTensor that knows no names (blobs and side files are U8 tensors too): checks
// dtype and shape, which is in elements and becomes one of units (LIMIT above kMaxDims dimensions,
// INVALID_ARGUMENT for a row that ends within a byte), fills elem_bytes and bytes; both are 0 after
// an error, and the shape is as it was.
inline constexpr size_t kMaxDims = 64;
Status SizeTensor(TensorDesc* t);

// Which part of a tensor: a flat range of its row-major elements, or a box that is not one.
// Normal form (what MakeWhole/MakeBox/MakeFlat give): a box whose elements are contiguous in the
// tensor, and any empty shard, is FLAT.  Two shards are replicas of each other iff equal.
struct Geometry {
  bool is_box = false;
  int64_t begin = 0, count = 0;  // FLAT, elements
  Dims offset, extent;           // BOX, elements per dimension
  bool operator==(const Geometry&) const = default;
  auto operator<=>(const Geometry&) const = default;
};
Geometry MakeWhole(const TensorDesc& t);
// INVALID_ARGUMENT (negative) or SHAPE (wrong number of dimensions, outside the tensor), naming it.
Result<Geometry> MakeBox(const TensorDesc& t, const Dims& offset, const Dims& extent);
Result<Geometry> MakeFlat(const TensorDesc& t, int64_t begin, int64_t count);
// For decoders: OK iff g is in normal form and inside the tensor.
Status CheckGeometry(const TensorDesc& t, const Geometry& g);

int64_t Elements(const Geometry& g);
// First and one-past-last byte of the geometry within the tensor (0,0 if empty).
struct ByteRange {
  uint64_t begin = 0, end = 0;
  uint64_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};
ByteRange Hull(const TensorDesc& t, const Geometry& g);
// Bytes of one contiguous run (the whole of it for FLAT).
uint64_t RunBytes(const TensorDesc& t, const Geometry& g);
// "[0:4, 8:16]" or "elements 128..255": for messages.
std::string Describe(const TensorDesc& t, const Geometry& g);

// A run: bytes contiguous both in the tensor and in the shard's compact row-major memory.
struct Run {
  uint64_t tensor_offset = 0;  // bytes from the tensor's first byte
  uint64_t local_offset = 0;   // bytes from the shard's first byte
  uint64_t bytes = 0;
};
// Calls fn for each run of g cut to the tensor's byte range [begin, end), in ascending order of
// both offsets.  Cost: proportional to the runs visited plus O(ndim), never to the runs before
// begin. `begin`/`end` need not be multiples of the element size.
void ForEachRun(const TensorDesc& t, const Geometry& g, ByteRange range,
                const std::function<void(const Run&)>& fn);
// Bytes of g inside the range: the sum of ForEachRun's runs, without visiting them (O(ndim)).
uint64_t BytesWithin(const TensorDesc& t, const Geometry& g, ByteRange range);

// Tensor offset of the first byte of g at or after `from`; t.bytes if there is none.  O(ndim).
uint64_t NextByte(const TensorDesc& t, const Geometry& g, uint64_t from);

enum class BlobScope : uint32_t { kPerRank = 0, kShared = 1, kFile = 2 };
struct BlobDesc {
  std::string name;
  BlobScope scope = BlobScope::kPerRank;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // of the content: shared blobs and side files must agree
  uint32_t flags = 0;   // CKPT_BLOB_OPTIONAL, _REQUIRED
};

// Another name of a tensor of its group (tied weights).
struct AliasDesc {
  std::string group, name, of;
  bool operator==(const AliasDesc&) const = default;
};

// What one rank brings to a save: the tensors it knows (with or without a shard) and its shards.
// Encoded compactly; the decoder accepts input from a peer and never trusts it.
struct RankState {
  std::vector<TensorDesc> tensors;
  struct Shard {
    uint32_t tensor = 0;  // index into tensors
    Geometry geometry;
  };
  std::vector<Shard> shards;    // index = the rank's shard id, used to pull bytes from it
  std::vector<BlobDesc> blobs;  // index = the rank's blob id
  std::vector<AliasDesc> aliases;
  std::vector<uint32_t> required;  // indices into tensors: some rank must hold their data
  bool may_write = true;           // CKPT_INIT_NO_WRITE
};
Bytes EncodeRankState(const RankState& s);
Result<RankState> DecodeRankState(std::string_view bytes);  // COMM if malformed

// Where a file's tensors lie.  Pure function of names, dtypes, shapes and options (store/store.h).
struct PlacedTensor {
  TensorDesc desc;
  uint64_t offset = 0;  // file offset of the tensor's first byte
};
struct FileLayout {
  std::string name;   // "model-00001-of-00003.safetensors"; a side file: its own name
  std::string group;  // "" for a side file
  Bytes header;       // bytes 0 .. data start (8-byte length, JSON, padding); empty for a side file
  uint64_t bytes = 0;                 // of the whole file
  std::vector<PlacedTensor> tensors;  // ascending offset
};

void PutTensor(WireWriter& w, const TensorDesc& t);
// Not validated beyond the encoding: with a bad dtype or shape, elem_bytes and bytes are 0.
TensorDesc GetTensor(WireReader& r);
void PutGeometry(WireWriter& w, const Geometry& g);
Geometry GetGeometry(WireReader& r);  // not validated: CheckGeometry

}  // namespace ckpt

#endif  // CKPT_META_META_H_
