// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "process/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>

namespace safetensors {
namespace {

using Json = nlohmann::json;

// F4: of the two that share a byte.
uint64_t ItemBytes(const std::string& dtype) {
  static const std::map<std::string, uint64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"F64", 8}, {"I64", 8}, {"U64", 8},     {"C64", 8},     {"F4", 1}};
  return sizes.at(dtype);
}

void Require(bool good, const std::string& path, const std::string& what) {
  if (!good) throw std::runtime_error(path + ": " + what);
}

struct Range {
  uint64_t begin, end;
  bool operator<(const Range& o) const { return std::tie(begin, end) < std::tie(o.begin, o.end); }
};

void RequireNoHoles(std::vector<Range> ranges, uint64_t total, const std::string& path) {
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (const Range& r : ranges) {
    Require(r.begin == at, path, "hole or overlap at " + std::to_string(at));
    at = r.end;
  }
  Require(at == total, path, "bytes after the last tensor");
}

Entry ReadEntry(const Json& value, const std::string& data, const std::string& path, Range* range) {
  Entry e{value.at("dtype"), value.at("shape"), ""};
  *range = {value.at("data_offsets").at(0), value.at("data_offsets").at(1)};
  uint64_t bytes = ItemBytes(e.dtype);
  for (int64_t n : e.shape) bytes *= n;
  Require(e.dtype != "F4" || bytes % 2 == 0, path, "half a byte");
  if (e.dtype == "F4") bytes /= 2;
  Require(range->end - range->begin == bytes, path, "size of a tensor is not that of its shape");
  Require(range->end <= data.size(), path, "a tensor ends after the file");
  Require(range->begin % ItemBytes(e.dtype) == 0, path, "a tensor is not aligned to its items");
  e.bytes = data.substr(range->begin, bytes);
  return e;
}

}  // namespace

std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be opened");
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

std::vector<float> Entry::Floats() const {
  if (dtype != "F32") throw std::runtime_error("not F32 but " + dtype);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

File Read(const std::string& path) {
  const std::string all = ReadBytes(path);
  Require(all.size() >= 8, path, "shorter than its header size");
  uint64_t n = 0;
  std::memcpy(&n, all.data(), 8);
  Require(n <= all.size() - 8 && n <= 100'000'000, path, "header size");
  Require((8 + n) % 4096 == 0, path, "data do not start at a multiple of 4096");
  const std::string data = all.substr(8 + n);
  const Json header = Json::parse(all.substr(8, n));

  File file;
  file.data_start = 8 + n;
  file.data_bytes = data.size();
  std::vector<Range> ranges;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      file.metadata = value.get<std::map<std::string, std::string>>();
      continue;
    }
    ranges.emplace_back();
    file.tensors[name] = ReadEntry(value, data, path, &ranges.back());
  }
  RequireNoHoles(ranges, data.size(), path);
  return file;
}

Group Open(const std::string& folder, const std::string& group) {
  const std::string path = folder + "/" + group + ".safetensors.index.json";
  const Json index = Json::parse(ReadBytes(path));
  Group g;
  g.total_size = index.at("metadata").at("total_size");
  const auto weight_map = index.at("weight_map").get<std::map<std::string, std::string>>();
  std::set<std::string> files;
  for (const auto& [name, file] : weight_map) files.insert(file);
  uint64_t sum = 0;
  for (const std::string& name : files) {
    g.files.push_back(name);
    for (auto& [tensor, entry] : Read(folder + "/" + name).tensors) {
      const auto it = weight_map.find(tensor);
      Require(it != weight_map.end(), path, "lacks " + tensor);
      Require(it->second == name, path, "gives another file for " + tensor);
      Require(g.tensors.count(tensor) == 0, path, tensor + " is in two files");
      sum += entry.bytes.size();
      g.tensors[tensor] = entry;
    }
  }
  Require(g.tensors.size() == weight_map.size(), path, "promises a tensor that is in no file");
  Require(sum == g.total_size, path, "total_size is not the sum");
  return g;
}

}  // namespace safetensors
