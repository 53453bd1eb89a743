// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The catalog as the coordinator sends it.  The decoder trusts nothing: what it accepts is a valid
// record and tensors that lie within its files.  Test: tests/unit/store/catalog_test.cc
#include <utility>

#include "store/names.h"
#include "store/store.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint64_t kMinTensorBytes = 8 + 8 + 4 + 8 + 8;

Status Malformed(std::string_view what) {
  return Status(Code::kComm, Cat("catalog from the coordinator: malformed ", what));
}

Status ReadTensors(WireReader& r, const FileLayout& file, std::vector<PlacedTensor>* out) {
  const uint64_t n = r.Count(kMinTensorBytes);
  out->reserve(n);
  uint64_t end = 0;
  for (uint64_t i = 0; i < n; ++i) {
    PlacedTensor t;
    t.desc = GetTensor(r);
    t.desc.group = file.group;
    t.offset = r.U64();
    if (!r.ok() || t.desc.elem_bytes == 0) return Malformed("tensor");
    if (t.offset < end || t.offset > file.bytes || t.desc.bytes > file.bytes - t.offset) {
      return Malformed("offset of a tensor");
    }
    end = t.offset + t.desc.bytes;
    out->push_back(std::move(t));
  }
  return Status();
}

std::string GroupOf(const CommitRecord& record, const std::string& file) {
  for (const auto& [group, files] : record.groups) {
    for (const std::string& name : files) {
      if (name == file) return group;
    }
  }
  return {};
}

}  // namespace

Bytes EncodeCatalog(const Catalog& c) {
  WireWriter w;
  w.Str(EncodeRecord(c.record));
  w.Str(c.folder);
  w.U32(c.record_crc32c);
  w.U64(c.files.size());
  for (const FileLayout& file : c.files) {
    w.U64(file.tensors.size());
    for (const PlacedTensor& t : file.tensors) {
      TensorDesc desc = t.desc;
      desc.group.clear();  // the record says it once per file
      PutTensor(w, desc);
      w.U64(t.offset);
    }
  }
  return w.Take();
}

Result<Catalog> DecodeCatalog(std::string_view bytes) {
  WireReader r(bytes);
  auto record = DecodeRecord(r.Str());
  if (!record.ok()) return Malformed(record.status().message());
  Catalog c;
  c.record = std::move(record).value();
  c.folder = r.Str();
  c.record_crc32c = r.U32();
  if (r.U64() != c.record.files.size()) return Malformed("list of files");
  for (const FileRecord& file : c.record.files) {
    FileLayout layout;
    layout.name = file.name;
    layout.group = GroupOf(c.record, file.name);
    layout.bytes = file.bytes;
    CKPT_RETURN_IF_ERROR(ReadTensors(r, layout, &layout.tensors));
    c.files.push_back(std::move(layout));
  }
  if (!r.AtEnd()) return Malformed("end");
  const Status tensors = CheckTensors(c);
  if (!tensors.ok()) return Malformed(tensors.message());
  return c;
}

}  // namespace ckpt
