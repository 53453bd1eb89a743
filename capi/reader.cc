// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Inspection: core's Reader, listed item by item.  Strings point into the reader.
// Test: tests/conformance/reader.c
#include <unistd.h>

#include <map>

#include "capi/barrier.h"
#include "capi/callbacks.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "capi/tensor.h"
#include "capi/values.h"
#include "util/text.h"

namespace ckpt::capi {
namespace {

constexpr size_t kMaxPath = 4096;
constexpr std::string_view kBlobGroup = "blobs";  // holds blobs, which have a list of their own

Status PastTheEnd() { return Status(Code::kNotFound, "past the end"); }

const CommitRecord& RecordOf(const ckpt_reader* r) { return r->reader->catalog().record; }

// Aliases stand behind the tensors, with what they stand for.
void AddAliases(const Catalog& catalog, ckpt_reader* handle) {
  std::map<std::pair<std::string, std::string>, size_t> tensors;
  for (size_t i = 0; i < handle->tensors.size(); ++i) {
    const TensorDesc& desc = handle->tensors[i].tensor->desc;
    tensors[{desc.group, desc.name}] = i;
  }
  for (const auto& [group, aliases] : catalog.record.aliases) {
    for (const auto& [alias, of] : aliases) {
      const auto at = tensors.find({group, of});
      if (at == tensors.end()) continue;  // ReadCatalog refuses it
      ckpt_reader::Tensor entry = handle->tensors[at->second];
      entry.name = Lendable(alias);
      entry.alias_of = Lendable(of);
      handle->tensors.push_back(std::move(entry));
    }
  }
}

// The list of tensors and the paths of the steps, once: what is lent must stay where it is.
std::unique_ptr<ckpt_reader> MakeHandle(std::unique_ptr<Reader> reader) {
  auto handle = std::make_unique<ckpt_reader>();
  handle->pid = ::getpid();
  const auto& files = reader->catalog().files;
  for (size_t f = 0; f < files.size(); ++f) {
    if (files[f].group.empty() || files[f].group == kBlobGroup) continue;
    for (const PlacedTensor& tensor : files[f].tensors) {
      handle->tensors.push_back(
          {files[f].name, &tensor, Lendable(tensor.desc.name), "", LogicalShape(tensor.desc)});
    }
  }
  AddAliases(reader->catalog(), handle.get());
  const std::string& path = reader->path();  // of the open step's folder
  const std::string root = path.substr(0, path.rfind('/') + 1);
  for (const StepEntry& step : reader->steps()) {
    const bool is_open = step.folder == reader->catalog().folder;
    handle->step_paths.push_back(is_open ? path : root + step.folder);
  }
  handle->reader = std::move(reader);
  return handle;
}

uint64_t BytesOf(const CommitRecord& record) {
  uint64_t bytes = 0;
  for (const FileRecord& file : record.files) bytes += file.bytes;
  for (const SmallFileRecord& file : record.side_files) bytes += file.bytes;
  for (const SmallFileRecord& file : record.index_files) bytes += file.bytes;
  return bytes;
}

Status Checkpoint(const ckpt_reader* r, uint64_t i, ckpt_checkpoint_info* out) {
  if (i >= r->reader->steps().size()) return PastTheEnd();
  const StepEntry& step = r->reader->steps()[i];
  ckpt_checkpoint_info info = {};
  info.step = step.step;
  info.path = r->step_paths[i].c_str();
  info.flags = (step.pinned ? CKPT_INFO_PINNED : 0) | (step.bad ? CKPT_INFO_BAD : 0);
  info.tag = info.lineage = info.layout_note = "";
  info.tensors = UINT64_MAX;
  if (!step.record.has_value()) {
    CKPT_RETURN_IF_ERROR(WriteStruct(info, out));
    return step.problem.ok() ? Status(Code::kCorrupt, "no valid record") : step.problem;
  }
  const CommitRecord& record = *step.record;
  info.sequence = record.sequence;
  info.tag = record.tag.c_str();
  info.lineage = record.lineage.c_str();
  info.layout_note = record.layout_note.c_str();
  info.bytes = BytesOf(record);
  if (step.folder == r->reader->catalog().folder) info.tensors = r->tensors.size();
  info.world_size = static_cast<uint64_t>(record.world_size);
  info.created_unix_ns = record.created_unix_ns;
  return WriteStruct(info, out);
}

Status TensorInfo(const ckpt_reader* r, uint64_t i, ckpt_tensor_info* out) {
  if (i >= r->tensors.size()) return PastTheEnd();
  const ckpt_reader::Tensor& entry = r->tensors[i];
  const TensorDesc& desc = entry.tensor->desc;
  ckpt_tensor_info info = {};
  info.dtype = desc.dtype;
  info.name = entry.name.c_str();
  info.group = desc.group.c_str();
  info.alias_of = entry.alias_of.c_str();
  info.file = entry.file.c_str();
  info.ndim = static_cast<int32_t>(entry.shape.size());
  info.global_shape = entry.shape.data();
  info.bytes = desc.bytes;
  info.file_offset = entry.tensor->offset;
  return WriteStruct(info, out);
}

// Files in the header's order: data files with writers, then side files and index files.
Status FileInfo(const ckpt_reader* r, uint64_t i, ckpt_file_info* out) {
  const CommitRecord& record = RecordOf(r);
  ckpt_file_info info = {};
  if (i < record.files.size()) {
    info.name = record.files[i].name.c_str();
    info.bytes = record.files[i].bytes;
    info.writers = record.files[i].writers.size();
    return WriteStruct(info, out);
  }
  i -= record.files.size();
  for (const auto* small : {&record.side_files, &record.index_files}) {
    if (i < small->size()) {
      info.name = (*small)[i].name.c_str();
      info.bytes = (*small)[i].bytes;
      return WriteStruct(info, out);
    }
    i -= small->size();
  }
  return PastTheEnd();
}

Status BlobInfo(const ckpt_reader* r, uint64_t i, ckpt_blob_info* out) {
  const CommitRecord& record = RecordOf(r);
  ckpt_blob_info info = {};
  info.rank = -1;
  if (i < record.blobs.size()) {
    const BlobRecord& blob = record.blobs[i];
    info.scope = static_cast<uint32_t>(blob.scope);
    info.name = blob.name.c_str();
    if (blob.scope == BlobScope::kPerRank) info.rank = blob.rank;
    info.bytes = blob.bytes;
    return WriteStruct(info, out);
  }
  i -= record.blobs.size();
  if (i >= record.side_files.size()) return PastTheEnd();
  info.scope = CKPT_BLOB_FILE;
  info.name = record.side_files[i].name.c_str();
  info.bytes = record.side_files[i].bytes;
  return WriteStruct(info, out);
}

Status ReadBlob(const Reader& reader, const ckpt_blob* dst) {
  CKPT_ASSIGN_OR_RETURN(const BlobSpec blob, ConvertBlob(dst));
  if (blob.scope == BlobScope::kPerRank && blob.writer_rank < 0) {
    return Invalid(blob.name, Cat("blob \"", Printable(blob.name),
                                  "\": a reader has no rank of its own: set writer_rank"));
  }
  uint64_t actual = 0;
  const Status status =
      reader.ReadBlob(blob.name, blob.scope, blob.writer_rank, blob.data, blob.bytes, &actual);
  const bool absent = status.code() == Code::kNotFound;
  if (blob.actual != nullptr && (status.ok() || absent)) {
    *blob.actual = absent ? UINT64_MAX : actual;
  }
  return absent && blob.optional ? Status() : status;
}

// Events of a verify; the host's wish to stop is remembered, whatever core then returns.
Status Verify(const Reader& reader, ckpt_event_fn on_event, void* user) {
  const auto tell = EventSink(on_event, user);
  bool cancelled = false;
  const Status status = reader.Verify([&](const std::string& file, uint64_t done, uint64_t total) {
    if (!tell || cancelled) return !cancelled;
    Event event;
    event.kind = CKPT_EVENT_PROGRESS;
    event.step = reader.catalog().record.step;
    event.bytes_done = done;
    event.bytes_total = total;
    event.text = file;
    cancelled = tell(event) != 0;
    return !cancelled;
  });
  if (!cancelled || (!status.ok() && status.code() != Code::kCancelled)) return status;
  return Status(Code::kCancelled,
                Cat("verify of ", reader.path(), ": the event callback ended it"));
}

// One item of a list of the reader.
template <typename Info>
ckpt_status Item(const ckpt_reader* r, uint64_t i, Info* out,
                 Status (*fill)(const ckpt_reader*, uint64_t, Info*)) noexcept {
  return Enter(nullptr, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckReader(r));
    CKPT_RETURN_IF_ERROR(CheckOutput(out));
    return fill(r, i, out);
  });
}

}  // namespace
}  // namespace ckpt::capi

using namespace ckpt::capi;  // NOLINT: the entries below are C
using ckpt::Status;

ckpt_status ckpt_open(const char* uri, uint32_t which, int64_t step, ckpt_reader** out,
                      ckpt_error** err) noexcept {
  if (out != nullptr) *out = nullptr;
  return Enter(err, [&]() -> Status {
    if (out == nullptr) return Invalid("out", "ckpt_open: out is NULL");
    if (uri == nullptr || *uri == '\0') return Invalid("uri", "ckpt_open: uri is NULL or empty");
    CKPT_RETURN_IF_ERROR(CheckWhich(which, step));
    CKPT_ASSIGN_OR_RETURN(const std::string path, CopyText(uri, "uri", kMaxPath));
    CKPT_ASSIGN_OR_RETURN(auto reader, ckpt::Reader::Open(path, which == CKPT_LOAD_LATEST, step));
    *out = MakeHandle(std::move(reader)).release();
    return Status();
  });
}

ckpt_status ckpt_reader_checkpoint(const ckpt_reader* r, uint64_t i,
                                   ckpt_checkpoint_info* out) noexcept {
  return Item(r, i, out, Checkpoint);
}

ckpt_status ckpt_reader_tensor(const ckpt_reader* r, uint64_t i, ckpt_tensor_info* out) noexcept {
  return Item(r, i, out, TensorInfo);
}

ckpt_status ckpt_reader_file(const ckpt_reader* r, uint64_t i, ckpt_file_info* out) noexcept {
  return Item(r, i, out, FileInfo);
}

ckpt_status ckpt_reader_blob(const ckpt_reader* r, uint64_t i, ckpt_blob_info* out) noexcept {
  return Item(r, i, out, BlobInfo);
}

ckpt_status ckpt_reader_file_writer(const ckpt_reader* r, uint64_t i, uint64_t k, int32_t* rank,
                                    uint64_t* bytes) noexcept {
  return Enter(nullptr, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckReader(r));
    if (rank == nullptr || bytes == nullptr) return Invalid("rank", "rank or bytes is NULL");
    const auto& files = RecordOf(r).files;
    if (i >= files.size() || k >= files[i].writers.size()) return PastTheEnd();
    *rank = files[i].writers[k].rank;
    *bytes = files[i].writers[k].bytes;
    return Status();
  });
}

ckpt_status ckpt_reader_read_blob(ckpt_reader* r, const ckpt_blob* dst, ckpt_error** err) noexcept {
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckReader(r));
    return ReadBlob(*r->reader, dst);
  });
}

ckpt_status ckpt_reader_verify(ckpt_reader* r, ckpt_event_fn on_event, void* user,
                               ckpt_error** err) noexcept {
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckReader(r));
    return Verify(*r->reader, on_event, user);
  });
}

void ckpt_reader_free(ckpt_reader* r) noexcept {
  FreeWhenUnused([r] { delete r; });
}
