// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section G, memory: strides of any kind (G01), packed in bounded memory (G02).
#include <sys/resource.h>

#include <numeric>

#include "process/process.h"

namespace ckpt_test {
namespace {

struct View {
  std::string name;
  Dims shape, strides;
  int64_t first = 0;  // element of the buffer that index 0, 0, ... is
  int64_t buffer = 0;
};

// The element of the buffer that holds row-major element i.
int64_t At(const View& v, int64_t i) {
  int64_t at = v.first;
  for (size_t k = v.shape.size(); k-- > 0; i /= v.shape[k]) at += i % v.shape[k] * v.strides[k];
  return at;
}

int64_t Count(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<float> ByIndex(const View& v, const std::vector<float>& buffer) {
  std::vector<float> out;
  for (int64_t i = 0; i < Count(v.shape); ++i) out.push_back(buffer[At(v, i)]);
  return out;
}

const std::vector<View> kViews = {
    {"column major", {3, 4}, {1, 3}, 0, 12},
    {"broadcast", {4, 2}, {0, 1}, 0, 2},
    {"reversed", {5}, {-1}, 4, 5},
    {"permuted", {2, 3, 4}, {4, 8, 1}, 0, 24},
    {"every second", {3, 3}, {12, 2}, 1, 40},
    {"both reversed", {3, 4}, {-4, -1}, 11, 12},
    {"channels last", {2, 3, 2, 2}, {12, 1, 6, 3}, 0, 24},
};

TEST(Strides, G01_ViewsAreStoredByTheirIndexAndLoadedBack) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    State state(ctx), into(ctx);
    std::vector<std::vector<float>> from, to;
    for (const View& v : kViews) {
      from.push_back(Values(v.buffer));
      to.push_back(Fill(v.buffer));
    }
    for (size_t k = 0; k < kViews.size(); ++k) {
      const View& v = kViews[k];
      state.Add({.name = v.name,
                 .shape = v.shape,
                 .data = from[k].data() + v.first,
                 .strides = v.strides});
      if (v.name == "broadcast") continue;  // cannot be loaded into: below
      into.Add(
          {.name = v.name, .shape = v.shape, .data = to[k].data() + v.first, .strides = v.strides});
    }
    EXPECT_OK(Save(ctx, state, 1));
    EXPECT_OK(Load(ctx, into));
    for (size_t k = 0; k < kViews.size(); ++k) {
      if (kViews[k].name == "broadcast") continue;
      EXPECT_EQ(ByIndex(kViews[k], to[k]), ByIndex(kViews[k], from[k])) << kViews[k].name;
      int64_t untouched = 0;
      for (float x : to[k]) untouched += x == kFill;
      EXPECT_EQ(untouched, kViews[k].buffer - Count(kViews[k].shape)) << kViews[k].name;
    }
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  for (const View& v : kViews) {
    EXPECT_EQ(group.tensors.at(v.name).shape, v.shape) << v.name;
    EXPECT_EQ(group.tensors.at(v.name).Floats(), ByIndex(v, Values(v.buffer))) << v.name;
  }
}

// Rank r holds columns [2r, 2r + 2) of a [6, 4] tensor, each in another order in memory.
TEST(Strides, G01_ShardsMayBeStridedToo) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    const View v =
        rank.is(0) ? View{"t", {6, 2}, {1, 6}, 0, 12} : View{"t", {6, 2}, {-2, 1}, 10, 12};
    const std::vector<float> mine = BoxValues(4, {0, 2 * rank.id()}, {6, 2});
    std::vector<float> buffer = Fill(12);
    for (int64_t i = 0; i < 12; ++i) buffer[At(v, i)] = mine[i];
    State state(ctx);
    state.Add({.name = "t",
               .shape = {6, 4},
               .kind = CKPT_SHARD_BOX,
               .offset = {0, 2 * rank.id()},
               .extent = {6, 2},
               .data = buffer.data() + v.first,
               .strides = v.strides});
    EXPECT_OK(Save(ctx, state, 1));
    std::fill(buffer.begin(), buffer.end(), kFill);
    EXPECT_OK(Load(ctx, state));
    EXPECT_EQ(ByIndex(v, buffer), mine);
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(safetensors::Open(StepPath(root, 1)).tensors.at("t").Floats(), Values(24));
}

TEST(Strides, G01_ADestinationWhoseElementsShareMemoryIsRefusedOnAllRanks) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    std::vector<float> data = Values(8);
    State state(ctx);
    state.Whole("t", {4, 2}, data);
    EXPECT_OK(Save(ctx, state, 1));
    std::vector<float> into = Fill(8);
    State shared(ctx);
    shared.Add({.name = "t",
                .shape = {4, 2},
                .data = into.data(),
                .strides = rank.is(1) ? Dims{1, 1} : Dims{2, 1}});
    const Outcome o = Load(ctx, shared);
    EXPECT_STATUS(o, CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(o.cause.rank, 1) << o;
    EXPECT_EQ(o.cause.name, "t") << o;
    EXPECT_EQ(into, Fill(8));
    Publish(rank, "refused", o);
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "refused");
}

TEST(Strides, G02_ChannelsLastIsStoredAsThePackedTensorByteForByte) {
  Scratch scratch;
  const Dims shape = {8, 16, 5, 5}, strides = {400, 1, 80, 16};
  for (const bool packed : {true, false}) {
    const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank&) {
      Ctx ctx({.root = scratch / (packed ? "packed" : "strided")});
      ASSERT_INIT(ctx);
      const View v{"t", shape, strides, 0, 3200};
      std::vector<float> values = Values(3200), buffer = Fill(3200);
      for (int64_t i = 0; i < 3200; ++i) buffer[At(v, i)] = values[i];
      State state(ctx);
      if (packed) state.Whole("t", shape, values);
      if (!packed)
        state.Add({.name = "t", .shape = shape, .data = buffer.data(), .strides = strides});
      EXPECT_OK(Save(ctx, state, 1));
    });
    ASSERT_TRUE(r.ok()) << r.report();
  }
  EXPECT_EQ(safetensors::ReadBytes(StepPath(scratch / "packed", 1) + "/model.safetensors"),
            safetensors::ReadBytes(StepPath(scratch / "strided", 1) + "/model.safetensors"));
}

uint64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

// A column-major tensor of 256 MiB, whose packed copy would show.
TEST(Strides, G02_PackingTakesLittleMemory) {
  Scratch scratch;
  const int64_t rows = 4096, columns = 16384;
  const Result r = launch::Run({.ranks = 1, .deadline_s = 100}, [&](Rank&) {
    Ctx ctx({.root = scratch / "root", .timeout_ms = 60'000});
    ASSERT_INIT(ctx);
    std::vector<float> buffer(rows * columns, 1.0f);
    State state(ctx);
    state.Add({.name = "t", .shape = {rows, columns}, .data = buffer.data(), .strides = {1, rows}});
    const uint64_t before = PeakBytes();
    EXPECT_OK(Save(ctx, state, 1));
    EXPECT_LT(PeakBytes() - before, 64u << 20);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

}  // namespace
}  // namespace ckpt_test
