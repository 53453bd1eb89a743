// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Inspection of a root or a step folder without a session: what the command line shows.
// Test: tests/conformance/, tests/process/
#include <algorithm>
#include <cstring>

#include "core/load.h"
#include "io/crc32c.h"
#include "util/text.h"

namespace ckpt {

Result<std::unique_ptr<Reader>> Reader::Open(const std::string& path, bool latest, int64_t step) {
  auto reader = std::make_unique<Reader>();
  LoadOptions options;
  options.latest = latest;
  options.step = step;
  std::vector<std::string> warnings;
  CKPT_ASSIGN_OR_RETURN(LoadChoice choice, ChooseStep(path, options, Tried(), &warnings));
  CKPT_ASSIGN_OR_RETURN(reader->dir_, OpenChosen(path, choice));
  reader->in_use_ = choice.in_use;
  if (choice.in_root) {
    CKPT_ASSIGN_OR_RETURN(Dir root, Dir::Open(path));
    CKPT_ASSIGN_OR_RETURN(std::vector<StepEntry> steps, ListSteps(root));
    reader->steps_ = std::move(steps);
    std::reverse(reader->steps_.begin(), reader->steps_.end());
  } else {
    StepEntry entry;
    entry.step = choice.catalog.record.step;
    entry.folder = choice.catalog.folder;
    entry.record = choice.catalog.record;
    reader->steps_.push_back(std::move(entry));
  }
  reader->catalog_ = std::move(choice.catalog);
  return reader;
}

Status Reader::Verify(
    const std::function<bool(const std::string&, uint64_t, uint64_t)>& progress) const {
  constexpr uint64_t kRow = 4 * kCrcBlock;
  uint64_t done = 0, total = 0;
  for (const FileRecord& file : catalog_.record.files) total += file.bytes;
  CKPT_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Make(kRow));
  for (size_t f = 0; f < catalog_.record.files.size(); ++f) {
    const FileRecord& record = catalog_.record.files[f];
    CKPT_ASSIGN_OR_RETURN(File file, dir_.OpenFile(record.name, FileMode::kRead, DirectIo::kAuto));
    for (uint64_t at = 0; at < record.bytes; at += kRow) {
      const uint64_t n = std::min(kRow, record.bytes - at);
      CKPT_RETURN_IF_ERROR(file.ReadBlock(buffer.data(), n, at));
      for (uint64_t b = 0; b < n; b += kCrcBlock) {
        const uint64_t block = (at + b) / kCrcBlock;
        if (Crc32c(0, buffer.data() + b, std::min(kCrcBlock, n - b)) != record.crc32c[block]) {
          return BlockCorrupt(catalog_, f, block, file.path());
        }
      }
      done += n;
      if (!progress(record.name, done, total)) {
        return Status(Code::kCancelled, "the event callback asked to stop");
      }
    }
  }
  return Status();  // index and side files were checked by ReadCatalog
}

Status Reader::ReadBlob(const std::string& name, BlobScope scope, int32_t rank, void* data,
                        uint64_t capacity, uint64_t* actual) const {
  State state;
  BlobSpec spec;
  spec.name = name;
  spec.scope = scope;
  spec.writer_rank = rank;
  spec.data = data;
  spec.bytes = capacity;
  spec.actual = actual;
  CKPT_RETURN_IF_ERROR(state.AddBlob(spec).status());
  LoadMatch match;
  CKPT_RETURN_IF_ERROR(MatchState(state, catalog_, LoadOptions(), rank, &match));
  for (const LoadMatch::SideFile& file : match.side_files) {
    CKPT_ASSIGN_OR_RETURN(std::string content, dir_.ReadFile(file.record.name, file.record.bytes));
    if (!content.empty()) std::memcpy(data, content.data(), content.size());
  }
  std::vector<uint64_t> file_bytes;
  for (const FileRecord& file : catalog_.record.files) file_bytes.push_back(file.bytes);
  std::string block;
  for (const ReadExtent& extent : PlanLoad(match.wanted, file_bytes, kCrcBlock, kCrcBlock)) {
    CKPT_ASSIGN_OR_RETURN(File file, dir_.OpenFile(catalog_.record.files[extent.file].name,
                                                   FileMode::kRead, DirectIo::kOff));
    block.resize(extent.range.size());
    CKPT_RETURN_IF_ERROR(file.ReadAt(block.data(), block.size(), extent.range.begin));
    const uint64_t index = extent.range.begin / kCrcBlock;
    if (Crc32c(0, block.data(), block.size()) != catalog_.record.files[extent.file].crc32c[index]) {
      return BlockCorrupt(catalog_, extent.file, index, file.path());
    }
    for (const ReadPart& part : extent.parts) {
      const WantedShard& want = match.wanted[part.wanted];
      ScatterShard(want.tensor.desc, want.geometry,
                   {part.range.begin - want.tensor.offset, part.range.end - want.tensor.offset},
                   block.data() + (part.range.begin - extent.range.begin),
                   match.destinations[part.wanted]);
    }
  }
  for (const auto& [where, bytes] : match.actual) *where = bytes;
  return Status();
}

}  // namespace ckpt
