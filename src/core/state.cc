// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The registered state: checks of what a rank adds.  Test: tests/unit/core/state_test.cc

#include "core/core.h"
#include "util/text.h"

namespace ckpt {
namespace {

Status Named(Code code, std::string message, const std::string& name) {
  Cause cause;
  cause.name = name;
  return Status(code, std::move(message), std::move(cause));
}

Result<Geometry> MakeGeometry(const TensorDesc& desc, const TensorSpec& spec) {
  switch (spec.kind) {
    case TensorSpec::Kind::kWhole:
      return MakeWhole(desc);
    case TensorSpec::Kind::kBox:
      return MakeBox(desc, spec.offset, spec.extent);
    case TensorSpec::Kind::kFlat:
      return MakeFlat(desc, spec.flat_offset, spec.flat_count);
  }
  return Named(Code::kInternal, "unknown kind of shard", spec.name);
}

// Names that the store itself gives to files of a step folder.
bool IsReservedFileName(const std::string& name) {
  auto ends_with = [&](std::string_view tail) {
    return name.size() >= tail.size() &&
           name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
  };
  return name == "ckpt.json" || ends_with(".safetensors") || ends_with(".safetensors.index.json");
}

Status CheckBlobName(const BlobSpec& spec) {
  const std::string shown = Cat("blob \"", Printable(spec.name), "\"");
  if (spec.name.empty()) return Named(Code::kInvalidArgument, "a blob's name is empty", spec.name);
  if (!IsUtf8(spec.name) || spec.name.find('\0') != std::string::npos) {
    return Named(Code::kInvalidArgument, Cat(shown, ": the name is not UTF-8"), spec.name);
  }
  if (spec.scope != BlobScope::kFile) return Status();
  if (spec.name.find('/') != std::string::npos || spec.name[0] == '.' || spec.name.size() > 255) {
    return Named(Code::kInvalidArgument,
                 Cat(shown,
                     ": a side file needs a plain file name (no '/', no leading '.', at most "
                     "255 bytes)"),
                 spec.name);
  }
  if (IsReservedFileName(spec.name)) {
    return Named(Code::kInvalidArgument, Cat(shown, ": this file name belongs to the checkpoint"),
                 spec.name);
  }
  return Status();
}

}  // namespace

void State::Poison(const Status& status) {
  if (poison_.ok()) poison_ = status;
}

Result<uint64_t> State::AddTensor(const TensorSpec& spec) {
  auto add = [&]() -> Result<uint64_t> {
    CKPT_ASSIGN_OR_RETURN(TensorDesc desc,
                          MakeTensor(spec.group, spec.name, spec.dtype, spec.shape));
    CKPT_ASSIGN_OR_RETURN(Geometry geometry, MakeGeometry(desc, spec));
    if (spec.data == nullptr && Elements(geometry) > 0) {
      return Named(Code::kInvalidArgument,
                   Cat("tensor \"", Printable(spec.name), "\": data is NULL but the shard has ",
                       Elements(geometry), " elements"),
                   spec.name);
    }
    tensors_.push_back(
        {std::move(desc), std::move(geometry), spec.data, spec.optional, spec.required});
    return tensors_.size() - 1;
  };
  Result<uint64_t> id = add();
  if (!id.ok()) Poison(id.status());
  return id;
}

Result<uint64_t> State::AddBlob(const BlobSpec& spec) {
  auto check = [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckBlobName(spec));
    if (spec.data == nullptr && spec.bytes > 0) {
      return Named(Code::kInvalidArgument,
                   Cat("blob \"", Printable(spec.name), "\": data is NULL but ", spec.bytes,
                       " bytes were stated"),
                   spec.name);
    }
    for (const BlobSpec& other : blobs_) {
      if (other.name == spec.name && other.scope == spec.scope &&
          other.writer_rank == spec.writer_rank) {
        return Named(Code::kInvalidArgument,
                     Cat("blob \"", Printable(spec.name), "\" was added twice"), spec.name);
      }
    }
    return Status();
  };
  if (Status status = check(); !status.ok()) {
    Poison(status);
    return status;
  }
  blobs_.push_back(spec);
  return blobs_.size() - 1;
}

Status State::UpdateTensor(uint64_t id, void* data) {
  if (id >= tensors_.size()) {
    return Status(Code::kInvalidArgument, Cat("there is no tensor with id ", id));
  }
  Tensor& tensor = tensors_[id];
  if (data == nullptr && Elements(tensor.geometry) > 0) {
    return Named(Code::kInvalidArgument,
                 Cat("tensor \"", Printable(tensor.desc.name), "\": data is NULL"),
                 tensor.desc.name);
  }
  tensor.data = data;
  return Status();
}

Status State::UpdateBlob(uint64_t id, void* data, uint64_t bytes) {
  if (id >= blobs_.size()) {
    return Status(Code::kInvalidArgument, Cat("there is no blob with id ", id));
  }
  if (data == nullptr && bytes > 0) {
    return Named(Code::kInvalidArgument,
                 Cat("blob \"", Printable(blobs_[id].name), "\": data is NULL"), blobs_[id].name);
  }
  blobs_[id].data = data;
  blobs_[id].bytes = bytes;
  return Status();
}

}  // namespace ckpt
