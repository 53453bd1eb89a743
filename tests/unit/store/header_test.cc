// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "unit/store/fixture.h"

namespace ckpt {
namespace {

// A file that ends where its `data` bytes do.
Result<FileLayout> Parse(const std::string& json, uint64_t data) {
  return ParseHeader("model.safetensors", json, 8 + json.size() + data);
}

// The message, after checking the code and that the file is named.
std::string Refused(const std::string& json, uint64_t data, std::string tensor = "") {
  auto layout = Parse(json, data);
  EXPECT_CODE(kCorrupt, layout.status());
  EXPECT_EQ(layout.status().cause().path, "model.safetensors");
  EXPECT_EQ(layout.status().cause().name, tensor) << layout.status().message();
  return layout.status().message();
}

TEST(ForeignHeader, NeedsNeitherMetadataNorOurPadding) {
  auto layout = Parse(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  ASSERT_OK(layout.status());
  ASSERT_EQ(layout->tensors.size(), 1u);
  EXPECT_EQ(layout->tensors[0].desc, Tensor("w", kF32, {2}));
  EXPECT_EQ(layout->tensors[0].offset, layout->bytes - 8);
  EXPECT_EQ(layout->header.size(), layout->bytes - 8);
}

TEST(ForeignHeader, IsSortedByOffset) {
  auto layout = Parse(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                      R"("b":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
                      R"("c":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}   )",
                      2);
  ASSERT_OK(layout.status());
  EXPECT_EQ(layout->tensors[0].desc.name, "b");
  EXPECT_EQ(layout->tensors[1].desc.name, "c");
  EXPECT_EQ(layout->tensors[2].desc.name, "a");
}

TEST(ForeignHeader, H03_ANulInANameIsReadAndShownEscaped) {
  auto layout = Parse(R"({"a\u0000b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1);
  ASSERT_OK(layout.status());
  EXPECT_EQ(layout->tensors[0].desc.name, std::string("a\0b", 3));
  Refused(R"({"a\u0000b":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})", 1, "a\\u0000b");
}

TEST(ForeignHeader, H04_ADuplicateNameIsRefusedByName) {
  const std::string message = Refused(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                      R"("w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                      2, "w");
  EXPECT_NE(message.find("twice"), std::string::npos) << message;
}

TEST(ForeignHeader, OverlapsAndHolesAreRefused) {
  Refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
          R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          3, "b");
  Refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
          R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
          5, "b");
  Refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, "a");
  Refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3);       // bytes behind
  Refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1, "a");  // file too short
}

TEST(ForeignHeader, SizesMustFitDtypeAndShape) {
  const auto with = [](const std::string& shape, const std::string& range) {
    return R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + range + "}}";
  };
  for (const char* range : {"[0,9]", "[8,0]", "[0]", "[0,8,9]", "[-1,7]", "[0,8.0]", "[\"0\",8]",
                            "[0,18446744073709551616]", "{}", "null"}) {
    Refused(with("[2]", range), 8, "w");
  }
  for (const char* shape : {"[-2]", "[2.5]", "[\"2\"]", "2", "[9223372036854775808]",
                            "[4294967296,4294967296]", "[4611686018427387904]", "[[2]]"}) {
    Refused(with(shape, "[0,8]"), 8, "w");
  }
}

TEST(ForeignHeader, OtherNonsenseIsRefused) {
  for (const char* json :
       {"", "{", "[]", "null", R"({"__metadata__":[]})", R"({"__metadata__":{"a":1}})"}) {
    Refused(json, 0);
  }
  for (const char* entry : {"1", "{}", R"({"dtype":"F32","shape":[0]})",
                            R"({"dtype":"f32","shape":[0],"data_offsets":[0,0]})",
                            R"({"dtype":7,"shape":[0],"data_offsets":[0,0]})"}) {
    Refused(std::string(R"({"w":)") + entry + "}", 0, "w");
  }
  EXPECT_CODE(kCorrupt, ParseHeader("f", "{}", 9).status());  // longer than the file
}

TEST(ForeignHeader, G06_F4HasTwoElementsInAByte) {
  auto layout = Parse(R"({"w":{"dtype":"F4","shape":[3,4],"data_offsets":[0,6]}})", 6);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_EQ(LogicalShape(layout->tensors[0].desc), (Dims{3, 4}));
  Refused(R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "w");
}

TEST(ForeignHeader, ADtypeThatCannotBeReadIsUnsupportedByName) {
  auto layout = Parse(R"({"w":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}})", 3);
  EXPECT_CODE(kUnsupported, layout.status());
  EXPECT_SAYS(layout.status(), "tensor w");
  EXPECT_SAYS(layout.status(), "F6_E2M3");
}

TEST(ForeignHeader, AnyDamageIsAnErrorOrAnotherValidHeader) {
  const auto files = LayoutGroup("model", {Tensor("w", kF32, {2, 3}), Tensor("b", kBF16, {2})}, {});
  ASSERT_TRUE(files.ok());
  const FileLayout& file = files->front();
  std::string json = file.header.substr(8);
  json.resize(json.find_last_not_of(' ') + 1);
  for (size_t n = 0; n < json.size(); ++n) {
    EXPECT_CODE(kCorrupt, ParseHeader("f", json.substr(0, n), 8 + n + 28).status());
  }
  for (size_t i = 0; i < json.size(); ++i) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string damaged = json;
      damaged[i] = static_cast<char>(byte);
      auto layout = ParseHeader("f", damaged, 8 + json.size() + 28);
      if (!layout.ok()) continue;
      uint64_t sum = 0;  // what was accepted holds together
      for (const PlacedTensor& t : layout->tensors) sum += t.desc.bytes;
      ASSERT_EQ(sum, 28u) << damaged;
    }
  }
}

}  // namespace
}  // namespace ckpt
