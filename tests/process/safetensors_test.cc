// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The tests' own reader refuses what it should; otherwise the process tests prove nothing.
#include "process/safetensors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "launch/launch.h"

namespace safetensors {
namespace {

using Json = nlohmann::json;

std::string FileOf(const Json& header, size_t data_bytes) {
  std::string text = header.dump();
  text.resize((text.size() + 8 + 4095) / 4096 * 4096 - 8, ' ');
  const uint64_t n = text.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + text + std::string(data_bytes, 'x');
}

Json Floats(std::vector<int64_t> shape, int64_t begin, int64_t end) {
  return {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, end}}};
}

class Reader : public testing::Test {
 protected:
  void Put(const Json& header, size_t data_bytes, const std::string& name = "model.safetensors") {
    WriteBytes(scratch_ / name, FileOf(header, data_bytes));
  }
  void PutIndex(const Json& weight_map, uint64_t total) {
    const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
    WriteBytes(scratch_ / "model.safetensors.index.json", index.dump());
  }
  File ReadIt() { return Read(scratch_ / "model.safetensors"); }
  launch::Scratch scratch_;
};

TEST_F(Reader, OpensAGoodFolder) {
  Put({{"a", Floats({2, 3}, 0, 24)},
       {"e", Floats({0, 3}, 24, 24)},
       {"b", Floats({}, 24, 28)},
       {"__metadata__", {{"format", "pt"}}}},
      28);
  PutIndex({{"a", "model.safetensors"}, {"b", "model.safetensors"}, {"e", "model.safetensors"}},
           28);
  const Group g = Open(scratch_.path());
  EXPECT_EQ(g.tensors.at("a").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(g.tensors.at("b").Floats().size(), 1u);
  EXPECT_EQ(ReadIt().metadata.at("format"), "pt");
}

TEST_F(Reader, RefusesHolesOverlapsAndBytesAfterTheLast) {
  Put({{"a", Floats({1}, 0, 4)}, {"b", Floats({1}, 8, 12)}}, 12);
  EXPECT_THROW(ReadIt(), std::runtime_error);
  Put({{"a", Floats({2}, 0, 8)}, {"b", Floats({1}, 4, 8)}}, 8);
  EXPECT_THROW(ReadIt(), std::runtime_error);
  Put({{"a", Floats({1}, 0, 4)}}, 8);
  EXPECT_THROW(ReadIt(), std::runtime_error);
  Put({{"a", Floats({2}, 0, 4)}}, 4);  // padding or a stub
  EXPECT_THROW(ReadIt(), std::runtime_error);
}

TEST_F(Reader, RefusesMetadataThatAreNotStrings) {
  Put({{"__metadata__", {{"format", 1}}}}, 0);
  EXPECT_ANY_THROW(ReadIt());
}

TEST_F(Reader, RefusesAnIndexThatPromisesTooMuchTooLittleOrAnotherSize) {
  Put({{"a", Floats({1}, 0, 4)}, {"b", Floats({1}, 4, 8)}}, 8);
  const std::string file = "model.safetensors";
  PutIndex({{"a", file}, {"b", file}, {"c", file}}, 8);
  EXPECT_THROW(Open(scratch_.path()), std::runtime_error);
  PutIndex({{"a", file}}, 8);
  EXPECT_THROW(Open(scratch_.path()), std::runtime_error);
  PutIndex({{"a", file}, {"b", file}}, 12);
  EXPECT_THROW(Open(scratch_.path()), std::runtime_error);
}

}  // namespace
}  // namespace safetensors
