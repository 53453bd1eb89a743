// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks on what a caller or a peer says a tensor is.
// Test: tests/unit/meta/tensor_test.cc
#include <algorithm>

#include "meta/meta.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 62;

Status BadTensor(Code code, std::string_view group, std::string_view name, const Status& why,
                 std::string_view field) {
  Cause cause;
  cause.name = Lendable(name);
  cause.field = std::string(field);
  return Status(code, Cat("tensor ", Printable(group), "/", Printable(name), ": ", why.message()),
                std::move(cause));
}

Status CheckName(std::string_view name) {
  if (name.empty()) return Status(Code::kInvalidArgument, "the name is empty");
  if (name == "__metadata__") {
    return Status(Code::kInvalidArgument, "the name is reserved by safetensors");
  }
  if (name.find('\0') != std::string_view::npos) {
    return Status(Code::kInvalidArgument, "the name holds a NUL byte");
  }
  if (!IsUtf8(name)) return Status(Code::kInvalidArgument, "the name is not UTF-8");
  return Status();
}

Status CheckGroup(std::string_view group) {
  const bool plain = std::all_of(group.begin(), group.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  if (group.empty() || group.size() > 64 || !plain) {
    return Status(Code::kInvalidArgument, "a group is 1 to 64 of A-Z, a-z, 0-9, _ and -");
  }
  if (group == "blobs") return Status(Code::kInvalidArgument, "the group \"blobs\" is reserved");
  return Status();
}

}  // namespace

Result<int64_t> ElementCount(const Dims& shape) {
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0) return Status(Code::kInvalidArgument, Cat("the dimension ", dim, " is negative"));
    empty = empty || dim == 0;
  }
  if (empty) return int64_t{0};
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (__builtin_mul_overflow(count, dim, &count) || count > kMaxCount) {
      return Status(Code::kLimit, "more than 2^62 elements");
    }
  }
  return count;
}

Dims LogicalShape(const TensorDesc& t) {
  Dims shape = t.shape;
  const auto dtype = FindDType(t.dtype);
  if (dtype.ok() && !shape.empty()) shape.back() *= dtype->per_unit;
  return shape;
}

Status SizeTensor(TensorDesc* t) {
  t->elem_bytes = 0;
  t->bytes = 0;
  auto dtype = FindDType(t->dtype);
  if (!dtype.ok()) {
    return BadTensor(dtype.status().code(), t->group, t->name, dtype.status(), "dtype");
  }
  // What has no name in safetensors is stored with one dimension more.
  const size_t max_dims = dtype->named ? kMaxDims : kMaxDims - 1;
  if (t->shape.size() > max_dims) {
    const Status why(Code::kLimit,
                     Cat(t->shape.size(), " dimensions; at most ", max_dims, " can be stored"));
    return BadTensor(Code::kLimit, t->group, t->name, why, "shape");
  }
  auto count = ElementCount(t->shape);
  if (!count.ok()) {
    return BadTensor(count.status().code(), t->group, t->name, count.status(), "shape");
  }
  if (*count > kMaxCount / dtype->bytes) {
    const Status why(Code::kLimit, "more than 2^62 bytes");
    return BadTensor(Code::kLimit, t->group, t->name, why, "shape");
  }
  const int64_t units = *count / dtype->per_unit;
  if (dtype->per_unit > 1) {
    if (t->shape.empty() || t->shape.back() % dtype->per_unit != 0) {
      const Status why(
          Code::kInvalidArgument,
          Cat("shape ", Bracketed(t->shape), ": ", dtype->name, " packs ", dtype->per_unit,
              " elements into a byte, so the last dimension must be ", "a multiple of that"));
      return BadTensor(Code::kInvalidArgument, t->group, t->name, why, "shape");
    }
    t->shape.back() /= dtype->per_unit;
  }
  t->elem_bytes = dtype->bytes;
  t->bytes = static_cast<uint64_t>(units) * dtype->bytes;
  return Status();
}

Result<TensorDesc> MakeTensor(std::string group, std::string name, DType dtype, Dims shape) {
  const Status bad_name = CheckName(name);
  if (!bad_name.ok()) return BadTensor(bad_name.code(), group, name, bad_name, "name");
  const Status bad_group = CheckGroup(group);
  if (!bad_group.ok()) return BadTensor(bad_group.code(), group, name, bad_group, "group");
  TensorDesc t{std::move(group), std::move(name), dtype, std::move(shape), 0, 0};
  CKPT_RETURN_IF_ERROR(SizeTensor(&t));
  return t;
}

}  // namespace ckpt
