// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "store/json_in.h"

#include "unit/store/fixture.h"

namespace ckpt {
namespace {

TEST(JsonIn, KeepsWholeNumbersOf64Bits) {
  auto json = ParseJsonObject(R"({"big": 18446744073709551615, "low": -9223372036854775808})");
  ASSERT_OK(json.status());
  JsonFields fields(*json, "test");
  EXPECT_EQ(fields.U64("big"), UINT64_MAX);
  EXPECT_EQ(fields.I64("low", INT64_MIN, 0), INT64_MIN);
  EXPECT_OK(fields.status());
}

TEST(JsonIn, H04_NamesADuplicateKeyAtAnyDepth) {
  for (const char* text : {R"({"w": 1, "w": 2})", R"({"a": {"w": 1, "b": [], "w": 1}})",
                           R"({"a": [{"w": 0, "\u0077": 1}]})"}) {
    auto json = ParseJsonObject(text);
    EXPECT_CODE(kCorrupt, json.status());
    EXPECT_EQ(json.status().cause().name, "w");
  }
}

TEST(JsonIn, LimitsDepth) {
  const auto nested = [](size_t n) {
    return "{\"a\":" + std::string(n - 1, '[') + std::string(n - 1, ']') + "}";
  };
  EXPECT_OK(ParseJsonObject(nested(kMaxJsonDepth)).status());
  EXPECT_CODE(kCorrupt, ParseJsonObject(nested(kMaxJsonDepth + 1)).status());
  EXPECT_CODE(kCorrupt, ParseJsonObject("{\"a\":" + std::string(1'000'000, '[')).status());
}

TEST(JsonIn, RefusesEverythingThatIsNotOneObject) {
  for (const char* text : {"", " {}", "[]", "{} {}", "{}x", "{", "{\"a\"}", "\xef\xbb\xbf{}",
                           "{\"a\": 1e999}", "{\"a\": \"\xff\"}", "{\"a\": NaN}", "{'a': 1}",
                           "{\"a\": \"\\ud800\"}", "{\"a\": 01}", "/**/{}"}) {
    EXPECT_CODE(kCorrupt, ParseJsonObject(text).status());
  }
}

TEST(JsonIn, PlacesNestedValuesWhereTheyBelong) {
  const std::string text = R"({"a":[[1,2],{"b":null,"c":[true,"x"]},[]],"d":-1.5,"e":{}})";
  auto json = ParseJsonObject(text);
  ASSERT_OK(json.status());
  EXPECT_EQ(JsonText(*json), text);
}

TEST(JsonFieldsOf, AnObjectReportTheFirstFault) {
  auto json = ParseJsonObject(R"({"s": "x", "n": -1, "f": 1.5, "u": 7})");
  ASSERT_OK(json.status());
  const auto fault = [&](const std::function<void(JsonFields&)>& read) {
    JsonFields fields(*json, "here");
    read(fields);
    EXPECT_CODE(kCorrupt, fields.status());
    return fields.status().message();
  };
  EXPECT_EQ(fault([](auto& f) {
              f.Str("gone");
              f.Str("n");
            }),
            "here: \"gone\" is missing");
  EXPECT_EQ(fault([](auto& f) { f.Str("u"); }), "here: \"u\" is not a string");
  EXPECT_EQ(fault([](auto& f) { f.U64("n"); }), "here: \"n\" is not a whole number from 0");
  EXPECT_EQ(fault([](auto& f) { f.I64("f", 0, 9); }), "here: \"f\" is not a whole number");
  EXPECT_EQ(fault([](auto& f) { f.I64("u", 8, 9); }), "here: \"u\" is 7, not 8 to 9");
  EXPECT_EQ(fault([](auto& f) { f.U64("u", 6); }), "here: \"u\" is 7, above 6");
  EXPECT_EQ(fault([](auto& f) { EXPECT_TRUE(f.Array("s").empty()); }), "here: \"s\" is not a list");
  EXPECT_EQ(fault([](auto& f) { EXPECT_TRUE(f.Object("s").empty()); }),
            "here: \"s\" is not an object");
}

}  // namespace
}  // namespace ckpt
