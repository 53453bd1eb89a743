// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section G, dtypes: bit patterns (G05), 8 bits and less (G06), all others (G07), empty
// tensors (G10), and what is stored as another dtype than memory's.
#include <bit>
#include <cmath>
#include <limits>

#include "process/process.h"

namespace ckpt_test {
namespace {

constexpr uint32_t kF16 = CKPT_DTYPE(2, 16), kF64 = CKPT_DTYPE(2, 64), kE4M3 = CKPT_DTYPE(10, 8),
                   kE5M2 = CKPT_DTYPE(12, 8), kE8M0 = CKPT_DTYPE(14, 8), kF4 = CKPT_DTYPE(17, 4),
                   kC128 = CKPT_DTYPE(5, 128);

struct Typed {
  std::string name, stored;  // safetensors' dtype
  uint32_t dtype;
  Dims shape;
  size_t bytes;
  Dims stored_shape = {};  // where it differs
};

std::string Pattern(size_t bytes, size_t seed) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(i * 37 + seed * 11 + i / 7));
  return out;
}

// Saves all of them on two ranks, replicated; loads them back; reads the files.
void RoundTrip(const std::vector<Typed>& tensors) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<std::string> data;
    for (size_t k = 0; k < tensors.size(); ++k) data.push_back(Pattern(tensors[k].bytes, k));
    State state(ctx);
    for (size_t k = 0; k < tensors.size(); ++k)
      state.Add({.name = tensors[k].name,
                 .shape = tensors[k].shape,
                 .dtype = tensors[k].dtype,
                 .data = data[k].data()});
    EXPECT_OK(Save(ctx, state, 1));
    for (std::string& d : data) std::fill(d.begin(), d.end(), '\xEE');
    EXPECT_OK(Load(ctx, state));
    for (size_t k = 0; k < tensors.size(); ++k)
      EXPECT_EQ(data[k], Pattern(tensors[k].bytes, k)) << tensors[k].name;
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  for (size_t k = 0; k < tensors.size(); ++k) {
    const Typed& t = tensors[k];
    ASSERT_TRUE(group.tensors.count(t.name)) << t.name;
    const auto& entry = group.tensors.at(t.name);
    EXPECT_EQ(entry.dtype, t.stored) << t.name;
    EXPECT_EQ(entry.shape, t.stored_shape.empty() ? t.shape : t.stored_shape) << t.name;
    EXPECT_EQ(entry.bytes, Pattern(t.bytes, k)) << t.name;
  }
}

TEST(Dtypes, G06_EightBitFloatsAndPackedOnesKeepTheirBytes) {
  RoundTrip({{"e4m3", "F8_E4M3", kE4M3, {7}, 7},
             {"e5m2", "F8_E5M2", kE5M2, {3, 3}, 9},
             {"e8m0", "F8_E8M0", kE8M0, {5}, 5},
             {"f4", "F4", kF4, {2, 8}, 8}});
}

TEST(Dtypes, G07_ComplexUnsignedSignedAndBool) {
  RoundTrip({{"c64", "C64", CKPT_DTYPE(5, 64), {4}, 32},
             {"u16", "U16", CKPT_DTYPE(1, 16), {5}, 10},
             {"u32", "U32", CKPT_DTYPE(1, 32), {5}, 20},
             {"u64", "U64", CKPT_DTYPE(1, 64), {5}, 40},
             {"i8", "I8", CKPT_DTYPE(0, 8), {5}, 5},
             {"i16", "I16", CKPT_DTYPE(0, 16), {5}, 10},
             {"i32", "I32", CKPT_DTYPE(0, 32), {5}, 20},
             {"f64", "F64", kF64, {5}, 40},
             {"bool", "BOOL", CKPT_DTYPE(6, 8), {256}, 256}});  // any byte, 2 too
}

// What safetensors cannot name is bytes there, and itself here.
TEST(Dtypes, G07_TypesWithoutANameAreBytesForOthersAndThemselvesForUs) {
  RoundTrip({{"c128", "U8", kC128, {2, 3}, 96, {2, 3, 16}},
             {"scalar", "U8", kC128, {}, 16, {16}},
             {"fnuz", "U8", CKPT_DTYPE(11, 8), {4}, 4, {4, 1}}});
}

TEST(Dtypes, G06_AnOddNumberOfHalfBytesAndUnknownCodesAreRefusedOnAllRanks) {
  const struct {
    uint32_t dtype;
    Dims shape;
    ckpt_status status;
  } bad[] = {{kF4, {3}, CKPT_ERR_INVALID_ARGUMENT},
             {kF4, {}, CKPT_ERR_INVALID_ARGUMENT},
             {9999, {4}, CKPT_ERR_INVALID_ARGUMENT},
             {CKPT_DTYPE(0, 4), {4}, CKPT_ERR_UNSUPPORTED}};
  Scratch scratch;
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    for (const auto& b : bad) {
      char data[64] = {};
      State state(ctx);
      if (rank.is(1)) {
        const Outcome added =
            state.TryAdd({.name = "t", .shape = b.shape, .dtype = b.dtype, .data = data});
        EXPECT_EQ(added.status, b.status) << added;
      }
      const Outcome o = Save(ctx, state, 1);
      EXPECT_EQ(o.status, b.status) << o;
      EXPECT_EQ(o.cause.rank, 1) << o;
    }
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(scratch / "root", "step-"), std::set<std::string>{});
}

// Columns of a packed tensor, cut at whole bytes.
TEST(Dtypes, G06_PackedTensorsAreCutAtWholeBytesOnly) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::string mine = rank.is(0) ? std::string("\x10\x11\x12") : std::string("\x20\x21\x22");
    const auto shard = [&](int64_t offset) {
      return Tensor{.name = "t",
                    .shape = {3, 4},
                    .dtype = kF4,
                    .kind = CKPT_SHARD_BOX,
                    .offset = {0, offset},
                    .extent = {3, 2},
                    .data = mine.data()};
    };
    State state(ctx);
    EXPECT_OK(state.TryAdd(shard(2 * rank.id())));
    EXPECT_OK(Save(ctx, state, 1));
    State cut(ctx);
    EXPECT_STATUS(cut.TryAdd(shard(1)), CKPT_ERR_INVALID_ARGUMENT);
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(safetensors::Open(StepPath(root, 1)).tensors.at("t").bytes, "\x10\x20\x11\x21\x12\x22");
}

TEST(Dtypes, G05_EveryBitPatternSurvives) {
  Scratch scratch;
  std::string patterns;  // of 16 bits, little-endian
  for (int i = 0; i < 65536; ++i) {
    patterns.push_back(static_cast<char>(i & 0xff));
    patterns.push_back(static_cast<char>(i >> 8));
  }
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    std::vector<uint16_t> all(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    std::vector<uint16_t> half = all;
    // [65536] as bf16 in [7]s would be 9363 saves: one tensor has all patterns at once.
    std::vector<uint32_t> odd = {0x7f800001, 0xffc12345, 0x80000000, 0x7fffffff, 1, 0xff800000};
    const std::vector<uint32_t> odd_before = odd;
    State state(ctx);
    state.Add({.name = "bf16", .shape = {65536}, .dtype = kBf16, .data = all.data()});
    state.Add({.name = "f16", .shape = {65536}, .dtype = kF16, .data = half.data()});
    state.Add({.name = "f32", .shape = {6}, .data = odd.data()});
    const Part part = Even(7, rank.id(), 2);  // a small one cut unevenly, from a NaN payload on
    std::vector<uint16_t> seven(part.count);
    for (int64_t i = 0; i < part.count; ++i)
      seven[i] = static_cast<uint16_t>(0x7f81 + part.offset + i);
    const std::vector<uint16_t> seven_before = seven;
    state.Add({.name = "seven",
               .shape = {7},
               .dtype = kBf16,
               .kind = CKPT_SHARD_BOX,
               .offset = {part.offset},
               .extent = {part.count},
               .data = seven.data()});
    EXPECT_OK(Save(ctx, state, 1));
    for (auto* v : {&all, &half, &seven}) std::fill(v->begin(), v->end(), 0xEEEE);
    std::fill(odd.begin(), odd.end(), 0xEEEEEEEE);
    EXPECT_OK(Load(ctx, state));
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i], i);
      ASSERT_EQ(half[i], i);
    }
    EXPECT_EQ(odd, odd_before);
    EXPECT_EQ(seven, seven_before);
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(scratch / "root", 1));
  EXPECT_EQ(group.tensors.at("bf16").bytes, patterns);
  EXPECT_EQ(group.tensors.at("f16").bytes, patterns);
  EXPECT_EQ(group.tensors.at("seven").bytes, patterns.substr(2 * 0x7f81, 14));
}

TEST(Dtypes, G10_EmptyTensorsKeepTheirShapesWithAndWithoutAPointer) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    float shared = 0;
    State state(ctx);
    for (void* data : {static_cast<void*>(nullptr), static_cast<void*>(&shared)}) {
      const std::string suffix = data == nullptr ? " null" : " equal";
      for (const Dims& shape : {Dims{0}, Dims{2, 0}, Dims{0, 3}})
        state.Add({.name = std::to_string(shape.size()) + std::to_string(shape[0]) + suffix,
                   .shape = shape,
                   .data = data});
    }
    EXPECT_OK(Save(ctx, state, 1));
    EXPECT_OK(Load(ctx, state));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_EQ(group.tensors.size(), 6u);
  EXPECT_EQ(group.tensors.at("22 null").shape, (Dims{2, 0}));
  EXPECT_EQ(group.tensors.at("20 equal").shape, (Dims{0, 3}));
  EXPECT_EQ(group.tensors.at("10 null").shape, Dims{0});
  EXPECT_EQ(group.total_size, 0u);
}

float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// f32 in memory, bf16 and f8 in the file, cut in odd places; back into f32 without a flag, since
// the description says what is stored.
TEST(StoredDtype, IsCastOnSaveAndBackOnLoad) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const auto value = [](int64_t i) { return 1.0f + static_cast<float>(i) / 37.0f; };
  const Result r = launch::Run({.ranks = 3, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root, .config = "limits.chunk_bytes=64\nplan.min_run=4096\n"});
    ASSERT_INIT(ctx);
    const Part part = Even(1000, rank.id(), 3);
    std::vector<float> w, v;
    for (int64_t i = 0; i < part.count; ++i) w.push_back(value(part.offset + i));
    v = w;
    const auto flat = [&](const std::string& name, std::vector<float>& data, uint32_t stored) {
      return Tensor{.name = name,
                    .shape = {10, 100},
                    .kind = CKPT_SHARD_FLAT,
                    .flat_offset = part.offset,
                    .flat_count = part.count,
                    .data = data.data(),
                    .store_dtype = stored};
    };
    State state(ctx);
    state.Add(flat("w", w, kBf16)).Add(flat("v", v, kE5M2));
    EXPECT_OK(Save(ctx, state, 1));
    std::fill(w.begin(), w.end(), kFill);
    EXPECT_OK(Load(ctx, state));
    for (int64_t i = 0; i < part.count; ++i) {
      const auto bits = std::bit_cast<uint32_t>(value(part.offset + i));
      const auto bf16 = static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
      ASSERT_EQ(w[i], FromBf16(bf16)) << part.offset + i;
      ASSERT_LE(std::fabs(v[i] - value(part.offset + i)), value(part.offset + i) / 8) << i;
    }
    std::vector<double> wide(1000, -1);
    State other(ctx);
    other.Add({.name = "w", .shape = {10, 100}, .dtype = kF64, .data = wide.data()});
    EXPECT_STATUS(Load(ctx, other), CKPT_ERR_DTYPE);
    EXPECT_EQ(wide[0], -1);
    EXPECT_OK(Load(ctx, other, {.flags = CKPT_LOAD_CONVERT}));
    for (int64_t i = 0; i < part.count; ++i) ASSERT_EQ(wide[part.offset + i], w[i]);
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_EQ(group.tensors.at("w").dtype, "BF16");
  EXPECT_EQ(group.tensors.at("v").dtype, "F8_E5M2");
  EXPECT_EQ(group.total_size, 3000u);
}

// Memory may differ from rank to rank where what is stored does not.
TEST(StoredDtype, RanksMayHoldOneTensorInDifferentDtypes) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 2, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<float> f32 = {1, 2};
    std::vector<double> f64 = {3, 4};
    void* const data = rank.is(0) ? static_cast<void*>(f32.data()) : f64.data();
    State state(ctx);
    state.Add({.name = "t",
               .shape = {4},
               .dtype = rank.is(0) ? kF32 : kF64,
               .kind = CKPT_SHARD_BOX,
               .offset = {2 * rank.id()},
               .extent = {2},
               .data = data,
               .store_dtype = kF32});
    EXPECT_OK(Save(ctx, state, 1));
  });
  ASSERT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(safetensors::Open(StepPath(root, 1)).tensors.at("t").Floats(), Values(4, 1));
}

}  // namespace
}  // namespace ckpt_test
