// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes ckpt.json: one top-level key per line, sorted, the checksum last.
// Test: tests/unit/store/record_test.cc
#include <utility>

#include "io/crc32c.h"
#include "store/crc_table.h"
#include "store/json_in.h"
#include "store/record_keys.h"
#include "store/store.h"
#include "util/text.h"

namespace ckpt {
namespace {

Json Files(const std::vector<FileRecord>& files) {
  Json out = Json::array();
  for (const FileRecord& file : files) {
    Json writers = Json::array();
    for (const WriterBytes& w : file.writers) {
      writers.push_back({{"rank", w.rank}, {"bytes", w.bytes}});
    }
    out.push_back({{"name", file.name},
                   {"bytes", file.bytes},
                   {"crc_block", kCrcBlock},
                   {"crc32c", EncodeCrcTable(file.crc32c)},
                   {"writers", std::move(writers)}});
  }
  return out;
}

Json SmallFiles(const std::vector<SmallFileRecord>& files) {
  Json out = Json::array();
  for (const SmallFileRecord& file : files) {
    out.push_back({{"name", file.name}, {"bytes", file.bytes}, {"crc32c", CrcText(file.crc32c)}});
  }
  return out;
}

Json Blobs(const std::vector<BlobRecord>& blobs) {
  Json out = Json::array();
  for (const BlobRecord& blob : blobs) {
    const auto scope = static_cast<size_t>(blob.scope);
    out.push_back({{"name", blob.name},
                   {"scope", scope < std::size(kScopeNames) ? kScopeNames[scope] : "?"},
                   {"rank", blob.rank},
                   {"bytes", blob.bytes}});
  }
  return out;
}

Json Known(const std::vector<std::pair<uint64_t, std::string>>& known) {
  Json out = Json::array();
  for (const auto& [sequence, folder] : known) {
    out.push_back({{"sequence", sequence}, {"folder", folder}});
  }
  return out;
}

Json Members(const CommitRecord& r) {
  return {{"format", kFormatName},
          {"version", kFormatVersion},
          {"step", r.step},
          {"tag", r.tag},
          {"lineage", r.lineage},
          {"sequence", r.sequence},
          {"created_unix_ns", r.created_unix_ns},
          {"library", r.library},
          {"world", {{"ranks", r.world_size}, {"layout", r.layout_note}}},
          {"files", Files(r.files)},
          {"side_files", SmallFiles(r.side_files)},
          {"index_files", SmallFiles(r.index_files)},
          {"known", Known(r.known)},
          {"groups", r.groups},
          {"aliases", r.aliases},
          {"blobs", Blobs(r.blobs)},
          {"dtypes", r.dtypes}};
}

}  // namespace

std::string EncodeRecord(const CommitRecord& r) {
  std::string text = "{";
  const Json members = Members(r);
  for (const auto& [key, value] : members.items()) {
    text += Cat("\"", key, "\": ", JsonText(value), ",\n");
  }
  text += Cat(kCrcHead, kCrcZeros, kCrcTail);
  const std::string crc = CrcText(Crc32c(0, text.data(), text.size()));
  return text.replace(text.size() - kCrcTail.size() - crc.size(), crc.size(), crc);
}

}  // namespace ckpt
