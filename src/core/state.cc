// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The registered state: checks of what a rank adds.  Test: tests/unit/core/state_test.cc

#include <map>

#include "core/core.h"
#include "meta/convert.h"
#include "util/text.h"

namespace ckpt {
namespace {

Status Named(Code code, std::string message, const std::string& name) {
  Cause cause;
  cause.name = name;
  return Status(code, std::move(message), std::move(cause));
}

Result<DTypeInfo> FindDTypeOf(const TensorSpec& spec, DType dtype) {
  Result<DTypeInfo> info = FindDType(dtype);
  if (info.ok()) return info;
  Cause cause;
  cause.name = spec.name;
  cause.field = "dtype";
  return Status(info.status().code(),
                Cat("tensor \"", Printable(spec.name), "\": ", info.status().message()),
                std::move(cause));
}

Status CheckStoreDType(const TensorSpec& spec) {
  if (spec.store_dtype == 0 || spec.store_dtype == spec.dtype) return Status();
  CKPT_ASSIGN_OR_RETURN(const DTypeInfo from, FindDTypeOf(spec, spec.dtype));
  CKPT_ASSIGN_OR_RETURN(const DTypeInfo to, FindDTypeOf(spec, spec.store_dtype));
  if (CanConvert(from.dtype, to.dtype)) return Status();
  return Named(Code::kUnsupported,
               Cat("tensor \"", Printable(spec.name), "\": ", from.name, " cannot be stored as ",
                   to.name, " (only floating-point types of 8 to 64 bits are converted)"),
               spec.name);
}

// Packed types: everything that counts elements must count whole units.
Status ToUnits(const DTypeInfo& dtype, TensorSpec* spec) {
  const int64_t per = dtype.per_unit;
  if (per == 1) return Status();
  bool cut = false;
  const auto divide = [&](int64_t* n) {
    cut = cut || *n % per != 0;
    *n /= per;
  };
  if (!spec->offset.empty()) divide(&spec->offset.back());
  if (!spec->extent.empty()) divide(&spec->extent.back());
  divide(&spec->flat_offset);
  divide(&spec->flat_count);
  if (!spec->strides.empty()) {
    for (size_t k = 0; k + 1 < spec->strides.size(); ++k) divide(&spec->strides[k]);
    cut = cut || spec->strides.back() != 1;
  }
  if (!cut) return Status();
  return Named(Code::kInvalidArgument,
               Cat("tensor \"", Printable(spec->name), "\": ", dtype.name, " packs ", per,
                   " elements into a byte: offsets, extents and strides must not cut one (and the "
                   "last dimension must be contiguous)"),
               spec->name);
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
    CKPT_ASSIGN_OR_RETURN(const DTypeInfo memory_dtype, FindDTypeOf(spec, spec.dtype));
    CKPT_RETURN_IF_ERROR(CheckStoreDType(spec));
    const DType stored = spec.store_dtype == 0 ? spec.dtype : spec.store_dtype;
    CKPT_ASSIGN_OR_RETURN(TensorDesc desc, MakeTensor(spec.group, spec.name, stored, spec.shape));
    TensorSpec units = spec;
    CKPT_RETURN_IF_ERROR(ToUnits(memory_dtype, &units));
    CKPT_ASSIGN_OR_RETURN(Geometry geometry, MakeGeometry(desc, units));
    const Dims& extent = spec.kind == TensorSpec::Kind::kBox ? units.extent : desc.shape;
    Result<ShardMemory> memory = MakeMemory(spec.data, memory_dtype, extent, units.strides);
    if (!memory.ok()) {
      return Named(memory.status().code(),
                   Cat("tensor \"", Printable(spec.name), "\": ", memory.status().message()),
                   spec.name);
    }
    if (spec.data == nullptr && Elements(geometry) > 0) {
      return Named(Code::kInvalidArgument,
                   Cat("tensor \"", Printable(spec.name), "\": data is NULL but the shard has ",
                       Elements(geometry), " elements"),
                   spec.name);
    }
    tensors_.push_back(
        {std::move(desc), std::move(geometry), *std::move(memory), spec.optional, spec.required});
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

Status State::AddAlias(const std::string& group, const std::string& name, const std::string& of) {
  const Status status = [&]() -> Status {
    // Names of tensors, both of them.
    CKPT_RETURN_IF_ERROR(MakeTensor(group, name, kU8, {}).status());
    CKPT_RETURN_IF_ERROR(MakeTensor(group, of, kU8, {}).status());
    const std::string shown = Cat("alias \"", Printable(name), "\"");
    if (name == of) return Named(Code::kInvalidArgument, Cat(shown, " of itself"), name);
    for (const AliasDesc& other : aliases_) {
      if (other.group != group || other.name != name || other.of == of) continue;
      return Named(Code::kInvalidArgument,
                   Cat(shown, " of \"", Printable(of), "\" was declared one of \"",
                       Printable(other.of), "\" before"),
                   name);
    }
    return Status();
  }();
  if (!status.ok()) {
    Poison(status);
    return status;
  }
  aliases_.push_back({group, name, of});
  return Status();
}

Status State::AddRename(const std::string& from, const std::string& to) {
  for (const std::string& prefix : {from, to}) {
    if (IsUtf8(prefix)) continue;
    const Status status =
        Named(Code::kInvalidArgument, Cat("prefix \"", Printable(prefix), "\": not UTF-8"), prefix);
    Poison(status);
    return status;
  }
  renames_.emplace_back(from, to);
  return Status();
}

std::string State::StoredName(const std::string& name) const {
  for (const auto& [from, to] : renames_) {
    if (name.compare(0, from.size(), from) == 0) return Cat(to, name.substr(from.size()));
  }
  return name;
}

Status State::CheckStoredNames() const {
  if (renames_.empty()) return Status();
  std::map<std::pair<std::string, std::string>, std::string> local;  // (group, stored) -> local
  const auto check = [&](const std::string& group, const std::string& name) -> Status {
    const std::string stored = StoredName(name);
    CKPT_RETURN_IF_ERROR(MakeTensor(group, stored, kU8, {}).status());
    const auto [at, fresh] = local.try_emplace({group, stored}, name);
    if (fresh || at->second == name) return Status();
    return Named(Code::kInvalidArgument,
                 Cat("renaming makes \"", Printable(at->second), "\" and \"", Printable(name),
                     "\" of group ", group, " both \"", Printable(stored), "\""),
                 stored);
  };
  for (const Tensor& tensor : tensors_) {
    CKPT_RETURN_IF_ERROR(check(tensor.desc.group, tensor.desc.name));
  }
  for (const AliasDesc& alias : aliases_) {
    CKPT_RETURN_IF_ERROR(check(alias.group, alias.name));
    CKPT_RETURN_IF_ERROR(MakeTensor(alias.group, StoredName(alias.of), kU8, {}).status());
  }
  return Status();
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
  tensor.memory.data = data;
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
