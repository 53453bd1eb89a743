// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The data phase of a load on one rank: read whole checksum blocks into staging, verify, scatter
// into the caller's memory.  Test: tests/process/
#include <algorithm>
#include <cstring>

#include "core/load.h"
#include "io/crc32c.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {

constexpr uint32_t kEventProgress = 1;  // ckpt.h

Status BlockCorrupt(const Catalog& catalog, size_t file, uint64_t block, const std::string& path) {
  const uint64_t begin = block * kCrcBlock, end = begin + kCrcBlock;
  std::string name;
  for (const PlacedTensor& t : catalog.files[file].tensors) {
    if (t.offset < end && t.offset + t.desc.bytes > begin && t.desc.bytes > 0) {
      name = t.desc.name;
      break;
    }
  }
  Cause cause;
  cause.path = path;
  cause.name = name;
  return Status(
      Code::kCorrupt,
      Cat("file ", path, ": bytes ", begin, "..",
          std::min(end, catalog.record.files[file].bytes) - 1, " do not match their checksum",
          name.empty() ? std::string(" (header)") : Cat(" (tensor \"", Printable(name), "\")")),
      std::move(cause));
}

void LoadData::Fail(const Status& status) {
  MutexLock lock(mu_);
  if (first_error_.ok()) first_error_ = status;
  failed_ = true;
}

Status LoadData::StopReason() const {
  if (*o_.cancelled) return Status(Code::kCancelled, "the host's event callback asked to cancel");
  if (o_.group->Closed(o_.round)) return Status(Code::kCancelled, "the load was closed meanwhile");
  return Status();
}

Status LoadData::VerifyBlocks(const ReadExtent& extent, const char* buffer) const {
  const FileRecord& file = catalog_->record.files[extent.file];
  for (uint64_t at = extent.range.begin; at < extent.range.end; at += kCrcBlock) {
    const uint64_t block = at / kCrcBlock;
    const uint64_t n = std::min(kCrcBlock, extent.range.end - at);
    if (Crc32c(0, buffer + (at - extent.range.begin), n) != file.crc32c[block]) {
      return BlockCorrupt(*catalog_, extent.file, block, files_[extent.file].path());
    }
  }
  return Status();
}

Status LoadData::ReadOne(const ReadExtent& extent, char* buffer) {
  const File& file = files_[extent.file];
  const std::string& name = catalog_->record.files[extent.file].name;
  o_.group->Progress(o_.round, bytes_read_, Cat("pread of ", name));
  CKPT_RETURN_IF_ERROR(file.ReadBlock(buffer, extent.range.size(), extent.range.begin));
  if (o_.verify) CKPT_RETURN_IF_ERROR(VerifyBlocks(extent, buffer));
  for (const ReadPart& part : extent.parts) {
    const WantedShard& want = match_.wanted[part.wanted];
    if (!gate_.Enter()) return Status(Code::kCancelled, "the caller has left the load");
    // Blocks and tensors begin at multiples of the element size, so no element is cut.
    const ByteRange in_tensor{part.range.begin - want.tensor.offset,
                              part.range.end - want.tensor.offset};
    const char* const bytes = buffer + (part.range.begin - extent.range.begin);
    ScatterShard(want.tensor.desc, want.geometry, in_tensor, bytes,
                 match_.destinations[part.wanted]);
    gate_.Leave();
  }
  Event event;
  event.kind = kEventProgress;
  event.step = catalog_->record.step;
  event.bytes_done = bytes_read_ += extent.range.size();
  event.bytes_total = total_bytes_;
  o_.group->Progress(o_.round, event.bytes_done, Cat("reading ", name));
  o_.on_progress(std::move(event));
  return Status();
}

Status LoadData::ReadSideFile(const LoadMatch::SideFile& file) {
  CKPT_ASSIGN_OR_RETURN(std::string content, step_.ReadFile(file.record.name, file.record.bytes));
  if (content.size() != file.record.bytes ||
      Crc32c(0, content.data(), content.size()) != file.record.crc32c) {
    Cause cause;
    cause.path = Cat(step_.path(), "/", file.record.name);
    cause.name = file.record.name;
    return Status(Code::kCorrupt, Cat("file ", cause.path, " does not match its checksum"), cause);
  }
  if (!gate_.Enter()) return Status(Code::kCancelled, "the caller has left the load");
  if (!content.empty()) std::memcpy(file.data, content.data(), content.size());
  gate_.Leave();
  bytes_read_ += content.size();
  return Status();
}

Status LoadData::Work() {
  CKPT_ASSIGN_OR_RETURN(AlignedBuffer buffer,
                        AlignedBuffer::Make(RoundUp(o_.config.io_block, kCrcBlock)));
  const size_t jobs = extents_.size() + match_.side_files.size();
  for (size_t i = next_++; i < jobs && !failed_; i = next_++) {
    CKPT_RETURN_IF_ERROR(StopReason());
    CKPT_RETURN_IF_ERROR(i < extents_.size()
                             ? ReadOne(extents_[i], buffer.data())
                             : ReadSideFile(match_.side_files[i - extents_.size()]));
  }
  return Status();
}

Status LoadData::Run() {
  std::vector<uint64_t> file_bytes;
  for (const FileRecord& file : catalog_->record.files) file_bytes.push_back(file.bytes);
  extents_ = PlanLoad(match_.wanted, file_bytes, kCrcBlock, RoundUp(o_.config.io_block, kCrcBlock));
  files_.resize(file_bytes.size());
  for (const ReadExtent& extent : extents_) {
    total_bytes_ += extent.range.size();
    if (files_[extent.file].valid()) continue;
    CKPT_ASSIGN_OR_RETURN(files_[extent.file],
                          step_.OpenFile(catalog_->record.files[extent.file].name, FileMode::kRead,
                                         o_.config.io_direct));
  }
  RunWorkers(o_.config.io_threads, [&] {
    const Status status = Contain([&] { return Work(); });
    if (!status.ok()) Fail(status);
  });
  MutexLock lock(mu_);
  return first_error_;
}

}  // namespace ckpt
