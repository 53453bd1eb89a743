// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// See oracle.h.
#include "unit/plan/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "meta/memory.h"

namespace ckpt::testing {
namespace {

// What is known of one file while its extents are judged.
struct Judged {
  explicit Judged(const FileLayout& file)
      : owner(file.bytes, -1), sources(file.bytes, 0), written(file.bytes, 0) {}
  std::vector<int32_t> owner;
  std::vector<int> sources;
  Memory written;
};

bool Inside(ByteRange a, ByteRange b) { return a.begin >= b.begin && a.end <= b.end; }

void CountSources(const PlacedTensor& t, const PlanPart& part, Judged* file) {
  for (int64_t e : ElementsOf(t.desc, part.geometry)) {
    for (uint64_t b = 0; b < t.desc.elem_bytes; ++b) {
      const uint64_t at = t.offset + static_cast<uint64_t>(e) * t.desc.elem_bytes + b;
      if (at >= part.range.begin && at < part.range.end) ++file->sources[at];
    }
  }
}

void JudgePart(const World& w, const RankPlan& plan, int32_t owner, const PlanExtent& extent,
               const PlanPart& part, Judged* file) {
  ASSERT_LT(part.tensor, plan.tensors.size());
  const PlacedTensor& t = plan.tensors[part.tensor];
  ASSERT_LT(part.range.begin, part.range.end);
  ASSERT_TRUE(Inside(part.range, extent.range));
  ASSERT_TRUE(Inside(part.range, {t.offset, t.offset + t.desc.bytes}));
  const RankState& source = w.ranks.at(static_cast<size_t>(part.source_rank));
  const RankState::Shard& shard = source.shards.at(part.source_shard);
  ASSERT_EQ(shard.geometry, part.geometry);
  ASSERT_EQ(source.tensors.at(shard.tensor), t.desc);
  const RankState& own = w.ranks.at(static_cast<size_t>(owner));
  for (const RankState::Shard& s : own.shards) {
    if (s.geometry != part.geometry || !(own.tensors[s.tensor] == t.desc)) continue;
    ASSERT_EQ(part.source_rank, owner) << "the owner holds it itself";
  }
  CountSources(t, part, file);
  Memory memory = ShardMemory(t.desc, part.geometry);
  GatherShard(t.desc, part.geometry, {part.range.begin - t.offset, part.range.end - t.offset},
              *MakeMemory(memory.data(), *FindDType(t.desc.dtype), {}, {}),
              reinterpret_cast<char*>(file->written.data()) + part.range.begin);
}

void JudgeExtent(const World& w, const RankPlan& plan, int32_t owner, const PlanExtent& extent,
                 Judged* file) {
  const FileLayout& layout = w.files[extent.file];
  ASSERT_LT(extent.range.begin, extent.range.end);
  ASSERT_LE(extent.range.end, layout.bytes);
  for (uint64_t at = extent.range.begin; at < extent.range.end; ++at) {
    ASSERT_EQ(file->owner[at], -1) << "byte " << at << " has two owners";
    file->owner[at] = owner;
  }
  for (uint64_t i = 0; i < extent.header_bytes; ++i) {
    const uint64_t at = extent.range.begin + i;
    ASSERT_LT(at, layout.header.size());
    ++file->sources[at];
    file->written[at] = static_cast<uint8_t>(layout.header[at]);
  }
  for (size_t i = 0; i < extent.parts.size(); ++i) {
    if (i > 0) {
      ASSERT_LE(extent.parts[i - 1].range.begin, extent.parts[i].range.begin);
    }
    JudgePart(w, plan, owner, extent, extent.parts[i], file);
  }
}

void JudgeFile(const World& w, const FileLayout& layout, const Judged& file,
               const SavePlanOptions& options) {
  for (uint64_t at = 0; at < layout.bytes; ++at) {
    const int32_t owner = file.owner[at];
    ASSERT_NE(owner, -1) << "byte " << at << " of " << layout.name << " has no owner";
    ASSERT_EQ(file.sources[at], 1) << "byte " << at << " of " << layout.name;
    const uint64_t block = at - at % options.io_align;
    ASSERT_EQ(owner, file.owner[block]) << "the block of byte " << at << " has two owners";
    const bool header_block = block < layout.header.size();
    if (header_block) {
      ASSERT_EQ(owner, options.coordinator);
    }
    ASSERT_TRUE(header_block || w.ranks[static_cast<size_t>(owner)].may_write) << owner;
  }
  ASSERT_EQ(file.written, FileBytes(layout)) << layout.name;
}

}  // namespace

SavePlan PlanOf(const World& w, const SavePlanOptions& options) {
  const auto state = MergeStates(w.ranks);
  EXPECT_TRUE(state.ok()) << state.status().message();
  if (!state.ok()) return {};
  auto plan = PlanSave(*state, w.files, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? std::move(plan).value() : SavePlan{};
}

void Judge(const World& w, const SavePlan& plan, const SavePlanOptions& options) {
  ASSERT_EQ(plan.ranks.size(), w.ranks.size());
  std::vector<Judged> files;
  for (const FileLayout& f : w.files) files.emplace_back(f);
  for (size_t r = 0; r < plan.ranks.size(); ++r) {
    const RankPlan& mine = plan.ranks[r];
    for (size_t i = 0; i < mine.extents.size(); ++i) {
      const PlanExtent& e = mine.extents[i];
      ASSERT_LT(e.file, files.size());
      if (i > 0 && mine.extents[i - 1].file == e.file) {
        ASSERT_LT(mine.extents[i - 1].range.end, e.range.begin) << "in order and joined";
      } else if (i > 0) {
        ASSERT_LT(mine.extents[i - 1].file, e.file);
      }
      JudgeExtent(w, mine, static_cast<int32_t>(r), e, &files[e.file]);
    }
  }
  for (size_t f = 0; f < files.size(); ++f) JudgeFile(w, w.files[f], files[f], options);
}

std::vector<uint64_t> OwnedBytes(const SavePlan& plan) {
  std::vector<uint64_t> out;
  for (const RankPlan& r : plan.ranks) {
    out.push_back(0);
    for (const PlanExtent& e : r.extents) out.back() += e.range.size();
  }
  return out;
}

size_t ExtentCount(const SavePlan& plan) {
  size_t n = 0;
  for (const RankPlan& r : plan.ranks) n += r.extents.size();
  return n;
}

}  // namespace ckpt::testing
