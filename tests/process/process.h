// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The small language of the process tests: values by index, even splits, folder listings, and
// "the same error on all ranks".
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "launch/ckpt_lib.h"
#include "launch/launch.h"
#include "process/safetensors.h"

namespace ckpt_test {

using launch::Rank;
using launch::Result;
using launch::Scratch;

inline constexpr float kFill = -77.0f;  // what a destination holds before a load

// base, base + 1, ...
inline std::vector<float> Values(int64_t n, float base = 0) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), base);
  return v;
}

inline std::vector<float> Fill(int64_t n) { return std::vector<float>(n, kFill); }

struct Part {
  int64_t offset = 0, count = 0;
};

// The share of `rank` when n items are cut as evenly as they go.
inline Part Even(int64_t n, int rank, int size) {
  const int64_t begin = n * rank / size, end = n * (rank + 1) / size;
  return {begin, end - begin};
}

// The values of a box of a row-major [rows, columns] matrix whose element i is base + i.
inline std::vector<float> BoxValues(int64_t columns, const Dims& offset, const Dims& extent,
                                    float base = 0) {
  std::vector<float> v;
  for (int64_t i = 0; i < extent[0]; ++i)
    for (int64_t j = 0; j < extent[1]; ++j)
      v.push_back(base + static_cast<float>((offset[0] + i) * columns + offset[1] + j));
  return v;
}

inline std::string StepName(int64_t step) {
  std::string digits = std::to_string(step);
  return "step-" + std::string(12 - digits.size(), '0') + digits;
}
inline std::string StepPath(const std::string& root, int64_t step) {
  return root + "/" + StepName(step);
}

inline std::set<std::string> List(const std::string& folder) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    names.insert(entry.path().filename().string());
  return names;
}

// Names in `root` that begin with `prefix`: "step-", ".staging-", ...
inline std::set<std::string> ListOf(const std::string& root, const std::string& prefix) {
  std::set<std::string> names;
  for (const std::string& name : List(root))
    if (name.rfind(prefix, 0) == 0) names.insert(name);
  return names;
}

// Only what may be in a root at rest: the steps, .ckpt and LATEST.
inline void ExpectNoLeftovers(const std::string& root) {
  for (const std::string& name : List(root))
    EXPECT_TRUE(name == ".ckpt" || name == "LATEST" || name.rfind("step-", 0) == 0)
        << "left over in the root: " << name;
}

// Tells the test's body, outside the ranks, what this rank got.
inline void Publish(Rank& rank, const std::string& key, const Outcome& o) {
  rank.Put(key, o.Verdict());
}

// Code, rank set and text are the same on all `ranks` (default: on all).
inline void ExpectSame(const Result& r, const std::string& key, std::vector<int> ranks = {}) {
  if (ranks.empty())
    for (int i = 0; i < r.size(); ++i) ranks.push_back(i);
  EXPECT_NE(r.get(ranks[0], key), "") << "nothing published as " << key;
  for (int i : ranks)
    EXPECT_EQ(r.get(i, key), r.get(ranks[0], key)) << key << ": ranks " << ranks[0] << " and " << i;
}

#define EXPECT_OK(outcome)                                                     \
  do {                                                                         \
    const ckpt_test::Outcome o_ = (outcome);                                   \
    EXPECT_EQ(ckpt_test::StatusName(o_.status), std::string("CKPT_OK")) << o_; \
  } while (0)

#define EXPECT_STATUS(outcome, code) \
  EXPECT_EQ(std::string(ckpt_test::StatusName((outcome).status)), #code) << (outcome)

#define EXPECT_SAYS(outcome, part) \
  EXPECT_TRUE((outcome).Says(part)) << "want: " << part << "\n" << (outcome)

#define ASSERT_INIT(ctx) ASSERT_TRUE((ctx).init().ok()) << (ctx).init()

using Ranks = std::set<int>;

// A test whose body holds for any number of ranks; K09 runs it with one too.
using ForAnyRanks = testing::TestWithParam<int>;
inline std::string RankCount(const testing::TestParamInfo<int>& info) {
  return info.param == 1 ? "OneRank" : std::to_string(info.param) + "Ranks";
}

// One rank of a small job: W f32 [16, 4] cut by rows, element i holding base + i.
class Trainer {
 public:
  Trainer(Rank& rank, const CtxOptions& options, float base = 0)
      : rows_(Even(16, rank.id(), rank.size())),
        ctx(options),
        w(rows_.count * 4),
        state(Made(ctx)) {
    state.Box("w", {16, 4}, {rows_.offset, 0}, {rows_.count, 4}, w);
    Set(base);
  }

  void Set(float base) { w = Wanted(base, std::move(w)); }
  void Clear() { std::fill(w.begin(), w.end(), kFill); }
  bool Holds(float base) const { return w == Wanted(base, std::vector<float>(w.size())); }
  bool Untouched() const { return w == Fill(static_cast<int64_t>(w.size())); }
  Outcome Save(int64_t step) { return ckpt_test::Save(ctx, state, step); }
  Outcome Save(const SaveOptions& options) { return ckpt_test::Save(ctx, state, options); }
  Outcome Load(const LoadOptions& options = {}) { return ckpt_test::Load(ctx, state, options); }

 private:
  static Ctx& Made(Ctx& ctx) {
    if (!ctx.init().ok()) throw std::runtime_error("ckpt_init: " + ctx.init().Verdict());
    return ctx;
  }
  std::vector<float> Wanted(float base, std::vector<float> v) const {
    std::iota(v.begin(), v.end(), base + static_cast<float>(rows_.offset * 4));
    return v;
  }

  Part rows_;

 public:
  Ctx ctx;
  std::vector<float> w;  // its memory stays where it is: the state points to it
  State state;
};

// A committed W of 16 rows with that base, as an independent reader sees it.
inline void ExpectFileHolds(const std::string& root, int64_t step, float base) {
  const auto group = safetensors::Open(StepPath(root, step));
  ASSERT_EQ(group.tensors.count("w"), 1u);
  EXPECT_EQ(group.tensors.at("w").shape, (Dims{16, 4}));
  EXPECT_EQ(group.tensors.at("w").Floats(), Values(64, base));
}

}  // namespace ckpt_test
