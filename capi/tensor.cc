// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors and blobs of the caller.  Test: tests/conformance/bad_input.c
#include "capi/tensor.h"

#include "capi/structs.h"
#include "capi/values.h"
#include "util/text.h"

namespace ckpt::capi {
namespace {

constexpr int32_t kMaxDims = 64;
constexpr int32_t kHostDevices = 2;  // DLPack: 0 (unset) and kDLCPU

// One tensor's errors: each sentence begins with its name.
class Tensor {
 public:
  explicit Tensor(const ckpt_tensor& t) : t_(t) {}

  Status Check() const {
    CKPT_RETURN_IF_ERROR(CheckCodes());
    CKPT_RETURN_IF_ERROR(CheckKind());
    CKPT_RETURN_IF_ERROR(CheckDims());
    return CheckStrides();
  }

 private:
  std::string Says(const std::string& what) const {
    return Cat("tensor \"", Printable(t_.name), "\": ", what);
  }
  Status Bad(const std::string& what) const { return Invalid(t_.name, Says(what)); }
  Status Later(const std::string& what) const {
    return Unsupported(t_.name, Says(what + " is not in this version"));
  }

  Status CheckCodes() const {
    constexpr uint32_t kKnown = CKPT_TENSOR_OPTIONAL | CKPT_TENSOR_READY | CKPT_TENSOR_REQUIRED;
    if ((t_.flags & ~kKnown) != 0) {
      return Bad(fmt::format("unknown flag {:#x}", t_.flags & ~kKnown));
    }
    if (t_.shard_kind > CKPT_SHARD_FLAT) return Bad(Cat("unknown shard_kind ", t_.shard_kind));
    if (t_.device_type < 0) return Bad(Cat("device_type is ", t_.device_type));
    if (t_.device_type >= kHostDevices) {
      return Later(Cat("device memory (device_type ", t_.device_type, ")"));
    }
    return Status();
  }

  // Fields of another kind of shard: ignoring them would take a part for the whole.
  Status CheckKind() const {
    const bool box = t_.offset != nullptr || t_.extent != nullptr;
    const bool flat = t_.flat_offset != 0 || t_.flat_count != 0;
    if (box && t_.shard_kind != CKPT_SHARD_BOX) {
      return Bad("offset and extent are set, but shard_kind is not CKPT_SHARD_BOX");
    }
    if (flat && t_.shard_kind != CKPT_SHARD_FLAT) {
      return Bad("flat_offset and flat_count are set, but shard_kind is not CKPT_SHARD_FLAT");
    }
    return Status();
  }

  Status CheckDims() const {
    if (t_.ndim < 0 || t_.ndim > kMaxDims) {
      return Bad(Cat("ndim is ", t_.ndim, ": must be 0 to ", kMaxDims));
    }
    if (t_.ndim > 0 && t_.global_shape == nullptr) return Bad("global_shape is NULL");
    if (t_.shard_kind != CKPT_SHARD_BOX || t_.ndim == 0) return Status();
    if (t_.offset == nullptr) return Bad("offset is NULL, but shard_kind is CKPT_SHARD_BOX");
    if (t_.extent == nullptr) return Bad("extent is NULL, but shard_kind is CKPT_SHARD_BOX");
    return Status();
  }

  Status CheckStrides() const {
    if (t_.strides == nullptr || t_.shard_kind != CKPT_SHARD_FLAT) return Status();
    return Bad("a FLAT shard has no strides");
  }

  const ckpt_tensor& t_;
};

Dims CopyDims(const int64_t* dims, int32_t ndim) {
  return dims == nullptr ? Dims() : Dims(dims, dims + ndim);
}

}  // namespace

Result<TensorSpec> ConvertTensor(const ckpt_tensor* in, uint64_t index) {
  if (in == nullptr) return Invalid("", Cat("tensor ", index, " of the call is NULL"));
  ckpt_tensor t;
  CKPT_RETURN_IF_ERROR(ReadStruct(in, &t));
  if (t.name == nullptr)
    return Invalid("", Cat("the name of tensor ", index, " of the call is NULL"));
  CKPT_RETURN_IF_ERROR(Tensor(t).Check());
  TensorSpec spec;
  spec.group = t.group == nullptr ? "model" : t.group;
  spec.name = t.name;
  spec.dtype = t.dtype;
  spec.store_dtype = t.store_dtype;
  spec.shape = CopyDims(t.global_shape, t.ndim);
  spec.kind = static_cast<TensorSpec::Kind>(t.shard_kind);
  spec.offset = CopyDims(t.offset, t.ndim);
  spec.extent = CopyDims(t.extent, t.ndim);
  spec.flat_offset = t.flat_offset;
  spec.flat_count = t.flat_count;
  spec.strides = CopyDims(t.strides, t.ndim);
  spec.data = t.data;
  spec.optional = (t.flags & CKPT_TENSOR_OPTIONAL) != 0;
  spec.required = (t.flags & CKPT_TENSOR_REQUIRED) != 0;
  return spec;
}
static_assert(static_cast<uint32_t>(TensorSpec::Kind::kWhole) == CKPT_SHARD_WHOLE);
static_assert(static_cast<uint32_t>(TensorSpec::Kind::kBox) == CKPT_SHARD_BOX);
static_assert(static_cast<uint32_t>(TensorSpec::Kind::kFlat) == CKPT_SHARD_FLAT);

Result<BlobSpec> ConvertBlob(const ckpt_blob* in) {
  ckpt_blob b;
  CKPT_RETURN_IF_ERROR(ReadStruct(in, &b));
  if (b.name == nullptr) return Invalid("", "the blob's name is NULL");
  const std::string who = Cat("blob \"", Printable(b.name), "\": ");
  constexpr uint32_t kKnown = CKPT_BLOB_OPTIONAL | CKPT_BLOB_REQUIRED;
  if ((b.flags & ~kKnown) != 0) {
    return Invalid(b.name, fmt::format("{}unknown flag {:#x}", who, b.flags & ~kKnown));
  }
  if (b.scope > CKPT_BLOB_FILE) return Invalid(b.name, Cat(who, "unknown scope ", b.scope));
  if (b.writer_rank < -1) {
    return Invalid(b.name, Cat(who, "writer_rank is ", b.writer_rank, ": must be -1 or a rank"));
  }
  if (b.data == nullptr && b.bytes > 0) {
    return Invalid(b.name, Cat(who, "data is NULL but bytes is ", b.bytes));
  }
  BlobSpec spec;
  spec.name = b.name;
  spec.scope = static_cast<BlobScope>(b.scope);
  spec.writer_rank = b.writer_rank;
  spec.data = b.data;
  spec.bytes = b.bytes;
  spec.actual = b.actual;
  spec.optional = (b.flags & CKPT_BLOB_OPTIONAL) != 0;
  spec.required = (b.flags & CKPT_BLOB_REQUIRED) != 0;
  return spec;
}
static_assert(static_cast<uint32_t>(BlobScope::kPerRank) == CKPT_BLOB_PER_RANK);
static_assert(static_cast<uint32_t>(BlobScope::kShared) == CKPT_BLOB_SHARED);
static_assert(static_cast<uint32_t>(BlobScope::kFile) == CKPT_BLOB_FILE);

}  // namespace ckpt::capi
