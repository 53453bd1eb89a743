// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md sections B and C: what is missing, half-made or damaged (B10, C02's second part, C12).
#include <fcntl.h>
#include <unistd.h>

#include <random>

#include "process/process.h"

namespace ckpt_test {
namespace {

using MissingSteps = ForAnyRanks;
using CommitRecord = ForAnyRanks;
using Checksums = ForAnyRanks;
INSTANTIATE_TEST_SUITE_P(K09, MissingSteps, testing::Values(1, 4), RankCount);
INSTANTIATE_TEST_SUITE_P(K09, CommitRecord, testing::Values(1, 2), RankCount);
INSTANTIATE_TEST_SUITE_P(K09, Checksums, testing::Values(1, 2), RankCount);

TEST_P(MissingSteps, B10_AMissingStepIsNotFoundAndAnEmptyRootIsNoCheckpoint) {
  Scratch scratch;
  const std::string root = scratch / "root", empty = scratch / "empty", none = scratch / "none";
  std::filesystem::create_directory(empty);
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = root});
    EXPECT_OK(t.Save(10));
    EXPECT_OK(t.Save(20));
    t.Clear();
    const Outcome missing = t.Load({.step = 999});
    EXPECT_STATUS(missing, CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(missing.cause.rank, -1) << missing;  // no rank is to blame
    EXPECT_SAYS(missing, "999");
    EXPECT_TRUE(t.Untouched());
    Publish(rank, "missing", missing);
    for (const std::string& uri : {empty, none}) {
      const Outcome o = t.Load({.uri = uri});
      EXPECT_STATUS(o, CKPT_ERR_NO_CHECKPOINT);
      EXPECT_EQ(o.cause.rank, -1) << o;
      EXPECT_SAYS(o, uri);
      EXPECT_TRUE(t.Untouched());
    }
    EXPECT_OK(t.Load());
    EXPECT_TRUE(t.Holds(0));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "missing");
  EXPECT_FALSE(std::filesystem::exists(none));
}

TEST_P(MissingSteps, B10_AContextOnAnEmptyRootFindsNoCheckpoint) {
  Scratch scratch;
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 30}, [&](Rank& rank) {
    Trainer t(rank, {.root = scratch.path()});
    t.Clear();
    const Outcome o = t.Load();
    EXPECT_STATUS(o, CKPT_ERR_NO_CHECKPOINT);
    EXPECT_EQ(o.cause.rank, -1) << o;
    int64_t step = 0;
    EXPECT_STATUS(t.ctx.Latest(&step), CKPT_ERR_NO_CHECKPOINT);
    EXPECT_TRUE(t.Untouched());
    EXPECT_EQ(List(scratch.path()), std::set<std::string>{});  // a load writes nothing
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

// Everything that a commit may hold: groups of one and of several files, blobs, side files.
struct Everything {
  Everything(Ctx& ctx, Rank& rank) : state(ctx), rng(16, static_cast<uint8_t>(rank.id())) {
    state.Whole("w", {64}, w).Whole("x", {600}, x);
    state.Add({.name = "m", .shape = {64}, .data = m.data(), .group = "optimizer"});
    state.Blob(CKPT_BLOB_PER_RANK, "rng", rng).Blob(CKPT_BLOB_SHARED, "position", position);
    if (rank.is(0)) state.Blob(CKPT_BLOB_FILE, "config.json", config);
  }
  bool Untouched() const {
    return w == Fill(64) && x == Fill(600) && m == Fill(64) && position == fill && rng[0] == 0xEE;
  }
  void Clear() {
    for (auto* v : {&w, &x, &m}) std::fill(v->begin(), v->end(), kFill);
    for (auto* v : {&rng, &position}) std::fill(v->begin(), v->end(), 0xEE);
  }
  State state;
  std::vector<float> w = Values(64), x = Values(600), m = Values(64, 7);
  std::vector<uint8_t> rng, position = {1, 2, 3}, config = {'{', '}'};
  const std::vector<uint8_t> fill = {0xEE, 0xEE, 0xEE};
};

// Every file of a committed step, missing or one byte short: CORRUPT, the file named, and the
// destination untouched, for the check comes before the first read. The record itself: without
// it there is no step; cut short it is damage.
TEST_P(CommitRecord, C02_AFileMissingOrOneByteShortIsCorrupt) {
  Scratch scratch;
  const std::string root = scratch / "root", step = StepPath(root, 2);
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 60}, [&](Rank& rank) {
    Ctx ctx({.root = root, .config = "max_file_bytes=6KiB\n"});
    ASSERT_INIT(ctx);
    Everything all(ctx, rank);
    EXPECT_OK(Save(ctx, all.state, 2));
    all.Clear();
    rank.Barrier("saved");
    const std::set<std::string> files = List(step);
    EXPECT_EQ(files, (std::set<std::string>{"ckpt.json", "config.json", "blobs.safetensors",
                                            "model-00001-of-00002.safetensors",
                                            "model-00002-of-00002.safetensors",
                                            "model.safetensors.index.json", "optimizer.safetensors",
                                            "optimizer.safetensors.index.json"}));
    for (const std::string& file : files) {
      const std::string path = step + "/" + file, good = safetensors::ReadBytes(path);
      for (const bool missing : {true, false}) {
        rank.Barrier("read");
        if (rank.is(0) && missing) std::filesystem::remove(path);
        if (rank.is(0) && !missing) safetensors::WriteBytes(path, good.substr(0, good.size() - 1));
        rank.Barrier("damaged");
        const Outcome o = Load(ctx, all.state, {.step = 2});
        const bool no_step = missing && file == "ckpt.json";
        EXPECT_EQ(o.status, no_step ? CKPT_ERR_NOT_FOUND : CKPT_ERR_CORRUPT) << file << "\n" << o;
        EXPECT_SAYS(o, file);
        EXPECT_TRUE(all.Untouched()) << file;
        Publish(rank, file + (missing ? " missing" : " short"), o);
        rank.Barrier("loaded");
        if (rank.is(0)) safetensors::WriteBytes(path, good);
        rank.Barrier("mended");
      }
    }
    EXPECT_OK(Load(ctx, all.state));
    EXPECT_EQ(all.x, Values(600));
    EXPECT_EQ(all.rng, std::vector<uint8_t>(16, static_cast<uint8_t>(rank.id())));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  for (const char* file : {"ckpt.json", "config.json", "blobs.safetensors", "optimizer.safetensors",
                           "model-00002-of-00002.safetensors"}) {
    ExpectSame(r, std::string(file) + " missing");
    ExpectSame(r, std::string(file) + " short");
  }
}

void FlipBit(const std::string& path, uint64_t offset, int bit) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  unsigned char byte = 0;
  ASSERT_EQ(pread(fd, &byte, 1, static_cast<off_t>(offset)), 1);
  byte ^= static_cast<unsigned char>(1u << bit);
  ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(offset)), 1);
  close(fd);
}

constexpr int kTensors = 4;
constexpr int64_t kItems = 1 << 20;  // 4 MiB each

struct Flip {
  std::string file;
  uint64_t offset = 0;
  std::set<std::string> tensors;  // that share the damaged 1 MiB block of the file
  int bit = 0;
};

// The tensors lie in name order, each 4 MiB, behind the header.
Flip Draw(const std::string& step, std::mt19937& random) {
  const std::string file = *ListOf(step, "model.safetensors").begin();
  const auto header = safetensors::Read(step + "/" + file);
  const uint64_t at = std::uniform_int_distribution<uint64_t>(0, header.data_bytes - 1)(random);
  Flip flip{file, header.data_start + at, {}, static_cast<int>(random() % 8)};
  const uint64_t mib = 1 << 20, block = flip.offset / mib * mib;
  for (uint64_t k = 0; k < kTensors; ++k) {
    const uint64_t begin = header.data_start + k * kItems * 4, end = begin + kItems * 4;
    if (begin < block + mib && end > block) flip.tensors.insert("t" + std::to_string(k));
  }
  return flip;
}

TEST_P(Checksums, C12_AFlippedBitIsCorruptWithTensorAndFileNamedOnAllRanks) {
  Scratch scratch;
  const std::string root = scratch / "root", step = StepPath(root, 1);
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 100}, [&](Rank& rank) {
    Ctx ctx({.root = root, .timeout_ms = 10'000});
    ASSERT_INIT(ctx);
    State state(ctx);
    std::vector<std::vector<float>> data;
    const Part rows = Even(kItems, rank.id(), rank.size());
    for (int k = 0; k < kTensors; ++k) data.push_back(Values(rows.count, static_cast<float>(k)));
    for (int k = 0; k < kTensors; ++k)
      state.Box("t" + std::to_string(k), {kItems}, {rows.offset}, {rows.count}, data[k]);
    EXPECT_OK(Save(ctx, state, 1));
    rank.Barrier("saved");
    std::mt19937 random(12);
    for (int i = 0; i < 20; ++i) {
      const Flip flip = Draw(step, random);
      rank.Barrier("drawn");
      if (rank.is(0)) FlipBit(step + "/" + flip.file, flip.offset, flip.bit);
      rank.Barrier("flipped");
      const Outcome o = Load(ctx, state);
      EXPECT_STATUS(o, CKPT_ERR_CORRUPT);
      EXPECT_NE(o.cause.path.find(flip.file), std::string::npos) << o;
      EXPECT_TRUE(flip.tensors.count(o.cause.name)) << "offset " << flip.offset << "\n" << o;
      EXPECT_SAYS(o, flip.file);
      EXPECT_SAYS(o, o.cause.name);
      Publish(rank, "flip " + std::to_string(i), o);
      rank.Barrier("loaded");
      if (rank.is(0)) FlipBit(step + "/" + flip.file, flip.offset, flip.bit);
      rank.Barrier("mended");
    }
    EXPECT_OK(Load(ctx, state));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  for (int i = 0; i < 20; ++i) ExpectSame(r, "flip " + std::to_string(i));
}

// The record, the index and the headers are covered too; there the file is named.
TEST_P(Checksums, C12_AFlippedBitOutsideTheTensorsNamesTheFile) {
  Scratch scratch;
  const std::string root = scratch / "root", step = StepPath(root, 1);
  const Result r = launch::Run({.ranks = GetParam(), .deadline_s = 60}, [&](Rank& rank) {
    Trainer t(rank, {.root = root});
    EXPECT_OK(t.Save(1));
    t.Clear();
    for (const std::string file :
         {"ckpt.json", "model.safetensors.index.json", "model.safetensors"}) {
      rank.Barrier("next");
      if (rank.is(0)) FlipBit(step + "/" + file, 20, 0);
      rank.Barrier("flipped");
      const Outcome o = t.Load();
      EXPECT_STATUS(o, CKPT_ERR_CORRUPT);
      EXPECT_SAYS(o, file);
      EXPECT_TRUE(t.Untouched());
      Publish(rank, file, o);
      rank.Barrier("loaded");
      if (rank.is(0)) FlipBit(step + "/" + file, 20, 0);
    }
  });
  EXPECT_TRUE(r.ok()) << r.report();
  for (const char* file : {"ckpt.json", "model.safetensors.index.json", "model.safetensors"})
    ExpectSame(r, file);
}

}  // namespace
}  // namespace ckpt_test
