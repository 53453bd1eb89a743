// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads what a load works from, and checks it all: the record, every file's size, the headers with
// the checksum blocks that they touch, index and side files whole.  Tensor bytes beyond those
// blocks are checked by who reads them.  Test: tests/unit/store/catalog_test.cc
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "io/crc32c.h"
#include "store/json_in.h"
#include "store/names.h"
#include "store/steps.h"
#include "store/store.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

Status Bad(const std::string& file, std::string_view why, std::string_view tensor = {}) {
  Cause cause;
  cause.path = file;
  cause.name = Lendable(tensor);
  return Status(Code::kCorrupt, Cat("file ", file, ": ", why), std::move(cause));
}

Result<File> OpenSized(const Dir& step, const std::string& name, uint64_t bytes) {
  auto file = step.OpenFile(name, FileMode::kRead, DirectIo::kOff);
  if (file.status().code() == Code::kNotFound) {
    return Bad(name, Cat("is missing from ", step.path()));
  }
  if (!file.ok()) return file.status();
  CKPT_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size != bytes) {
    return Bad(name, Cat("is ", size, " bytes long; the record says ", bytes));
  }
  return file;
}

// --- headers ---

// Names of the tensors that share a damaged block: as far as the header can still be read.
Status BadBlock(const FileRecord& record, size_t block, std::string_view json) {
  const uint64_t begin = block * kCrcBlock, end = std::min(begin + kCrcBlock, record.bytes);
  std::string words = Cat("bytes ", begin, " to ", end, " do not match their checksum (header");
  std::string first;
  auto layout = ParseHeader(record.name, json, record.bytes);
  if (!layout.ok()) return Bad(record.name, words + ")");
  size_t named = 0;
  for (const PlacedTensor& t : layout->tensors) {
    if (t.offset >= end || t.offset + t.desc.bytes <= begin) continue;
    if (++named == 1) first = t.desc.name;
    if (named <= 3) words += Cat(named == 1 ? "; tensor " : ", ", Printable(t.desc.name));
  }
  if (named > 3) words += Cat(" and ", named - 3, " more");
  return Bad(record.name, words + ")", first);
}

// The checksum blocks that hold bytes [0, end), whole.
Status ReadBlocks(const File& file, const FileRecord& record, uint64_t end, Bytes* out) {
  const uint64_t want = std::min(RoundUp(end, kCrcBlock), record.bytes);
  const uint64_t have = out->size();
  if (want <= have) return Status();
  out->resize(want);
  return file.ReadAt(out->data() + have, want - have, have);
}

Result<FileLayout> ReadHeader(const Dir& step, const FileRecord& record) {
  CKPT_ASSIGN_OR_RETURN(const File file, OpenSized(step, record.name, record.bytes));
  uint64_t n = 0;
  Bytes bytes;
  if (record.bytes < sizeof n) return Bad(record.name, "too short for a header");
  CKPT_RETURN_IF_ERROR(ReadBlocks(file, record, sizeof n, &bytes));
  std::memcpy(&n, bytes.data(), sizeof n);
  const bool possible = n <= record.bytes - sizeof n && n <= 100'000'000;
  if (possible) CKPT_RETURN_IF_ERROR(ReadBlocks(file, record, sizeof n + n, &bytes));
  const std::string_view json =
      possible ? std::string_view(bytes).substr(sizeof n, n) : std::string_view();
  for (size_t block = 0; block * kCrcBlock < bytes.size(); ++block) {
    const uint64_t begin = block * kCrcBlock;
    const uint64_t size = std::min<uint64_t>(kCrcBlock, bytes.size() - begin);
    if (Crc32c(0, bytes.data() + begin, size) != record.crc32c[block]) {
      return BadBlock(record, block, json);
    }
  }
  if (!possible) return Bad(record.name, Cat("header of ", n, " bytes"));
  return ParseHeader(record.name, json, record.bytes);
}

// --- small files ---

Status CheckSmallFile(const Dir& step, const SmallFileRecord& record) {
  CKPT_ASSIGN_OR_RETURN(const File file, OpenSized(step, record.name, record.bytes));
  Bytes buffer(std::min<uint64_t>(record.bytes, kCrcBlock), '\0');
  uint32_t crc = 0;
  for (uint64_t at = 0; at < record.bytes; at += buffer.size()) {
    const uint64_t n = std::min<uint64_t>(buffer.size(), record.bytes - at);
    CKPT_RETURN_IF_ERROR(file.ReadAt(buffer.data(), n, at));
    crc = Crc32c(crc, buffer.data(), n);
  }
  return crc == record.crc32c ? Status() : Bad(record.name, "does not match its checksum");
}

// What the index says is what the headers say, no more and no less.
Status CheckIndex(const Dir& step, const std::string& name, uint64_t bytes,
                  const std::vector<FileLayout>& files) {
  CKPT_ASSIGN_OR_RETURN(const std::string text, step.ReadFile(name, bytes));
  if (text == IndexJson(files)) return Status();
  auto index = ParseJsonObject(text.substr(0, text.find_last_not_of('\n') + 1));
  if (!index.ok()) return Bad(name, index.status().message());
  auto expected = ParseJsonObject(std::string_view(IndexJson(files)));
  JsonFields fields(*index, name);
  const Json& map = fields.Object("weight_map");
  CKPT_RETURN_IF_ERROR(fields.status());
  for (const FileLayout& file : files) {
    for (const PlacedTensor& t : file.tensors) {
      const auto it = map.find(t.desc.name);
      if (it == map.end() || *it != file.name) {
        return Bad(name, Cat("does not list tensor ", Printable(t.desc.name), " in ", file.name),
                   t.desc.name);
      }
    }
  }
  for (const auto& [tensor, file] : map.items()) {
    const Json& ours = (*expected)["weight_map"];
    if (!ours.contains(tensor)) {
      return Bad(name, Cat("lists tensor ", Printable(tensor), ", which no file holds"), tensor);
    }
  }
  return Status();
}

Status CheckIndexes(const Dir& step, const Catalog& c) {
  std::map<std::string, uint64_t> indexes;
  for (const SmallFileRecord& file : c.record.index_files) indexes[file.name] = file.bytes;
  for (const auto& group : c.record.groups) {
    const auto it = indexes.find(IndexName(group.first));
    if (it == indexes.end()) {
      // Blobs are read by the record; no other reader looks for them.
      if (group.first == kBlobGroup) continue;
      return Bad(kRecordFile, Cat("group ", group.first, " has no index file"));
    }
    std::vector<FileLayout> files;
    for (const FileLayout& file : c.files) {
      if (file.group == group.first) files.push_back(file);
    }
    CKPT_RETURN_IF_ERROR(CheckIndex(step, it->first, it->second, files));
    indexes.erase(it);
  }
  if (indexes.empty()) return Status();
  return Bad(kRecordFile, Cat("index file ", indexes.begin()->first, " belongs to no group"));
}

void SetGroup(FileLayout* file, const std::string& group) {
  file->group = group;
  for (PlacedTensor& t : file->tensors) t.desc.group = group;
}

// What safetensors can only call U8 becomes what the record says it is.
Status RestoreDTypes(const CommitRecord& record, FileLayout* file) {
  const auto group = record.dtypes.find(file->group);
  if (group == record.dtypes.end()) return Status();
  for (PlacedTensor& t : file->tensors) {
    const auto found = group->second.find(t.desc.name);
    if (found == group->second.end()) continue;
    CKPT_ASSIGN_OR_RETURN(const DTypeInfo dtype, FindDType(found->second));
    if (t.desc.dtype != kU8 || t.desc.shape.empty() || t.desc.shape.back() != dtype.bytes) {
      return Bad(file->name, Cat("tensor ", Printable(t.desc.name), " cannot be ", dtype.name),
                 t.desc.name);
    }
    t.desc.dtype = dtype.dtype;
    t.desc.shape.pop_back();
    CKPT_RETURN_IF_ERROR(SizeTensor(&t.desc));
  }
  return Status();
}

// An alias stands for a tensor that is there, under a name that no tensor has.
Status CheckAliases(const Catalog& c) {
  for (const auto& [group, aliases] : c.record.aliases) {
    std::set<std::string_view> names;
    for (const FileLayout& file : c.files) {
      if (file.group != group) continue;
      for (const PlacedTensor& t : file.tensors) names.insert(t.desc.name);
    }
    for (const auto& [alias, of] : aliases) {
      if (names.count(of) == 1 && names.count(alias) == 0) continue;
      return Bad(kRecordFile,
                 Cat("alias ", Printable(alias), " of ", Printable(of), " in group ", group,
                     " does not fit the tensors"),
                 alias);
    }
  }
  return Status();
}

Status ReadHeaders(const Dir& step, Catalog* c) {
  std::map<std::string, std::string> group_of;
  for (const auto& [group, files] : c->record.groups) {
    for (const std::string& file : files) group_of[file] = group;
  }
  for (const FileRecord& record : c->record.files) {
    CKPT_ASSIGN_OR_RETURN(FileLayout file, ReadHeader(step, record));
    SetGroup(&file, group_of[record.name]);
    CKPT_RETURN_IF_ERROR(RestoreDTypes(c->record, &file));
    file.header = Bytes();
    c->files.push_back(std::move(file));
  }
  return Status();
}

}  // namespace

Status CheckTensors(const Catalog& c) {
  std::map<std::string_view, std::set<std::string_view>> names;  // by group
  for (const FileLayout& file : c.files) {
    for (const PlacedTensor& t : file.tensors) {
      if (!names[file.group].insert(t.desc.name).second) {
        return Bad(file.name,
                   Cat("tensor ", Printable(t.desc.name), " is in another file of group ",
                       file.group, " too"),
                   t.desc.name);
      }
      if (t.desc.elem_bytes > 0 && t.offset % t.desc.elem_bytes != 0) {
        return Bad(file.name,
                   Cat("tensor ", Printable(t.desc.name), " at ", t.offset,
                       " is not aligned to its elements"),
                   t.desc.name);
      }
    }
  }
  return Status();
}

Result<Catalog> ReadCatalog(const Dir& step) {
  Catalog c;
  c.folder = BaseName(step.path());
  CKPT_ASSIGN_OR_RETURN(const std::string text, ReadRecordText(step));
  CKPT_ASSIGN_OR_RETURN(c.record, DecodeRecordOf(step, text));
  c.record_crc32c = Crc32c(0, text.data(), text.size());
  CKPT_RETURN_IF_ERROR(ReadHeaders(step, &c));
  CKPT_RETURN_IF_ERROR(CheckTensors(c));
  CKPT_RETURN_IF_ERROR(CheckAliases(c));
  for (const auto* list : {&c.record.index_files, &c.record.side_files}) {
    for (const SmallFileRecord& file : *list) {
      CKPT_RETURN_IF_ERROR(CheckSmallFile(step, file));
    }
  }
  CKPT_RETURN_IF_ERROR(CheckIndexes(step, c));
  return c;
}

}  // namespace ckpt
