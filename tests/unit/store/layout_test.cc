// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <random>

#include "store/json_in.h"
#include "unit/store/fixture.h"

namespace ckpt {
namespace {

std::vector<FileLayout> Layout(std::vector<TensorDesc> tensors, LayoutOptions options = {},
                               const std::string& group = "model") {
  auto files = LayoutGroup(group, std::move(tensors), options);
  EXPECT_TRUE(files.ok()) << files.status().message();
  return files.ok() ? *files : std::vector<FileLayout>();
}

std::string JsonOf(const FileLayout& file) { return file.header.substr(8); }

uint64_t LengthOf(const FileLayout& file) {
  uint64_t n = 0;
  std::memcpy(&n, file.header.data(), 8);
  return n;
}

std::vector<std::string> NamesOf(const FileLayout& file) {
  std::vector<std::string> names;
  for (const PlacedTensor& t : file.tensors) names.push_back(t.desc.name);
  return names;
}

TEST(Layout, HeaderIsExactlyThis) {
  const auto files = Layout({Tensor("w", kF32, {2, 3}), Tensor("b", kBF16, {2})});
  ASSERT_EQ(files.size(), 1u);
  const std::string json = JsonOf(files[0]);
  EXPECT_EQ(json.substr(0, json.find_last_not_of(' ') + 1),
            R"({"__metadata__":{"format":"pt"},)"
            R"("b":{"data_offsets":[24,28],"dtype":"BF16","shape":[2]},)"
            R"("w":{"data_offsets":[0,24],"dtype":"F32","shape":[2,3]}})");
  EXPECT_EQ(LengthOf(files[0]), json.size());
  EXPECT_EQ(files[0].header.size(), 4096u);
  EXPECT_EQ(files[0].bytes, 4096u + 28u);
  EXPECT_EQ(files[0].name, "model.safetensors");
  EXPECT_EQ(files[0].group, "model");
}

TEST(Layout, OrdersByElementSizeThenName) {
  const auto files = Layout({Tensor("z", kU8, {3}), Tensor("b", kBF16, {1}), Tensor("a", kU8, {1}),
                             Tensor("y", kI64, {1}), Tensor("x", kF32, {1})});
  EXPECT_EQ(NamesOf(files[0]), (std::vector<std::string>{"y", "x", "b", "a", "z"}));
  uint64_t end = files[0].header.size();
  EXPECT_EQ(end % kHeaderAlign, 0u);
  for (const PlacedTensor& t : files[0].tensors) {
    EXPECT_EQ(t.offset, end);
    EXPECT_EQ(t.offset % t.desc.elem_bytes, 0u);
    end += t.desc.bytes;
  }
  EXPECT_EQ(end, files[0].bytes);
}

TEST(Layout, H06_AlwaysHasFormatPtAndTheUsersPairs) {
  LayoutOptions options;
  options.metadata = {{"k", "v"}, {"é\n", "\"quoted\""}};
  const auto files = Layout({Tensor("a", kU8, {1})}, options);
  auto json = ParseJsonObject(JsonOf(files[0]));
  ASSERT_OK(json.status());
  EXPECT_EQ((*json)["__metadata__"], Json({{"format", "pt"}, {"k", "v"}, {"é\n", "\"quoted\""}}));
  options.metadata = {{"format", "tf"}};
  EXPECT_CODE(kInvalidArgument, LayoutGroup("model", {}, options).status());
  options.metadata = {{"k", "\xff"}};
  EXPECT_CODE(kInvalidArgument, LayoutGroup("model", {}, options).status());
}

TEST(Layout, H07_WithoutTensorsIsAValidFile) {
  const auto files = Layout({});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].bytes, 4096u);
  auto parsed = ParseHeader(files[0].name, JsonOf(files[0]), files[0].bytes);
  ASSERT_OK(parsed.status());
  EXPECT_TRUE(parsed->tensors.empty());
}

TEST(Layout, H03_KeepsOddNames) {
  const std::vector<std::string> names = {
      "a\"b",    "a\\b",      "a\nb",     "a:b",     "\xf0\x9f\x98\x80",
      "Имя",     "e\xcc\x81", "\xc3\xa9", "a/~/foo", "..",
      "../../t", "con",       "Case",     "case",    "zz__metadata__"};
  std::vector<TensorDesc> tensors;
  for (const std::string& name : names) tensors.push_back(Tensor(name, kF32, {1}));
  const auto files = Layout(tensors);
  auto parsed = ParseHeader(files[0].name, JsonOf(files[0]), files[0].bytes);
  ASSERT_OK(parsed.status());
  EXPECT_EQ(NamesOf(*parsed), NamesOf(files[0]));
  auto sorted = names;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(NamesOf(*parsed), sorted);
}

TEST(Layout, G10_EmptyTensorsKeepTheirShapes) {
  const auto files =
      Layout({Tensor("a", kF32, {0}), Tensor("b", kF32, {2, 0}), Tensor("c", kF32, {0, 3}),
              Tensor("d", kF32, {}), Tensor("e", kU8, {})});
  auto parsed = ParseHeader(files[0].name, JsonOf(files[0]), files[0].bytes);
  ASSERT_OK(parsed.status());
  ASSERT_EQ(parsed->tensors.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(parsed->tensors[i].desc, files[0].tensors[i].desc);
}

TEST(Split, IsGreedyAndCountsTheWholeFile) {
  LayoutOptions options;
  options.max_file_bytes = 4096 + 100;
  const auto files = Layout({Tensor("a", kU8, {60}), Tensor("b", kU8, {40}), Tensor("c", kU8, {1}),
                             Tensor("d", kU8, {500}), Tensor("e", kU8, {0})},
                            options);
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(NamesOf(files[0]), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(NamesOf(files[1]), (std::vector<std::string>{"c"}));
  EXPECT_EQ(NamesOf(files[2]), (std::vector<std::string>{"d"}));  // larger than a file: its own
  EXPECT_EQ(NamesOf(files[3]), (std::vector<std::string>{"e"}));
  EXPECT_EQ(files[3].name, "model-00004-of-00004.safetensors");
  EXPECT_EQ(files[0].bytes, options.max_file_bytes);
}

TEST(Split, KeepsHeadersBelowTheirLimit) {
  EXPECT_EQ(LayoutOptions().max_header_bytes, 90'000'000u);
  LayoutOptions options;
  options.max_header_bytes = 9000;
  const std::string base(3000, 'n');
  const auto files = Layout(
      {Tensor("a" + base, kU8, {1}), Tensor("b" + base, kU8, {1}), Tensor("c" + base, kU8, {1})},
      options);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].tensors.size(), 2u);
  for (const FileLayout& file : files) EXPECT_LE(JsonOf(file).find_last_not_of(' '), 9000u);
  const TensorDesc huge = Tensor(std::string(9000, 'n'), kU8, {1});
  EXPECT_CODE(kLimit, LayoutGroup("model", {huge}, options).status());
  options.metadata = {{"k", std::string(9000, 'v')}};
  EXPECT_CODE(kLimit, LayoutGroup("model", {}, options).status());
}

TEST(Layout, DependsOnlyOnTheSetOfTensors) {
  std::vector<TensorDesc> tensors;
  for (int i = 0; i < 40; ++i) {
    const DType dtypes[] = {kF32, kBF16, kU8, kI64};
    tensors.push_back(Tensor(Cat("t", i), dtypes[i % 4], {i, 3}));
  }
  LayoutOptions options;
  options.max_file_bytes = 6000;
  const auto expected = Layout(tensors, options);
  EXPECT_GT(expected.size(), 1u);
  std::mt19937 random(1);
  for (int round = 0; round < 10; ++round) {
    std::shuffle(tensors.begin(), tensors.end(), random);
    const auto files = Layout(tensors, options);
    ASSERT_EQ(files.size(), expected.size());
    for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(files[i].header, expected[i].header);
    EXPECT_EQ(IndexJson(files), IndexJson(expected));
  }
}

TEST(Layout, RefusesTheSameNameTwice) {
  const Status status =
      LayoutGroup("model", {Tensor("w", kF32, {1}), Tensor("w", kU8, {1})}, {}).status();
  EXPECT_CODE(kInvalidArgument, status);
  EXPECT_EQ(status.cause().name, "w");
}

TEST(Index, H11_ListsEachStoredTensorOnce) {
  LayoutOptions options;
  options.max_file_bytes = 4096;
  const auto files = Layout({Tensor("b", kF32, {2}), Tensor("a", kF32, {1})}, options);
  EXPECT_EQ(IndexName("model"), "model.safetensors.index.json");
  EXPECT_EQ(IndexJson(files),
            "{\n  \"metadata\": {\n    \"total_size\": 12\n  },\n  \"weight_map\": {\n"
            "    \"a\": \"model-00001-of-00002.safetensors\",\n"
            "    \"b\": \"model-00002-of-00002.safetensors\"\n  }\n}\n");
}

TEST(Layout, OfBlobsIsOneFileNamedBlobs) {
  const auto files = Layout(
      {Tensor("rank/000003/rng", kU8, {16}, "blobs"), Tensor("shared/sampler", kU8, {8}, "blobs")},
      {}, "blobs");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "blobs.safetensors");
}

}  // namespace
}  // namespace ckpt
