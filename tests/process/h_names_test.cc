// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES.md section H, names: they never become paths (H01) and are kept as given (H03).
#include <cstdio>

#include "process/process.h"

namespace ckpt_test {
namespace {

using Names = ForAnyRanks;
INSTANTIATE_TEST_SUITE_P(K09, Names, testing::Values(1, 2), RankCount);

// Saves one scalar-like tensor per name from all ranks, checks files and a load.
void RoundTrip(int ranks, const std::vector<std::string>& names, const Scratch& scratch) {
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = ranks, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    State state(ctx);
    std::vector<std::vector<float>> data;
    for (size_t k = 0; k < names.size(); ++k) data.push_back(Values(3, static_cast<float>(10 * k)));
    for (size_t k = 0; k < names.size(); ++k) state.Whole(names[k], {3}, data[k]);
    EXPECT_OK(Save(ctx, state, 1));
    for (auto& d : data) d = std::vector<float>(Fill(3));
    State into(ctx);
    for (size_t k = 0; k < names.size(); ++k) into.Whole(names[k], {3}, data[k]);
    EXPECT_OK(Load(ctx, into));
    for (size_t k = 0; k < names.size(); ++k)
      EXPECT_EQ(data[k], Values(3, static_cast<float>(10 * k))) << names[k];
  });
  ASSERT_TRUE(r.ok()) << r.report();
  const auto group = safetensors::Open(StepPath(root, 1));
  EXPECT_EQ(group.tensors.size(), names.size());
  for (size_t k = 0; k < names.size(); ++k) {
    ASSERT_TRUE(group.tensors.count(names[k])) << names[k];
    EXPECT_EQ(group.tensors.at(names[k]).Floats(), Values(3, static_cast<float>(10 * k)));
  }
  EXPECT_EQ(List(StepPath(root, 1)), (std::set<std::string>{"ckpt.json", "model.safetensors",
                                                            "model.safetensors.index.json"}));
  EXPECT_EQ(List(scratch.path()), std::set<std::string>{"root"});
  ExpectNoLeftovers(root);
}

// Only the last rank gives the name; all save.
void ExpectRefused(int ranks, const std::string& name) {
  const int last = ranks - 1;
  Scratch scratch;
  const Result r = launch::Run({.ranks = ranks, .deadline_s = 30}, [&](Rank& rank) {
    Ctx ctx({.root = scratch / "root"});
    ASSERT_INIT(ctx);
    State state(ctx);
    std::vector<float> data = Values(3), other = Values(3);
    state.Whole("good", {3}, data);
    if (rank.is(last)) {
      const Outcome added = state.TryAdd({.name = name, .shape = {3}, .data = other.data()});
      EXPECT_STATUS(added, CKPT_ERR_INVALID_ARGUMENT);
      EXPECT_SAYS(added, "name");
    }
    const Outcome o = Save(ctx, state, 1);
    EXPECT_STATUS(o, CKPT_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(o.cause.rank, last) << o;
    Publish(rank, "refused", o);
    State clean(ctx);
    clean.Whole("good", {3}, data);
    rank.Barrier("again");
    EXPECT_OK(Save(ctx, clean, 2));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  ExpectSame(r, "refused");
}

TEST_P(Names, H01_NamesNeverBecomePaths) {
  Scratch scratch;
  RoundTrip(GetParam(),
            {"a/~/foo", "x/y", "..", ".", "../../t", "/abs", "a.b", "con", "Case", "case",
             "ckpt.json", "model.safetensors"},
            scratch);
}

TEST_P(Names, H01_AnEmptyNameIsRefusedOnAllRanks) { ExpectRefused(GetParam(), ""); }
TEST_P(Names, H01_TheNameOfTheMetadataIsRefusedOnAllRanks) {
  ExpectRefused(GetParam(), "__metadata__");
}

TEST_P(Names, H03_OddCharactersAreKeptAsGiven) {
  Scratch scratch;
  RoundTrip(GetParam(),
            {"quote\"", "back\\slash", "new\nline", "colon:", "tab\t", "\x01\x1f\x7f",
             "emoji \xF0\x9F\x98\x80", "\xD0\x96\xD0\xB8", "caf\xC3\xA9", "cafe\xCC\x81", "\\u0041",
             "{}[],"},
            scratch);
}

TEST_P(Names, H03_BadUtf8IsRefusedOnAllRanks) { ExpectRefused(GetParam(), "\xFF\xFE"); }
TEST_P(Names, H03_AnOverlongEncodingIsRefusedOnAllRanks) { ExpectRefused(GetParam(), "a\xC0\xAF"); }
TEST_P(Names, H03_ASurrogateIsRefusedOnAllRanks) { ExpectRefused(GetParam(), "a\xED\xA0\x80"); }

uint32_t Crc32c(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

std::string Hex(uint32_t crc) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc);
  return text;
}

// Base64 of the four little-endian bytes: the table of a file of one block.
std::string Base64(uint32_t crc) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const uint64_t bits = (uint64_t{__builtin_bswap32(crc)} << 16);
  std::string text;
  for (int shift = 42; shift > 6; shift -= 6) text += digits[bits >> shift & 63];
  return text + "==";
}

void Replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

// Turns the name a U+0001 b of a committed step into a U+0000 b, which C cannot pass to the
// library but another writer can put into a file, and mends the checksums.
void PutNulIntoTheName(const std::string& step) {
  std::string record = safetensors::ReadBytes(step + "/ckpt.json");
  for (const char* file : {"/model.safetensors", "/model.safetensors.index.json"}) {
    const std::string before = safetensors::ReadBytes(step + file);
    std::string after = before;
    Replace(after, "a\\u0001b", "a\\u0000b");
    safetensors::WriteBytes(step + file, after);
    const auto text = std::string(file) == "/model.safetensors" ? Base64 : Hex;
    Replace(record, text(Crc32c(before)), text(Crc32c(after)));
  }
  const size_t at = record.size() - std::string("xxxxxxxx\"}\n").size();
  record.replace(at, 8, "00000000");
  record.replace(at, 8, Hex(Crc32c(record)));
  safetensors::WriteBytes(step + "/ckpt.json", record);
}

TEST(ForeignNames, H03_AForeignNameWithANulIsReadByIndexAndShownEscaped) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result saved = launch::Run({}, [&](Rank&) {
    Ctx ctx({.root = root});
    ASSERT_INIT(ctx);
    std::vector<float> data = Values(3);
    State state(ctx);
    state.Whole(
        "a\x01"
        "b",
        {3}, data);
    EXPECT_OK(Save(ctx, state, 1));
  });
  ASSERT_TRUE(saved.ok()) << saved.report();
  PutNulIntoTheName(StepPath(root, 1));
  const Result r = launch::Run({}, [&](Rank&) {
    ckpt_reader* reader = nullptr;
    ckpt_error* error = nullptr;
    const ckpt_status status = Lib().ckpt_open(root.c_str(), CKPT_LOAD_STEP, 1, &reader, &error);
    EXPECT_OK(Take(status, error));
    ASSERT_NE(reader, nullptr);
    ckpt_tensor_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(Lib().ckpt_reader_tensor(reader, 0, &info), CKPT_OK);
    EXPECT_STREQ(info.name, "a\\u0000b");
    EXPECT_EQ(info.bytes, 12u);
    info.struct_size = sizeof info;
    EXPECT_EQ(Lib().ckpt_reader_tensor(reader, 1, &info), CKPT_ERR_NOT_FOUND);
    EXPECT_EQ(Lib().ckpt_reader_verify(reader, nullptr, nullptr, nullptr), CKPT_OK);
    Lib().ckpt_reader_free(reader);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

}  // namespace
}  // namespace ckpt_test
