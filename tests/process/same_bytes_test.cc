// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Promise 6: same state, same bytes. Random states, cut in random ways over 4 and 7 ranks, give the
// group files that one rank gives, byte for byte.
#include <random>

#include "process/process.h"

namespace ckpt_test {
namespace {

constexpr int kSeeds = 50;
constexpr char kConfig[] = "max_file_bytes=40000\nplan.min_run=4KiB\nlimits.chunk_bytes=1KiB\n";

struct DType {
  uint32_t code;
  int64_t bytes;
};
constexpr DType kDTypes[] = {{kF32, 4}, {kBf16, 2}, {kU8, 1}, {kI64, 8}};
enum class Split { kReplicated, kRows, kColumns, kFlat, kOneHolder, kCount };

// What all ranks agree on; drawn from the seed alone.
struct GlobalTensor {
  std::string name, group;
  DType dtype;
  int64_t rows, columns;
  Split split;
  unsigned cut_seed;
};

std::vector<GlobalTensor> DrawState(int seed) {
  std::mt19937 rng(static_cast<unsigned>(seed));
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  std::vector<GlobalTensor> tensors(static_cast<size_t>(draw(1, 9)));
  for (size_t i = 0; i < tensors.size(); ++i) {
    GlobalTensor& t = tensors[i];
    t.name = "layer." + std::to_string(i) + ".weight";
    t.group = draw(0, 2) == 0 ? "optimizer" : "model";
    t.dtype = kDTypes[draw(0, 3)];
    t.rows = draw(0, 9) == 0 ? 0 : draw(1, 130);  // one in ten is empty
    t.columns = draw(1, 90);
    t.split = static_cast<Split>(draw(0, static_cast<int64_t>(Split::kCount) - 1));
    t.cut_seed = static_cast<unsigned>(draw(0, 1 << 30));
  }
  return tensors;
}

// [0, n) cut into `size` uneven parts, some of them empty; this rank's.
Part Uneven(int64_t n, Rank& rank, unsigned cut_seed) {
  std::mt19937 rng(cut_seed);
  std::vector<int64_t> cuts = {0, n};
  for (int i = 1; i < rank.size(); ++i)
    cuts.push_back(std::uniform_int_distribution<int64_t>(0, n)(rng));
  std::sort(cuts.begin(), cuts.end());
  const size_t r = static_cast<size_t>(rank.id());
  return {cuts[r], cuts[r + 1] - cuts[r]};
}

// Byte `i` of tensor `t`: any pattern in which a displaced byte shows.
uint8_t ByteOf(const GlobalTensor& t, int64_t i) {
  return static_cast<uint8_t>((i * 131 + (i >> 8) * 7 + t.cut_seed) % 251);
}

// Bytes of rows [r) and columns [c), element by element.
std::vector<uint8_t> BoxBytes(const GlobalTensor& t, Part r, Part c) {
  std::vector<uint8_t> bytes;
  for (int64_t i = r.offset; i < r.offset + r.count; ++i)
    for (int64_t b = c.offset * t.dtype.bytes; b < (c.offset + c.count) * t.dtype.bytes; ++b)
      bytes.push_back(ByteOf(t, i * t.columns * t.dtype.bytes + b));
  return bytes;
}

std::vector<uint8_t> FlatBytes(const GlobalTensor& t, Part p) {
  std::vector<uint8_t> bytes;
  for (int64_t b = p.offset * t.dtype.bytes; b < (p.offset + p.count) * t.dtype.bytes; ++b)
    bytes.push_back(ByteOf(t, b));
  return bytes;
}

// This rank's shard of `t`; `bytes` is its memory.
Tensor ShardOf(const GlobalTensor& t, Rank& rank, std::vector<uint8_t>* bytes) {
  Tensor shard{.name = t.name, .shape = {t.rows, t.columns}, .dtype = t.dtype.code};
  shard.group = t.group;
  Part rows{0, t.rows}, columns{0, t.columns};
  switch (t.split) {
    case Split::kRows:
      rows = Uneven(t.rows, rank, t.cut_seed);
      break;
    case Split::kColumns:
      columns = Uneven(t.columns, rank, t.cut_seed);
      break;
    case Split::kOneHolder:
      if (static_cast<int>(t.cut_seed) % rank.size() != rank.id()) rows = {0, 0};
      break;
    case Split::kFlat: {
      const Part flat = Uneven(t.rows * t.columns, rank, t.cut_seed);
      *bytes = FlatBytes(t, flat);
      shard.kind = CKPT_SHARD_FLAT;
      shard.flat_offset = flat.offset;
      shard.flat_count = flat.count;
      break;
    }
    default:
      break;
  }
  if (shard.kind != CKPT_SHARD_FLAT) {
    *bytes = BoxBytes(t, rows, columns);
    shard.kind = CKPT_SHARD_BOX;
    shard.offset = {rows.offset, columns.offset};
    shard.extent = {rows.count, columns.count};
  }
  shard.data = bytes->empty() ? nullptr : bytes->data();
  return shard;
}

void SaveAll(const std::string& root, int ranks) {
  const Result r = launch::Run({.ranks = ranks, .deadline_s = 100}, [&](Rank& rank) {
    Ctx ctx({.root = root, .config = kConfig, .timeout_ms = 20'000});
    ASSERT_INIT(ctx);
    for (int seed = 0; seed < kSeeds; ++seed) {
      const std::vector<GlobalTensor> tensors = DrawState(seed);
      std::vector<std::vector<uint8_t>> memory(tensors.size());
      State state(ctx);
      for (size_t i = 0; i < tensors.size(); ++i) state.Add(ShardOf(tensors[i], rank, &memory[i]));
      EXPECT_OK(Save(ctx, state, seed));
    }
  });
  ASSERT_TRUE(r.ok()) << ranks << " ranks\n" << r.report();
}

TEST(SameStateSameBytes, GroupFilesOfOneFourAndSevenRanksAreEqual) {
  Scratch scratch;
  for (const int ranks : {1, 4, 7}) SaveAll(scratch / std::to_string(ranks), ranks);
  size_t compared = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const std::string one = StepPath(scratch / "1", seed);
    for (const std::string& file : List(one)) {
      if (file == "ckpt.json") continue;  // who wrote, when: differs by nature
      const std::string wanted = safetensors::ReadBytes(one + "/" + file);
      for (const char* ranks : {"4", "7"})
        EXPECT_TRUE(safetensors::ReadBytes(StepPath(scratch / ranks, seed) + "/" + file) == wanted)
            << "seed " << seed << ", " << ranks << " ranks: " << file;
      ++compared;
    }
    EXPECT_EQ(List(one), List(StepPath(scratch / "4", seed))) << "seed " << seed;
    EXPECT_EQ(List(one), List(StepPath(scratch / "7", seed))) << "seed " << seed;
  }
  EXPECT_GT(compared, 2u * kSeeds) << "at least a data file and an index per step";
}

TEST(SameStateSameBytes, TheFilesHoldTheValuesThatWereSaved) {
  Scratch scratch;
  SaveAll(scratch / "root", 5);
  for (int seed = 0; seed < kSeeds; ++seed) {
    const std::string folder = StepPath(scratch / "root", seed);
    for (const GlobalTensor& t : DrawState(seed)) {
      const auto group = safetensors::Open(folder, t.group);
      ASSERT_EQ(group.tensors.count(t.name), 1u) << "seed " << seed << " " << t.name;
      const auto& stored = group.tensors.at(t.name);
      EXPECT_EQ(stored.shape, (Dims{t.rows, t.columns}));
      const std::vector<uint8_t> wanted = FlatBytes(t, {0, t.rows * t.columns});
      EXPECT_TRUE(stored.bytes == std::string(wanted.begin(), wanted.end()))
          << "seed " << seed << " " << t.name;
    }
  }
}

}  // namespace
}  // namespace ckpt_test
