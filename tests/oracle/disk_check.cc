// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "oracle/disk_check.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "process/safetensors.h"

namespace oracle {
namespace {

using Json = nlohmann::json;

constexpr size_t kCrcBlock = 1 << 20;

std::string LittleEndian(uint32_t value) {
  std::string out;
  for (int b = 0; b < 4; ++b) out += static_cast<char>(value >> (8 * b));
  return out;
}

std::string CrcTable(const std::string& file) {
  std::string table;
  for (size_t at = 0; at < file.size(); at += kCrcBlock)
    table += LittleEndian(Crc32c(file.substr(at, kCrcBlock)));
  return Base64(table);
}

Json SmallFiles(const std::map<std::string, std::string>& files) {
  Json out = Json::array();
  for (const auto& [name, bytes] : files)
    out.push_back({{"name", name}, {"bytes", bytes.size()}, {"crc32c", Hex8(Crc32c(bytes))}});
  return out;
}

Json Blobs(const Model& model) {
  Json out = Json::array();
  for (const Blob& blob : model.blobs) {
    if (blob.scope == CKPT_BLOB_FILE) continue;
    const bool per_rank = blob.scope == CKPT_BLOB_PER_RANK;
    for (const int r : blob.ranks) {
      out.push_back({{"name", blob.name},
                     {"scope", per_rank ? "per_rank" : "shared"},
                     {"rank", per_rank ? r : -1},
                     {"bytes", blob.bytes[static_cast<size_t>(r)]}});
      if (!per_rank) break;
    }
  }
  return out;
}

// Lists whose order says nothing.
Json Sorted(Json list) {
  std::sort(list.begin(), list.end());
  return list;
}

class Comparison {
 public:
  Comparison(const std::string& folder, const DiskWant& want) : folder_(folder), want_(want) {}

  std::vector<std::string> Run() {
    const Step& step = want_.step;
    std::set<std::string> names = {"ckpt.json"}, found;
    for (const auto* files : {&step.data, &step.index, &step.side})
      for (const auto& [name, bytes] : *files) names.insert(name);
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      found.insert(entry.path().filename().string());
    for (const std::string& name : found)
      if (names.count(name) == 0) out_.push_back(name + ": should not be there");
    for (const auto* files : {&step.data, &step.index, &step.side})
      for (const auto& [name, bytes] : *files) Bytes(name, bytes);
    Record(safetensors::ReadBytes(folder_ + "/ckpt.json"));
    return out_;
  }

 private:
  void Bytes(const std::string& name, const std::string& want) {
    if (!std::filesystem::exists(folder_ + "/" + name)) return out_.push_back(name + ": is absent");
    const std::string is = safetensors::ReadBytes(folder_ + "/" + name);
    if (is == want) return;
    size_t at = 0;
    while (at < is.size() && at < want.size() && is[at] == want[at]) ++at;
    out_.push_back(name + ": " + std::to_string(is.size()) + " bytes, wanted " +
                   std::to_string(want.size()) + ", first difference at " + std::to_string(at));
  }

  void Same(const std::string& key, const Json& is, const Json& want) {
    if (is != want)
      out_.push_back("ckpt.json: " + key + " is " + is.dump() + ", not " + want.dump());
  }

  // Each data file, with who wrote it: ranks in order, none that may not, all bytes.
  void Files(const Json& files) {
    std::map<std::string, Json> by_name;
    for (const Json& file : files) by_name[file.at("name")] = file;
    Same("number of files", files.size(), want_.step.data.size());
    for (const auto& [name, bytes] : want_.step.data) {
      Json file = by_name[name];
      if (file.is_null()) {
        out_.push_back("ckpt.json: no file " + name);
        continue;
      }
      uint64_t sum = 0;
      int64_t last = -1;
      for (const Json& writer : file.at("writers")) {
        const int64_t rank = writer.at("rank");
        const bool may = rank == 0 || rank != want_.options.no_write;
        if (rank <= last || rank >= static_cast<int64_t>(want_.saved.parts.size()) || !may)
          out_.push_back("ckpt.json: rank " + std::to_string(rank) + " as a writer of " + name);
        last = rank;
        sum += writer.at("bytes").get<uint64_t>();
      }
      Same("sum of writers of " + name, sum, bytes.size());
      file.erase("writers");
      Same("files", file,
           {{"name", name},
            {"bytes", bytes.size()},
            {"crc_block", kCrcBlock},
            {"crc32c", CrcTable(bytes)}});
    }
  }

  void Record(const std::string& text) {
    const std::string tail = "\"~crc32c\": \"";
    const size_t at = text.rfind(tail);
    if (at == std::string::npos || text.size() != at + tail.size() + 8 + 3)
      return out_.push_back("ckpt.json: does not end in its checksum");
    std::string zeros = text;
    zeros.replace(at + tail.size(), 8, "00000000");
    const Json record = Json::parse(text);
    Same("~crc32c", record.at("~crc32c"), Hex8(Crc32c(zeros)));
    Same("format", record.at("format"), "ckpt");
    Same("version", record.at("version"), 1);
    Same("step", record.at("step"), want_.number);
    Same("tag", record.at("tag"), want_.saved.tag);
    Same("world", record.at("world"),
         {{"ranks", want_.saved.parts.size()}, {"layout", want_.layout_note}});
    Same("groups", record.at("groups"), Json(want_.step.groups));
    Same("aliases", record.at("aliases"), Json(want_.step.aliases));
    Same("dtypes", record.at("dtypes"), Json(want_.step.dtypes));
    Same("blobs", Sorted(record.at("blobs")), Sorted(Blobs(want_.saved.model)));
    Same("side_files", Sorted(record.at("side_files")), Sorted(SmallFiles(want_.step.side)));
    Same("index_files", Sorted(record.at("index_files")), Sorted(SmallFiles(want_.step.index)));
    Files(record.at("files"));
  }

  const std::string folder_;
  const DiskWant& want_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> CheckFolder(const std::string& folder, const DiskWant& want) {
  if (!std::filesystem::exists(folder + "/ckpt.json")) return {"there is no committed step"};
  return Comparison(folder, want).Run();
}

}  // namespace oracle
