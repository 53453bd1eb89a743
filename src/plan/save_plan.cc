// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The save plan: files -> segments (who may own) -> quotas -> chunks (who owns) -> extents and
// parts. Every step keeps file order and breaks ties by rank, so that equal input gives an equal
// plan. Test: tests/unit/plan/save_plan_test.cc, and save_plan_random_test.cc with an oracle
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "plan/balance.h"
#include "plan/cut.h"
#include "plan/parts.h"
#include "plan/plan.h"
#include "plan/segments.h"
#include "plan/spans.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

using NameIndex = std::map<std::pair<std::string_view, std::string_view>, const GlobalTensor*>;

// The files come from the library itself: a disagreement with the state is a defect, not bad input.
Status Defect(const FileLayout& file, std::string_view what) {
  return Status(Code::kInternal, Cat("plan of file ", Printable(file.name), ": ", what));
}

Result<PlannedFile> PlanFile(const FileLayout& layout, const NameIndex& index, uint64_t min_run) {
  PlannedFile file;
  file.layout = &layout;
  uint64_t at = layout.header.size();
  for (const PlacedTensor& t : layout.tensors) {
    const auto found = index.find({t.desc.group, t.desc.name});
    if (found == index.end()) return Defect(layout, Cat("no tensor ", Printable(t.desc.name)));
    if (found->second->desc != t.desc) {
      return Defect(layout, Cat("tensor ", Printable(t.desc.name), " is described differently"));
    }
    if (t.offset != at) return Defect(layout, "tensors do not follow each other");
    at += t.desc.bytes;
    file.tensors.push_back(found->second);
    file.spans.push_back(MakeSpans(*found->second, min_run));
  }
  if (at != layout.bytes) return Defect(layout, "tensors do not fill it");
  return file;
}

Status CheckArguments(const GlobalState& state, const std::vector<FileLayout>& files,
                      const SavePlanOptions& options) {
  if (std::none_of(state.may_write.begin(), state.may_write.end(), [](bool b) { return b; })) {
    return Status(Code::kInvalidArgument, "no rank may write");
  }
  if (options.io_align == 0 || options.coordinator < 0 ||
      static_cast<size_t>(options.coordinator) >= state.may_write.size()) {
    return Status(Code::kInternal, "plan: bad options");
  }
  uint64_t total = 0;
  for (const FileLayout& file : files) {
    const auto sum = CheckedAdd(total, file.bytes);
    if (!sum || *sum >= uint64_t{1} << 62) {
      return Status(Code::kLimit, "the files of one step exceed 2^62 bytes");
    }
    total = *sum;
  }
  return Status();
}

std::vector<int32_t> Writers(const GlobalState& state) {
  std::vector<int32_t> out;
  for (size_t r = 0; r < state.may_write.size(); ++r) {
    if (state.may_write[r]) out.push_back(static_cast<int32_t>(r));
  }
  return out;
}

std::vector<std::vector<Chunk>> OwnChunks(const std::vector<PlannedFile>& files,
                                          const GlobalState& state,
                                          const SavePlanOptions& options) {
  const std::vector<int32_t> writers = Writers(state);
  RankSets sets;
  std::vector<std::vector<Segment>> segments;
  segments.reserve(files.size());
  for (const PlannedFile& file : files) {
    segments.push_back(MakeSegments(file, writers, options, &sets));
  }
  std::vector<uint64_t> bytes(sets.size(), 0);
  for (const auto& of_file : segments) {
    for (const Segment& s : of_file) bytes[s.set] += s.end - s.begin;
  }
  const Quotas quotas = Balance(sets, bytes, state.may_write.size(), options.min_run);
  return CutByQuota(segments, sets, quotas, options);
}

}  // namespace

Result<SavePlan> PlanSave(const GlobalState& state, const std::vector<FileLayout>& files,
                          const SavePlanOptions& options) {
  CKPT_RETURN_IF_ERROR(CheckArguments(state, files, options));
  NameIndex index;
  for (const GlobalTensor& t : state.tensors) index[{t.desc.group, t.desc.name}] = &t;
  std::vector<PlannedFile> planned;
  planned.reserve(files.size());
  // Shorter runs than a block cannot be owned one by one.
  const uint64_t min_run = std::max(options.min_run, options.io_align);
  for (const FileLayout& file : files) {
    CKPT_ASSIGN_OR_RETURN(PlannedFile p, PlanFile(file, index, min_run));
    planned.push_back(std::move(p));
  }
  const auto chunks = OwnChunks(planned, state, options);
  SavePlan plan;
  plan.ranks.resize(state.may_write.size());
  for (uint32_t f = 0; f < files.size(); ++f) {
    for (const Chunk& c : AlignChunks(chunks[f], options.io_align)) {
      AddExtent(planned[f], f, {c.begin, c.end}, c.owner, options,
                &plan.ranks[static_cast<size_t>(c.owner)]);
    }
  }
  return plan;
}

}  // namespace ckpt
