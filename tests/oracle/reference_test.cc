// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Who checks the oracle? Cases small enough to be spelled out by hand, and a count of what the
// draws reach.
#include <gtest/gtest.h>

#include <bit>

#include "oracle/load_case.h"
#include "oracle/perturb.h"

namespace oracle {
namespace {

constexpr uint32_t kF32 = CKPT_DTYPE(2, 32), kF16 = CKPT_DTYPE(2, 16), kBf16 = CKPT_DTYPE(4, 16),
                   kF64 = CKPT_DTYPE(2, 64), kE4M3 = CKPT_DTYPE(10, 8), kE5M2 = CKPT_DTYPE(12, 8),
                   kU8 = CKPT_DTYPE(1, 8), kF4 = CKPT_DTYPE(17, 4), kC128 = CKPT_DTYPE(5, 128);

std::string Bytes(uint64_t bits, int n) {
  std::string out;
  for (int b = 0; b < n; ++b) out += static_cast<char>(bits >> (8 * b));
  return out;
}

TEST(Numbers, ChecksumAndBase64AreThePublishedOnes) {
  EXPECT_EQ(Hex8(Crc32c("123456789")), "e3069283");
  EXPECT_EQ(Hex8(Crc32c("")), "00000000");
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

TEST(Numbers, CastsSpelledOut) {
  const struct {
    uint32_t from, to;
    uint64_t in, out;
  } cases[] = {
      {kF32, kBf16, 0x3f800000, 0x3f80},             // 1
      {kF32, kBf16, 0x3f808000, 0x3f80},             // halfway: to the even one below
      {kF32, kBf16, 0x3f818000, 0x3f82},             // halfway: to the even one above
      {kF32, kBf16, 0x3f808001, 0x3f81},             // a little more than halfway
      {kF32, kBf16, 0x7f7fffff, 0x7f80},             // the largest: to infinity
      {kF32, kBf16, 0x80000000, 0x8000},             // -0
      {kF32, kBf16, 0xff800001, 0xffc0},             // a NaN whose payload is lost
      {kF32, kBf16, 0x7fa10000, 0x7fe1},             // one whose payload is kept, made quiet
      {kF32, kF16, 0x477fefff, 0x7bff},              // just below 65520
      {kF32, kF16, 0x477ff000, 0x7c00},              // 65520: to infinity
      {kF32, kF16, 0x33000000, 0x0000},              // 2^-25: halfway to the smallest, to even
      {kF32, kF16, 0x33000001, 0x0001},              // a little more
      {kF32, kF16, 0x33c00000, 0x0002},              // 1.5 * 2^-24: halfway, to even
      {kF16, kF32, 0x0001, 0x33800000},              // subnormal there, normal here
      {kF16, kF32, 0xfc00, 0xff800000},              // -infinity
      {kF32, kE4M3, 0x43e00000, 0x7e},               // 448, the largest
      {kF32, kE4M3, 0x43e80000, 0x7e},               // 464: halfway, to even
      {kF32, kE4M3, 0x43e80001, 0x7f},               // more: its NaN
      {kF32, kE4M3, 0xff800000, 0xff},               // -infinity: -NaN
      {kF32, kE4M3, 0x3a800000, 0x00},               // 2^-10: halfway to the smallest, to even
      {kE4M3, kF32, 0x01, 0x3b000000},               // 2^-9
      {kF32, kE5M2, 0x47700000, 0x7c},               // 61440: halfway to the next power: infinity
      {kF32, kE5M2, 0x476fffff, 0x7b},               // below
      {kE5M2, kF32, 0xfd, 0xffe00000},               // a NaN
      {kF64, kF32, 0x3ff0000010000000, 0x3f800000},  // halfway, to even
      {kF64, kF32, 0x3ff0000010000001, 0x3f800001},
      {kF64, kF32, 0x0000000000000001, 0x00000000},
      {kF64, kE5M2, 0x40edffffffffffff, 0x7b},       // one rounding, not by way of f32
      {kF32, kF64, 0x00000001, 0x36a0000000000000},  // 2^-149
      {kBf16, kBf16, 0x7f81, 0x7f81},                // not touched at all
  };
  for (const auto& c : cases) {
    const DType &from = FindDType(c.from), &to = FindDType(c.to);
    const std::string in = Bytes(c.in, static_cast<int>(from.bytes));
    EXPECT_EQ(Cast(c.from, in.data(), c.to), Bytes(c.out, static_cast<int>(to.bytes)))
        << from.name << " " << std::hex << c.in << " to " << to.name;
  }
}

TEST(Files, HeaderIsSpelledOut) {
  const std::string header = Header({{"model", "b", {2}, kF32, std::string(8, 'b')},
                                     {"model", "\"a\"\n\x01", {}, kU8, "a"},
                                     {"model", "f", {3, 2}, kF4, std::string(6, 'f')},
                                     {"model", "c", {2}, kC128, std::string(32, 'c')},
                                     {"model", "e", {0, 3}, kF32, ""}},
                                    {{"format", "pt"}, {"tied", "b"}});
  ASSERT_EQ(header.size(), 4096u);
  EXPECT_EQ(header.substr(0, 8), Bytes(4088, 8));
  const std::string json = R"({"\"a\"\n\u0001":{"data_offsets":[8,9],"dtype":"U8","shape":[]},)"
                           R"("__metadata__":{"format":"pt","tied":"b"},)"
                           R"("b":{"data_offsets":[0,8],"dtype":"F32","shape":[2]},)"
                           R"("c":{"data_offsets":[15,47],"dtype":"U8","shape":[2,16]},)"
                           R"("e":{"data_offsets":[47,47],"dtype":"F32","shape":[0,3]},)"
                           R"("f":{"data_offsets":[9,15],"dtype":"F4","shape":[3,4]}})";
  EXPECT_EQ(header.substr(8, json.size()), json);
  EXPECT_EQ(header.find_first_not_of(' ', 8 + json.size()), std::string::npos);
}

Tensor Named(const std::string& group, const std::string& name, uint32_t dtype, const Dims& shape) {
  Tensor t;
  t.group = group;
  t.name = name;
  t.dtype = dtype;
  t.shape = shape;
  t.seed = 7 + shape.size();
  return t;
}

Shard WholeShard(const Model& model, int k) {
  const Tensor& t = model.tensors[static_cast<size_t>(k)];
  Shard s;
  s.tensor = k;
  s.group = t.group;
  s.name = t.name;
  s.shape = t.shape;
  s.dtype = t.dtype;
  s.span = Count(t.shape);
  return s;
}

// One rank with all of it.
struct Job {
  Model model;
  std::vector<Part> parts = std::vector<Part>(1);
  void Give(const Tensor& t) {
    model.tensors.push_back(t);
    parts[0].shards.push_back(WholeShard(model, static_cast<int>(model.tensors.size()) - 1));
  }
};

TEST(Files, AStepIsSpelledOut) {
  Job job;
  job.Give(Named("model", "small", kU8, {3}));
  job.Give(Named("model", "b", kF32, {2}));
  job.Give(Named("model", "a", kF32, {1}));
  job.Give(Named("model", "wide", kC128, {1}));
  job.model.aliases = {{"model", "y", "x"}, {"model", "x", "b"}};
  Blob rng;
  rng.name = "rng";
  rng.ranks = {0};
  rng.bytes = {5};
  Blob config = rng;
  config.scope = CKPT_BLOB_FILE;
  config.name = "config.json";
  job.model.blobs = {rng, config};
  const Step step = Expect(job.model, job.parts, {});
  const std::string& file = step.data.at("model.safetensors");
  ASSERT_EQ(file.size(), 4096u + 16 + 4 + 8 + 3);
  EXPECT_EQ(file.substr(4096, 16),
            MemoryUnit(job.model.tensors[3], 0, kC128));                       // the largest first
  EXPECT_EQ(file.substr(4112, 4), MemoryUnit(job.model.tensors[2], 0, kF32));  // then by name
  EXPECT_EQ(file.substr(4120, 4), MemoryUnit(job.model.tensors[1], 1, kF32));
  EXPECT_EQ(file.substr(4126, 1), MemoryUnit(job.model.tensors[0], 2, kU8));
  EXPECT_NE(file.find(R"("__metadata__":{"format":"pt","x":"b","y":"b"})"), std::string::npos);
  EXPECT_EQ(step.index.at("model.safetensors.index.json"),
            "{\n  \"metadata\": {\n    \"total_size\": 31\n  },\n  \"weight_map\": {\n"
            "    \"a\": \"model.safetensors\",\n    \"b\": \"model.safetensors\",\n"
            "    \"small\": \"model.safetensors\",\n    \"wide\": \"model.safetensors\"\n  }\n}\n");
  EXPECT_EQ(step.aliases.at("model").at("y"), "b");
  EXPECT_EQ(step.dtypes.at("model").at("wide"), kC128);
  EXPECT_EQ(step.data.at("blobs.safetensors").substr(4096), BlobBytes(rng, 0));
  EXPECT_NE(step.data.at("blobs.safetensors").find("\"rank/000000/rng\""), std::string::npos);
  EXPECT_EQ(step.side.at("config.json"), BlobBytes(config, 0));
  EXPECT_EQ(step.data.size() + step.index.size() + step.side.size(), 4u);
}

TEST(Files, AFileTakesWhatFitsHeaderIncluded) {
  Job job;
  for (const char* name : {"a", "b", "c"}) job.Give(Named("g", name, kU8, {10}));
  EXPECT_EQ(Expect(job.model, job.parts, {.max_file_bytes = 4096 + 30}).data.size(), 1u);
  const Step two = Expect(job.model, job.parts, {.max_file_bytes = 4096 + 29});
  EXPECT_EQ(two.groups.at("g"), (std::vector<std::string>{"g-00001-of-00002.safetensors",
                                                          "g-00002-of-00002.safetensors"}));
  EXPECT_EQ(two.data.at("g-00001-of-00002.safetensors").size(), 4096u + 20);
  EXPECT_EQ(Expect(job.model, job.parts, {.max_file_bytes = 1}).data.size(), 3u);
}

TEST(Files, DuplicatedTiesAreTensors) {
  Job job;
  job.Give(Named("g", "a", kU8, {10}));
  job.model.aliases = {{"g", "z", "a"}};
  const Step step = Expect(job.model, job.parts, {.duplicate_ties = true});
  EXPECT_TRUE(step.aliases.empty());
  ASSERT_EQ(step.tensors.size(), 2u);
  EXPECT_EQ(step.tensors[1].name, "z");
  EXPECT_EQ(step.tensors[1].bytes, step.tensors[0].bytes);
}

TEST(Memory, ABoxOfAMatrixLiesWhereItsStridesSay) {
  Shard s;
  s.shape = {3, 4};
  s.dtype = kU8;
  s.kind = CKPT_SHARD_BOX;
  s.offset = {1, 2};
  s.extent = {2, 2};
  EXPECT_EQ(Units(s), (std::vector<int64_t>{6, 7, 10, 11}));
  EXPECT_EQ(Places(s), (std::vector<int64_t>{0, 1, 2, 3}));
  s.strides = {-1, 3};
  s.first = 2;
  s.span = 6;
  s.skew = 1;
  EXPECT_EQ(Places(s), (std::vector<int64_t>{2, 5, 1, 4}));
  std::string want = Background(s);
  EXPECT_EQ(want.size(), 1u + 6 + 3);
  want[3] = 'a', want[6] = 'b', want[2] = 'c', want[5] = 'd';
  EXPECT_EQ(WithUnits(s, {"a", "b", "c", "d"}), want);
}

TEST(Memory, EachUnitIsCastFromTheDTypeOfItsHolder) {
  Job job;
  Tensor t = Named("g", "a", kE5M2, {40});
  t.cast = true;
  job.model.tensors = {t};
  job.parts.resize(2);
  for (int r = 0; r < 2; ++r) {
    Shard s = WholeShard(job.model, 0);
    s.kind = CKPT_SHARD_FLAT;
    s.begin = 15 * r;
    s.count = r == 0 ? 15 : 25;
    s.dtype = r == 0 ? kF64 : kE4M3;
    job.parts[static_cast<size_t>(r)].shards = {s};
  }
  const std::string stored = StoredBytes(job.model, job.parts, 0);
  ASSERT_EQ(stored.size(), 40u);
  for (int64_t i = 0; i < 40; ++i) {
    const uint32_t dtype = i < 15 ? kF64 : kE4M3;
    EXPECT_EQ(stored.substr(static_cast<size_t>(i), 1),
              Cast(dtype, MemoryUnit(t, i, dtype).data(), kE5M2));
  }
}

TEST(Memory, RenamesTakeTheFirstThatFitsOnce) {
  const Pairs renames = {{"_orig_mod.", ""}, {"_orig", "x"}};
  EXPECT_EQ(Renamed(renames, "_orig_mod._orig_mod.a"), "_orig_mod.a");
  EXPECT_EQ(Renamed(renames, "_origin"), "xin");
  EXPECT_EQ(Renamed(renames, "a"), "a");
}

TEST(Loads, NamesDTypesAndShapesAreJudged) {
  Job job;
  job.Give(Named("g", "a", kF32, {2}));
  job.Give(Named("g", "b", kF32, {2}));
  job.model.aliases = {{"g", "tie", "a"}};
  SaveCase saved;
  saved.model = job.model;
  saved.parts = job.parts;
  const Step step = Expect(job.model, job.parts, {});
  const auto answer = [&](const std::function<void(Shard*)>& change, uint32_t flags = 0) {
    LoadCase load;
    load.flags = flags;
    load.parts.resize(1);
    Shard s = WholeShard(job.model, 0);
    change(&s);
    load.parts[0].shards = {s};
    return ExpectLoad(saved, step, load);
  };
  const auto plain = answer([](Shard* s) { s->name = "tie"; });
  EXPECT_TRUE(plain.errors.empty());
  EXPECT_EQ(plain.ranks[0].memory[0].substr(0, 8), step.tensors[0].bytes);
  EXPECT_EQ(plain.unused, std::vector<std::string>{"b"});
  using Errors = std::set<std::pair<ckpt_status, std::string>>;
  const auto absent = [](Shard* s) { s->name = "no"; };
  const auto wide = [](Shard* s) { s->dtype = kF64; };
  EXPECT_EQ(answer(absent).errors, (Errors{{CKPT_ERR_NOT_FOUND, "no"}}));
  EXPECT_TRUE(answer(absent, CKPT_LOAD_ALLOW_MISSING).errors.empty());
  EXPECT_EQ(answer(wide).errors, (Errors{{CKPT_ERR_DTYPE, "a"}}));
  EXPECT_TRUE(answer(wide, CKPT_LOAD_CONVERT).errors.empty());
  EXPECT_EQ(answer([](Shard* s) { s->shape = {1, 2}; }).errors, (Errors{{CKPT_ERR_SHAPE, "a"}}));
  EXPECT_EQ(answer([](Shard*) {}, CKPT_LOAD_NO_UNUSED).errors, (Errors{{CKPT_ERR_NOT_FOUND, "b"}}));
}

// The draws are worth nothing where they do not go.
TEST(Draws, ReachEveryDTypeKindOfShardAndFault) {
  std::set<uint32_t> dtypes, kinds, pairs;
  std::map<std::string, int> faults, seen;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const int ranks = static_cast<int>(seed % 4) + 1;
    const JobOptions options = DrawOptions(seed, ranks);
    SaveCase c = DrawSave(seed, ranks, options);
    for (const Tensor& t : c.model.tensors) {
      dtypes.insert(t.dtype);
      seen["scalar"] += t.shape.empty();
      seen["five dimensions"] += t.shape.size() == 5;
      seen["empty"] += Count(t.shape) == 0;
    }
    for (const Part& part : c.parts) {
      for (const Shard& s : part.shards) {
        kinds.insert(s.kind);
        seen["strided"] += !s.strides.empty();
        seen["broadcast"] += std::count(s.strides.begin(), s.strides.end(), 0) > 0;
        if (s.dtype != c.model.tensors[static_cast<size_t>(s.tensor)].dtype)
          pairs.insert(s.dtype << 16 ^ c.model.tensors[static_cast<size_t>(s.tensor)].dtype);
      }
      seen["renamed"] += !part.renames.empty();
      seen["tied"] += !part.aliases.empty();
    }
    faults[Perturb(seed, options, &c).kind] += 1;
  }
  EXPECT_EQ(dtypes.size(), DTypes().size());
  EXPECT_EQ(kinds.size(), 3u);
  EXPECT_GE(pairs.size(), 28u) << "of the 30 casts";
  faults.erase("");
  EXPECT_EQ(faults.size(), 9u) << testing::PrintToString(faults);
  for (const auto& [what, times] : seen) EXPECT_GT(times, 20) << what;
}

}  // namespace
}  // namespace oracle
