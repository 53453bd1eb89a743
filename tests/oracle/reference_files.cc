// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What is on disk, as docs/format.md says it.
#include <algorithm>
#include <stdexcept>

#include "oracle/reference.h"

namespace oracle {
namespace {

using StringMap = std::map<std::string, std::string>;

std::string Number(uint64_t n) { return std::to_string(n); }

std::string List(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? "," : "") + item;
  return out + "]";
}

std::string Object(const StringMap& members) {  // values are JSON
  std::string out = "{";
  for (const auto& [key, value] : members)
    out += (out.size() > 1 ? "," : "") + JsonString(key) + ":" + value;
  return out + "}";
}

std::string Entry(const Stored& t, uint64_t begin) {
  const DType& d = FindDType(t.dtype);
  std::vector<std::string> shape;
  for (const int64_t n : t.shape) shape.push_back(Number(static_cast<uint64_t>(n)));
  if (d.per_unit > 1) shape.back() = Number(static_cast<uint64_t>(t.shape.back() * d.per_unit));
  if (!d.named) shape.push_back(Number(static_cast<uint64_t>(d.bytes)));
  return Object({{"dtype", JsonString(d.name)},
                 {"shape", List(shape)},
                 {"data_offsets", List({Number(begin), Number(begin + t.bytes.size())})}});
}

std::string File(const std::vector<Stored>& tensors, const StringMap& metadata) {
  std::string out = Header(tensors, metadata);
  for (const Stored& t : tensors) out += t.bytes;
  return out;
}

bool Before(const Stored& a, const Stored& b) {
  const int64_t x = FindDType(a.dtype).bytes, y = FindDType(b.dtype).bytes;
  return x != y ? x > y : a.name < b.name;
}

// Greedy: a tensor goes into the file before if the whole file, tried out, is not too large.
std::vector<std::vector<Stored>> Partition(std::vector<Stored> tensors, const StringMap& metadata,
                                           uint64_t max_file_bytes) {
  std::sort(tensors.begin(), tensors.end(), Before);
  std::vector<std::vector<Stored>> files(1);
  for (const Stored& t : tensors) {
    std::vector<Stored> together = files.back();
    together.push_back(t);
    const bool fits = File(together, metadata).size() <= max_file_bytes;
    if (fits || files.back().empty()) {
      files.back() = std::move(together);
    } else {
      files.push_back({t});
    }
  }
  return files;
}

std::string Digits5(size_t n) {
  const std::string digits = std::to_string(n);
  return std::string(5 - digits.size(), '0') + digits;
}

void AddGroup(const std::string& group, const std::vector<Stored>& tensors,
              const StringMap& metadata, const StoreOptions& options, Step* step) {
  const auto files = Partition(tensors, metadata, options.max_file_bytes);
  StringMap place;
  uint64_t total = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    std::string name = group;
    if (files.size() > 1) name += "-" + Digits5(i + 1) + "-of-" + Digits5(files.size());
    name += ".safetensors";
    step->data[name] = File(files[i], metadata);
    step->groups[group].push_back(name);
    for (const Stored& t : files[i]) {
      place[t.name] = name;
      total += t.bytes.size();
      if (!FindDType(t.dtype).named) step->dtypes[group][t.name] = t.dtype;
    }
  }
  if (group == "blobs") return;
  std::string index =
      "{\n  \"metadata\": {\n    \"total_size\": " + Number(total) + "\n  },\n  \"weight_map\": {";
  for (const auto& [name, file] : place) {
    index += index.back() == '{' ? "\n    " : ",\n    ";
    index += JsonString(name) + ": " + JsonString(file);
  }
  step->index[group + ".safetensors.index.json"] =
      index + (place.empty() ? "}\n}\n" : "\n  }\n}\n");
}

std::vector<Stored> BlobTensors(const Model& model) {
  std::map<std::string, Stored> by_name;
  for (const Blob& blob : model.blobs) {
    for (const int rank : blob.ranks) {
      if (blob.scope == CKPT_BLOB_FILE) continue;
      const std::string digits = std::to_string(rank);
      const std::string name =
          blob.scope == CKPT_BLOB_SHARED
              ? "shared/" + blob.name
              : "rank/" + std::string(6 - digits.size(), '0') + digits + "/" + blob.name;
      const std::string bytes = BlobBytes(blob, rank);
      by_name[name] = {
          "blobs", name, {static_cast<int64_t>(bytes.size())}, CKPT_DTYPE(1, 8), bytes};
    }
  }
  std::vector<Stored> out;
  for (const auto& [name, tensor] : by_name) out.push_back(tensor);
  return out;
}

}  // namespace

std::string JsonString(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    const std::string plain = "\"\\", shortened = "\b\f\n\r\t", letters = "bfnrt";
    const size_t at = shortened.find(c);
    if (plain.find(c) != std::string::npos) {
      out += std::string("\\") + c;
    } else if (at != std::string::npos) {
      out += std::string("\\") + letters[at];
    } else if (code < 0x20) {
      out += std::string("\\u00") + "01"[code >> 4] + "0123456789abcdef"[code & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Header(const std::vector<Stored>& tensors, const StringMap& metadata) {
  StringMap members, pairs;
  for (const auto& [key, value] : metadata) pairs[key] = JsonString(value);
  members["__metadata__"] = Object(pairs);
  uint64_t begin = 0;
  for (const Stored& t : tensors) {
    members[t.name] = Entry(t, begin);
    begin += t.bytes.size();
  }
  std::string json = Object(members);
  while ((8 + json.size()) % 4096 != 0) json += ' ';
  std::string out;
  for (int b = 0; b < 8; ++b) out += static_cast<char>(json.size() >> (8 * b));
  return out + json;
}

std::vector<Alias> Resolved(const std::vector<Alias>& aliases) {
  std::vector<Alias> out = aliases;
  for (Alias& a : out) {
    for (size_t links = 0; links <= aliases.size(); ++links)
      for (const Alias& b : aliases)
        if (b.group == a.group && b.name == a.of) a.of = b.of;
  }
  return out;
}

Step Expect(const Model& model, const std::vector<Part>& parts, const StoreOptions& options) {
  Step step;
  std::map<std::pair<std::string, std::string>, Stored> stored;
  for (size_t k = 0; k < model.tensors.size(); ++k) {
    const Tensor& t = model.tensors[k];
    stored[{t.group, t.name}] = {t.group, t.name, t.shape, t.dtype, StoredBytes(model, parts, k)};
  }
  for (const Alias& a : Resolved(model.aliases)) {
    Stored copy = stored.at({a.group, a.of});
    copy.name = a.name;
    if (options.duplicate_ties) stored[{a.group, a.name}] = copy;
    if (!options.duplicate_ties) step.aliases[a.group][a.name] = a.of;
  }
  std::map<std::string, std::vector<Stored>> groups;
  for (const auto& [key, tensor] : stored) {
    groups[key.first].push_back(tensor);
    step.tensors.push_back(tensor);
  }
  const std::vector<Stored> blobs = BlobTensors(model);
  if (!blobs.empty()) groups["blobs"] = blobs;
  for (const auto& [group, tensors] : groups) {
    StringMap metadata(model.metadata.begin(), model.metadata.end());
    metadata["format"] = "pt";
    for (const auto& [alias, of] : step.aliases[group]) metadata[alias] = of;
    if (step.aliases[group].empty()) step.aliases.erase(group);
    AddGroup(group, tensors, metadata, options, &step);
  }
  for (const Blob& blob : model.blobs)
    if (blob.scope == CKPT_BLOB_FILE) step.side[blob.name] = BlobBytes(blob, blob.ranks.at(0));
  return step;
}

}  // namespace oracle
