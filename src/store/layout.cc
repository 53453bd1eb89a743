// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the tensors of a group lie: order, split into files, headers, the index.  Depends on names,
// dtypes, shapes and options only, so that any number of ranks writes the same bytes.
// Test: tests/unit/store/layout_test.cc
#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "store/json_in.h"
#include "store/names.h"
#include "store/store.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

uint64_t DataStart(uint64_t json_bytes) {
  return RoundUp(sizeof(uint64_t) + json_bytes, kHeaderAlign);
}

// "name":{"data_offsets":[..],"dtype":"F32","shape":[..]}
std::string Entry(const TensorDesc& t, const DTypeInfo& dtype, uint64_t begin) {
  Dims shape = LogicalShape(t);
  if (!dtype.named) shape.push_back(dtype.bytes);
  const Json value = {{"data_offsets", {begin, begin + t.bytes}},
                      {"dtype", dtype.named ? dtype.name : "U8"},
                      {"shape", shape}};
  return Cat(JsonText(t.name), ":", JsonText(value));
}

std::string MetadataEntry(const LayoutOptions& options) {
  Json pairs = options.metadata;
  for (const auto& [alias, of] : options.aliases) pairs[alias] = of;
  pairs["format"] = "pt";
  return Cat("\"__metadata__\":", JsonText(pairs));
}

// One file being filled; offsets count from the data start, which is known only at the end.
class OpenFile {
 public:
  explicit OpenFile(const LayoutOptions& options)
      : max_bytes_(options.max_file_bytes),
        max_header_bytes_(options.max_header_bytes),
        metadata_(MetadataEntry(options)) {
    json_bytes_ = metadata_.size() + 2;  // the braces
  }

  bool empty() const { return tensors_.empty(); }
  uint64_t data_bytes() const { return data_bytes_; }

  bool HeaderFits(const std::string& entry) const {
    return json_bytes_ + 1 + entry.size() <= max_header_bytes_;
  }
  bool Fits(const TensorDesc& t, const std::string& entry) const {
    const uint64_t start = DataStart(json_bytes_ + 1 + entry.size());
    const auto bytes = CheckedAdd(start + data_bytes_, t.bytes);
    return HeaderFits(entry) && bytes && *bytes <= max_bytes_;
  }
  void Add(TensorDesc t, std::string entry) {
    json_bytes_ += 1 + entry.size();
    const uint64_t begin = data_bytes_;
    data_bytes_ += t.bytes;
    entries_.emplace_back(t.name, std::move(entry));
    tensors_.push_back({std::move(t), begin});
  }

  FileLayout Close(const std::string& group) {
    FileLayout file;
    file.group = group;
    file.header = Header();
    file.bytes = file.header.size() + data_bytes_;
    for (PlacedTensor& t : tensors_) t.offset += file.header.size();
    file.tensors = std::move(tensors_);
    return file;
  }

 private:
  Bytes Header() {
    entries_.emplace_back("__metadata__", metadata_);
    std::sort(entries_.begin(), entries_.end());
    std::string json = "{";
    for (const auto& [name, entry] : entries_) {
      if (json.size() > 1) json += ',';
      json += entry;
    }
    json += '}';
    const uint64_t n = DataStart(json.size()) - sizeof(uint64_t);
    json.resize(n, ' ');
    Bytes header(sizeof n, '\0');
    std::memcpy(header.data(), &n, sizeof n);
    return header + json;
  }

  const uint64_t max_bytes_, max_header_bytes_;
  const std::string metadata_;
  uint64_t json_bytes_ = 0, data_bytes_ = 0;
  std::vector<std::pair<std::string, std::string>> entries_;
  std::vector<PlacedTensor> tensors_;
};

Status BadTensor(Code code, const TensorDesc& t, std::string_view why) {
  Cause cause;
  cause.name = Lendable(t.name);
  return Status(code, Cat("tensor ", t.group, "/", Printable(t.name), ": ", why), std::move(cause));
}

Status CheckNames(const std::vector<TensorDesc>& tensors) {
  std::set<std::string_view> seen;
  for (const TensorDesc& t : tensors) {
    if (!seen.insert(t.name).second) {
      return BadTensor(Code::kInvalidArgument, t, "the name is there twice");
    }
  }
  return Status();
}

Status CheckMetadata(const LayoutOptions& options) {
  for (const auto& [key, value] : options.metadata) {
    if (!IsUtf8(key) || !IsUtf8(value)) {
      return Status(Code::kInvalidArgument, Cat("metadata ", Printable(key), ": not UTF-8"));
    }
    if (key == "format" && value != "pt") {
      return Status(Code::kInvalidArgument, "metadata: \"format\" is always \"pt\"");
    }
  }
  for (const auto& [alias, of] : options.aliases) {
    if (alias != "format" && options.metadata.count(alias) == 0) continue;
    Cause cause;
    cause.name = Lendable(alias);
    return Status(Code::kInvalidArgument,
                  Cat("alias \"", Printable(alias), "\" of \"", Printable(of),
                      "\": __metadata__ has another entry of that name"),
                  std::move(cause));
  }
  if (MetadataEntry(options).size() + 2 <= options.max_header_bytes) return Status();
  return Status(Code::kLimit, "metadata: more than a header holds");
}

// Element sizes are powers of two: in descending order every tensor starts at a multiple of its
// own.
void SortForStorage(std::vector<TensorDesc>* tensors) {
  std::sort(tensors->begin(), tensors->end(), [](const TensorDesc& a, const TensorDesc& b) {
    return a.elem_bytes != b.elem_bytes ? a.elem_bytes > b.elem_bytes : a.name < b.name;
  });
}

}  // namespace

Result<std::vector<FileLayout>> LayoutGroup(const std::string& group,
                                            std::vector<TensorDesc> tensors,
                                            const LayoutOptions& options) {
  CKPT_RETURN_IF_ERROR(CheckNames(tensors));
  CKPT_RETURN_IF_ERROR(CheckMetadata(options));
  SortForStorage(&tensors);
  std::vector<FileLayout> files;
  std::optional<OpenFile> open(std::in_place, options);
  for (TensorDesc& t : tensors) {
    CKPT_ASSIGN_OR_RETURN(const DTypeInfo dtype, FindDType(t.dtype));
    std::string entry = Entry(t, dtype, open->data_bytes());
    if (!open->empty() && !open->Fits(t, entry)) {
      files.push_back(open->Close(group));
      open.emplace(options);
      entry = Entry(t, dtype, 0);
    }
    if (!open->HeaderFits(entry)) {
      return BadTensor(Code::kLimit, t, "its header entry and the metadata exceed a header");
    }
    open->Add(std::move(t), std::move(entry));
  }
  files.push_back(open->Close(group));
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].name = SafetensorsName(group, i, files.size());
  }
  return files;
}

std::string IndexJson(const std::vector<FileLayout>& files) {
  uint64_t total = 0;
  Json map = Json::object();
  for (const FileLayout& file : files) {
    for (const PlacedTensor& t : file.tensors) {
      total += t.desc.bytes;
      map[t.desc.name] = file.name;
    }
  }
  const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
  return JsonText(index, 2) + "\n";
}

}  // namespace ckpt
