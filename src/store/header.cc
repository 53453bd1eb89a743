// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the header of a safetensors file, ours or foreign: nothing in it is believed before it is
// checked against the file's size.  Test: tests/unit/store/header_test.cc
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "store/json_in.h"
#include "store/names.h"
#include "store/store.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint64_t kMaxHeaderJson = 100'000'000;  // what every reader refuses

Status Bad(const std::string& file, std::string_view tensor, std::string_view why,
           Code code = Code::kCorrupt) {
  Cause cause;
  cause.path = file;
  cause.name = Lendable(tensor);
  const std::string what = tensor.empty() ? std::string() : Cat(" tensor ", Printable(tensor), ":");
  return Status(code, Cat("file ", file, ":", what, " ", why), std::move(cause));
}

Status CheckMetadata(const std::string& file, const Json& metadata) {
  if (!metadata.is_object()) return Bad(file, "", "__metadata__ is not an object");
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) {
      return Bad(file, "", Cat("__metadata__: \"", Printable(key), "\" is not a string"));
    }
  }
  return Status();
}

Result<Dims> ReadShape(const Json& shape) {
  Dims dims;
  for (const Json& dim : shape) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > uint64_t{INT64_MAX}) {
      return Status(Code::kCorrupt, Cat("shape ", Printable(JsonText(shape)), " is not valid"));
    }
    dims.push_back(dim.get<int64_t>());
  }
  return dims;
}

// Offsets relative to the data start, as in the header.
Result<PlacedTensor> ReadTensor(const std::string& name, const Json& value) {
  JsonFields fields(value, "entry");
  const std::string dtype = fields.Str("dtype");
  const Json& shape = fields.Array("shape");
  const Json& range = fields.Array("data_offsets");
  CKPT_RETURN_IF_ERROR(fields.status());
  CKPT_ASSIGN_OR_RETURN(const DTypeInfo info, FindDTypeByName(dtype));
  PlacedTensor placed;
  placed.desc.name = name;
  placed.desc.dtype = info.dtype;
  CKPT_ASSIGN_OR_RETURN(placed.desc.shape, ReadShape(shape));
  // The caller names the tensor: SizeTensor's own words would do it a second time.
  const Status sized = SizeTensor(&placed.desc);
  if (!sized.ok()) {
    const bool packed = sized.code() == Code::kInvalidArgument;
    return Status(Code::kCorrupt, Cat("shape ", Printable(JsonText(shape)),
                                      packed ? " ends within a byte" : " is too large"));
  }
  if (range.size() != 2 || !range[0].is_number_unsigned() || !range[1].is_number_unsigned()) {
    return Status(Code::kCorrupt, "data_offsets are not two whole numbers");
  }
  placed.offset = range[0].get<uint64_t>();
  const uint64_t end = range[1].get<uint64_t>();
  if (end < placed.offset || end - placed.offset != placed.desc.bytes) {
    return Status(Code::kCorrupt,
                  Cat("data_offsets [", placed.offset, ", ", end, "] do not hold the ",
                      placed.desc.bytes, " bytes of its dtype and shape"));
  }
  return placed;
}

// Without gap and overlap from the data start to the end of the file.
Status CheckOrder(const std::string& file, uint64_t data_start, uint64_t data_bytes,
                  std::vector<PlacedTensor>* tensors) {
  std::sort(tensors->begin(), tensors->end(), [](const PlacedTensor& a, const PlacedTensor& b) {
    if (a.offset != b.offset) return a.offset < b.offset;
    return a.desc.bytes != b.desc.bytes ? a.desc.bytes < b.desc.bytes : a.desc.name < b.desc.name;
  });
  uint64_t end = 0;
  for (PlacedTensor& t : *tensors) {
    if (t.offset < end) return Bad(file, t.desc.name, "overlaps the tensor before it");
    if (t.offset > end) return Bad(file, t.desc.name, "leaves a hole before it");
    if (t.desc.bytes > data_bytes - end) {
      return Bad(file, t.desc.name, Cat("ends behind the ", data_bytes, " data bytes of the file"));
    }
    end = t.offset + t.desc.bytes;
    t.offset += data_start;
  }
  if (end == data_bytes) return Status();
  return Bad(file, "", Cat("its tensors end at data byte ", end, ", the file at ", data_bytes));
}

Status ReadEntries(const std::string& file, const Json& header, FileLayout* out) {
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      CKPT_RETURN_IF_ERROR(CheckMetadata(file, value));
      continue;
    }
    auto placed = ReadTensor(name, value);
    if (!placed.ok()) {
      return Bad(file, name.empty() ? "\"\"" : name, placed.status().message(),
                 placed.status().code());
    }
    placed->desc.group = out->group;
    out->tensors.push_back(std::move(placed).value());
  }
  return Status();
}

}  // namespace

Result<FileLayout> ParseHeader(const std::string& file_name, std::string_view header_json,
                               uint64_t file_bytes) {
  const uint64_t n = header_json.size();
  if (n > kMaxHeaderJson) return Bad(file_name, "", "header above 100 MB");
  const uint64_t data_start = sizeof n + n;
  if (data_start > file_bytes) return Bad(file_name, "", "header longer than the file");
  auto json = ParseJsonObject(header_json);
  if (!json.ok()) {
    return Bad(file_name, json.status().cause().name, Cat("header: ", json.status().message()));
  }
  FileLayout out;
  out.name = file_name;
  out.group = GroupOfFile(file_name);
  out.bytes = file_bytes;
  out.header.assign(sizeof n, '\0');
  std::memcpy(out.header.data(), &n, sizeof n);
  out.header.append(header_json);
  CKPT_RETURN_IF_ERROR(ReadEntries(file_name, *json, &out));
  CKPT_RETURN_IF_ERROR(CheckOrder(file_name, data_start, file_bytes - data_start, &out.tensors));
  return out;
}

}  // namespace ckpt
