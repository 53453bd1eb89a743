// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads ckpt.json.  The checksum comes first: damage is told from a newer version only by it.
// Unknown keys are skipped (what a reader must understand raises the version).
// Test: tests/unit/store/record_test.cc
#include <algorithm>
#include <set>
#include <utility>

#include "io/crc32c.h"
#include "store/crc_table.h"
#include "store/json_in.h"
#include "store/names.h"
#include "store/record_keys.h"
#include "store/store.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

Status Bad(std::string_view why) { return Status(Code::kCorrupt, Cat(kRecordFile, ": ", why)); }

Status CheckCrc(std::string_view text) {
  const size_t tail = kCrcHead.size() + kCrcZeros.size() + kCrcTail.size();
  if (text.size() <= tail) return Bad("too short");
  const std::string_view end = text.substr(text.size() - tail);
  if (!end.starts_with(kCrcHead) || !end.ends_with(kCrcTail)) {
    return Bad("does not end in its checksum");
  }
  const auto stored = ParseCrcText(end.substr(kCrcHead.size(), kCrcZeros.size()));
  uint32_t crc = Crc32c(0, text.data(), text.size() - kCrcZeros.size() - kCrcTail.size());
  crc = Crc32c(crc, kCrcZeros.data(), kCrcZeros.size());
  crc = Crc32c(crc, kCrcTail.data(), kCrcTail.size());
  if (!stored || *stored != crc) return Bad("does not match its checksum");
  return Status();
}

// Names of files in one step folder, each once.
Status TakeName(std::set<std::string>* names, const std::string& name) {
  const Status plain = CheckFileName(name);
  if (!plain.ok()) return Bad(plain.message());
  if (!names->insert(name).second) return Bad(Cat("file ", Printable(name), " is there twice"));
  return Status();
}

Status ReadWriters(const Json& list, int32_t world, FileRecord* file) {
  for (const Json& item : list) {
    JsonFields fields(item, Cat("writers of ", Printable(file->name)));
    WriterBytes writer;
    writer.rank = static_cast<int32_t>(fields.I64("rank", 0, world - 1));
    writer.bytes = fields.U64("bytes", file->bytes);
    CKPT_RETURN_IF_ERROR(fields.status());
    file->writers.push_back(writer);
  }
  return Status();
}

Status ReadFiles(const Json& list, CommitRecord* r, std::set<std::string>* names) {
  for (const Json& item : list) {
    JsonFields fields(item, "files");
    FileRecord file;
    file.name = fields.Str("name");
    file.bytes = fields.U64("bytes", INT64_MAX);
    const std::string table = fields.Str("crc32c");
    if (fields.U64("crc_block") != kCrcBlock) fields.Fail("crc_block is not 1 MiB");
    const Json& writers = fields.Array("writers");
    CKPT_RETURN_IF_ERROR(fields.status());
    CKPT_RETURN_IF_ERROR(TakeName(names, file.name));
    auto crcs = DecodeCrcTable(table, RoundUp(file.bytes, kCrcBlock) / kCrcBlock);
    if (!crcs) return Bad(Cat("file ", file.name, ": not one checksum per MiB"));
    file.crc32c = std::move(*crcs);
    CKPT_RETURN_IF_ERROR(ReadWriters(writers, r->world_size, &file));
    r->files.push_back(std::move(file));
  }
  return Status();
}

Status ReadSmallFiles(const Json& list, std::vector<SmallFileRecord>* out,
                      std::set<std::string>* names) {
  for (const Json& item : list) {
    JsonFields fields(item, "side_files or index_files");
    SmallFileRecord file;
    file.name = fields.Str("name");
    file.bytes = fields.U64("bytes", INT64_MAX);
    const auto crc = ParseCrcText(fields.Str("crc32c"));
    if (!crc) fields.Fail("crc32c is not eight hexadecimal digits");
    CKPT_RETURN_IF_ERROR(fields.status());
    CKPT_RETURN_IF_ERROR(TakeName(names, file.name));
    file.crc32c = *crc;
    out->push_back(std::move(file));
  }
  return Status();
}

// Every data file is in exactly one group.
Status ReadGroups(const Json& groups, CommitRecord* r) {
  std::set<std::string> left;
  for (const FileRecord& file : r->files) left.insert(file.name);
  for (const auto& [name, list] : groups.items()) {
    if (!IsGroupName(name)) return Bad(Cat("group name ", Printable(name)));
    if (!list.is_array() || list.empty()) return Bad(Cat("group ", name, " has no files"));
    std::vector<std::string>& files = r->groups[name];
    for (const Json& item : list) {
      const auto* file = item.get_ptr<const std::string*>();
      if (file == nullptr || left.erase(*file) == 0) {
        return Bad(Cat("group ", name, ": ", Printable(JsonText(item)),
                       " is no file of the record, or in two groups"));
      }
      files.push_back(*file);
    }
  }
  return left.empty() ? Status() : Bad(Cat("file ", *left.begin(), " is in no group"));
}

Status ReadBlobs(const Json& list, CommitRecord* r) {
  for (const Json& item : list) {
    JsonFields fields(item, "blobs");
    BlobRecord blob;
    blob.name = fields.Str("name");
    const std::string scope = fields.Str("scope");
    blob.rank = static_cast<int32_t>(fields.I64("rank", -1, r->world_size - 1));
    blob.bytes = fields.U64("bytes", INT64_MAX);
    const auto* found = std::find(std::begin(kScopeNames), std::end(kScopeNames), scope);
    if (found == std::end(kScopeNames)) fields.Fail("unknown scope");
    blob.scope = static_cast<BlobScope>(found - kScopeNames);
    if ((blob.scope == BlobScope::kPerRank) != (blob.rank >= 0)) {
      fields.Fail("rank does not go with scope");
    }
    CKPT_RETURN_IF_ERROR(fields.status());
    r->blobs.push_back(std::move(blob));
  }
  return Status();
}

Status ReadKnown(const Json& list, CommitRecord* r) {
  for (const Json& item : list) {
    JsonFields fields(item, "known");
    const uint64_t sequence = fields.U64("sequence");
    std::string folder = fields.Str("folder");
    if (!ParseStepFolder(folder)) fields.Fail("folder is no step's name");
    CKPT_RETURN_IF_ERROR(fields.status());
    r->known.emplace_back(sequence, std::move(folder));
  }
  return Status();
}

Status ReadIdentity(JsonFields& fields, CommitRecord* r) {
  r->step = fields.I64("step", 0, INT64_MAX);
  r->tag = fields.Str("tag");
  r->lineage = fields.Str("lineage");
  r->library = fields.Str("library");
  r->sequence = fields.U64("sequence");
  r->created_unix_ns = fields.I64("created_unix_ns", INT64_MIN, INT64_MAX);
  JsonFields world(fields.Object("world"), "world");
  if (fields.status().ok()) {
    r->world_size = static_cast<int32_t>(world.I64("ranks", 1, INT32_MAX));
    r->layout_note = world.Str("layout");
    CKPT_RETURN_IF_ERROR(world.status());
  }
  return fields.status();
}

// UNSUPPORTED: sound, but written by a library that knows more than this one.
Status CheckVersion(JsonFields& fields) {
  const std::string format = fields.Str("format");
  const uint64_t version = fields.U64("version");
  CKPT_RETURN_IF_ERROR(fields.status());
  if (format != kFormatName || version == 0) return Bad("not a commit record");
  if (version == kFormatVersion) return Status();
  return Status(Code::kUnsupported, Cat(kRecordFile, ": format version ", version,
                                        "; this library reads version ", kFormatVersion));
}

Status ReadAliases(const Json& groups, CommitRecord* r) {
  for (const auto& [group, aliases] : groups.items()) {
    if (r->groups.count(group) == 0 || !aliases.is_object()) {
      return Bad(Cat("aliases of ", Printable(group), ": no such group"));
    }
    for (const auto& [alias, of] : aliases.items()) {
      if (!of.is_string()) return Bad(Cat("alias ", Printable(alias), " of nothing"));
      r->aliases[group][alias] = of.get<std::string>();
    }
  }
  return Status();
}

Status ReadDTypes(const Json& groups, CommitRecord* r) {
  for (const auto& [group, dtypes] : groups.items()) {
    // Blobs are bytes.
    if (r->groups.count(group) == 0 || group == kBlobGroup || !dtypes.is_object()) {
      return Bad(Cat("dtypes of ", Printable(group), ": no such group"));
    }
    for (const auto& [name, code] : dtypes.items()) {
      if (!code.is_number_unsigned() || code.get<uint64_t>() > UINT32_MAX) {
        return Bad(Cat("dtype of ", Printable(name), " is no code"));
      }
      const auto info = FindDType(code.get<DType>());
      // A type that a newer library knows is not damage.
      if (!info.ok()) {
        return Status(Code::kUnsupported, Cat(kRecordFile, ": tensor ", Printable(name), ": ",
                                              info.status().message()));
      }
      if (info->named) return Bad(Cat("dtype of ", Printable(name), " has a name of its own"));
      r->dtypes[group][name] = info->dtype;
    }
  }
  return Status();
}

}  // namespace

Result<CommitRecord> DecodeRecord(std::string_view text) {
  CKPT_RETURN_IF_ERROR(CheckCrc(text));
  auto json = ParseJsonObject(text.substr(0, text.size() - 1));  // a newline ends it
  if (!json.ok()) return Bad(json.status().message());
  JsonFields fields(*json, kRecordFile);
  CKPT_RETURN_IF_ERROR(CheckVersion(fields));
  CommitRecord r;
  CKPT_RETURN_IF_ERROR(ReadIdentity(fields, &r));
  std::set<std::string> names;
  CKPT_RETURN_IF_ERROR(ReadFiles(fields.Array("files"), &r, &names));
  CKPT_RETURN_IF_ERROR(ReadSmallFiles(fields.Array("side_files"), &r.side_files, &names));
  CKPT_RETURN_IF_ERROR(ReadSmallFiles(fields.Array("index_files"), &r.index_files, &names));
  CKPT_RETURN_IF_ERROR(ReadGroups(fields.Object("groups"), &r));
  CKPT_RETURN_IF_ERROR(ReadBlobs(fields.Array("blobs"), &r));
  CKPT_RETURN_IF_ERROR(ReadKnown(fields.Array("known"), &r));
  CKPT_RETURN_IF_ERROR(ReadAliases(fields.Object("aliases"), &r));
  CKPT_RETURN_IF_ERROR(ReadDTypes(fields.Object("dtypes"), &r));
  CKPT_RETURN_IF_ERROR(fields.status());
  return r;
}

}  // namespace ckpt
