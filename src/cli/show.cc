// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// `ckpt show`: what is in one step: tensors, files and who wrote them, blobs.
#include "cli/checkpoint.h"
#include "cli/json.h"
#include "cli/text.h"

namespace cli {
namespace {

constexpr size_t kMaxWritersShown = 8;

const char* ScopeName(uint32_t scope) {
  switch (scope) {
    case CKPT_BLOB_PER_RANK:
      return "rank";
    case CKPT_BLOB_SHARED:
      return "shared";
    case CKPT_BLOB_FILE:
      return "file";
    default:
      return "?";
  }
}

std::string Summary(const ckpt_checkpoint_info& step) {
  std::string out = "step " + std::to_string(step.step) + ", saved " +
                    UtcTime(step.created_unix_ns) + " by " + std::to_string(step.world_size) +
                    (step.world_size == 1 ? " rank, " : " ranks, ") + HumanBytes(step.bytes) + "\n";
  const auto line = [&](const char* what, const char* text) {
    if (*text != '\0') out += what + Escaped(text) + "\n";
  };
  line("tag      ", step.tag);
  line("layout   ", step.layout_note);
  line("lineage  ", step.lineage);
  line("folder   ", step.path);
  return out;
}

std::string TensorTable(const Checkpoint& checkpoint) {
  std::vector<std::vector<std::string>> rows = {
      {"GROUP", "TENSOR", "DTYPE", "SHAPE", "SIZE", "FILE"}};
  for (const ckpt_tensor_info& t : checkpoint.Tensors()) {
    const bool alias = *t.alias_of != '\0';
    rows.push_back(
        {Escaped(t.group), Escaped(t.name) + (alias ? " = " + Escaped(t.alias_of) : std::string()),
         DTypeName(t.dtype), Shape(t.global_shape, t.ndim), HumanBytes(t.bytes), Escaped(t.file)});
  }
  return Table(rows, {4});
}

std::string WritersText(const std::vector<std::pair<int32_t, uint64_t>>& writers) {
  std::string out;
  for (size_t k = 0; k < writers.size() && k < kMaxWritersShown; ++k) {
    out += (k > 0 ? ", " : "") + std::string("rank ") + std::to_string(writers[k].first) + ": " +
           HumanBytes(writers[k].second);
  }
  if (writers.size() > kMaxWritersShown) {
    out += ", and " + std::to_string(writers.size() - kMaxWritersShown) + " more";
  }
  return out.empty() ? "-" : out;
}

std::string FileTable(const Checkpoint& checkpoint) {
  std::vector<std::vector<std::string>> rows = {{"FILE", "SIZE", "WRITTEN BY"}};
  uint64_t i = 0;
  for (const ckpt_file_info& f : checkpoint.Files()) {
    rows.push_back({Escaped(f.name), HumanBytes(f.bytes), WritersText(checkpoint.Writers(i++))});
  }
  return Table(rows, {1});
}

std::string BlobTable(const std::vector<ckpt_blob_info>& blobs) {
  if (blobs.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"SCOPE", "RANK", "SIZE", "BLOB"}};
  for (const ckpt_blob_info& b : blobs) {
    rows.push_back({ScopeName(b.scope), b.rank < 0 ? "-" : std::to_string(b.rank),
                    HumanBytes(b.bytes), Escaped(b.name)});
  }
  return "\n" + Table(rows, {1, 2});
}

Json TensorsJson(const Checkpoint& checkpoint) {
  Json out = Json::array();
  for (const ckpt_tensor_info& t : checkpoint.Tensors()) {
    Json item;
    item["name"] = t.name;
    item["group"] = t.group;
    item["dtype"] = DTypeName(t.dtype);
    item["shape"] = std::vector<int64_t>(t.global_shape, t.global_shape + t.ndim);
    item["bytes"] = t.bytes;
    item["file"] = t.file;
    item["file_offset"] = t.file_offset;
    if (*t.alias_of != '\0') item["alias_of"] = t.alias_of;
    out.push_back(std::move(item));
  }
  return out;
}

Json FilesJson(const Checkpoint& checkpoint) {
  Json out = Json::array();
  for (const ckpt_file_info& f : checkpoint.Files()) {
    Json item;
    item["name"] = f.name;
    item["bytes"] = f.bytes;
    item["writers"] = Json::array();
    for (const auto& [rank, bytes] : checkpoint.Writers(out.size())) {
      item["writers"].push_back({{"rank", rank}, {"bytes", bytes}});
    }
    out.push_back(std::move(item));
  }
  return out;
}

Json BlobsJson(const Checkpoint& checkpoint) {
  Json out = Json::array();
  for (const ckpt_blob_info& b : checkpoint.Blobs()) {
    Json item;
    item["name"] = b.name;
    item["scope"] = ScopeName(b.scope);
    item["rank"] = b.rank < 0 ? Json(nullptr) : Json(b.rank);
    item["bytes"] = b.bytes;
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace

Exit Show(const Request& request) {
  Checkpoint checkpoint;
  if (const Exit exit = checkpoint.Open(request); exit != kGood) return exit;
  if (!request.json) {
    return Write(Summary(checkpoint.Opened()) + "\n" + TensorTable(checkpoint) + "\n" +
                 FileTable(checkpoint) + BlobTable(checkpoint.Blobs()));
  }
  Json out = NewJson("show", request.path);
  out["checkpoint"] = StepJson(checkpoint.Opened());
  out["tensors"] = TensorsJson(checkpoint);
  out["files"] = FilesJson(checkpoint);
  out["blobs"] = BlobsJson(checkpoint);
  return Write(Dump(out));
}

}  // namespace cli
