// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "io/crc32c.h"
#include "store/crc_table.h"
#include "store/json_in.h"
#include "unit/store/fixture.h"

namespace ckpt {
namespace {

CommitRecord Sample() {
  CommitRecord r;
  r.step = 100;
  r.tag = "tag \"x\"\n";
  r.lineage = "lineage";
  r.library = "ckpt 0.1.0";
  r.layout_note = "tp=2,dp=4";
  r.sequence = UINT64_MAX - 1;  // above 2^53: must survive
  r.created_unix_ns = 1'700'000'000'123'456'789;
  r.world_size = 4;
  r.files = {{"model.safetensors", 3 * kCrcBlock + 1, {1, 2, 0xffffffff, 4}, {{0, 5}, {3, 7}}},
             {"blobs.safetensors", 4096, {9}, {}}};
  r.side_files = {{"config.json", 12, 0x01020304}};
  r.index_files = {{"model.safetensors.index.json", 99, 0}};
  r.groups = {{"model", {"model.safetensors"}}, {"blobs", {"blobs.safetensors"}}};
  r.blobs = {{"rng", BlobScope::kPerRank, 3, 16}, {"sampler", BlobScope::kShared, -1, 8}};
  r.known = {{5, "step-000000000090"}};
  return r;
}

// The text with its checksum made right again.
std::string Sealed(std::string text) {
  text.replace(text.size() - 11, 8, "00000000");
  return text.replace(text.size() - 11, 8, CrcText(Crc32c(0, text.data(), text.size())));
}

// The sample with one piece of text replaced, sealed again.
std::string Changed(const std::string& from, const std::string& to) {
  std::string text = EncodeRecord(Sample());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return Sealed(text.replace(at, from.size(), to));
}

TEST(Record, IsReadBackWhole) {
  const CommitRecord r = Sample();
  auto back = DecodeRecord(EncodeRecord(r));
  ASSERT_OK(back.status());
  EXPECT_EQ(EncodeRecord(*back), EncodeRecord(r));
  EXPECT_EQ(back->sequence, r.sequence);
  EXPECT_EQ(back->created_unix_ns, r.created_unix_ns);
  EXPECT_EQ(back->tag, r.tag);
  EXPECT_EQ(back->layout_note, "tp=2,dp=4");
  EXPECT_EQ(back->files[0].crc32c, r.files[0].crc32c);
  EXPECT_EQ(back->files[0].writers[1].bytes, 7u);
  EXPECT_EQ(back->blobs[1].rank, -1);
  EXPECT_EQ(back->known, r.known);
}

TEST(Record, HasExactlyTheKeysOfTheFormatSorted) {
  const std::string text = EncodeRecord(Sample());
  auto json = ParseJsonObject(text);
  ASSERT_OK(json.status());
  std::vector<std::string> keys;
  size_t at = 0;
  for (const auto& [key, value] : json->items()) {
    keys.push_back(key);
    const size_t found = text.find("\"" + key + "\": ");
    EXPECT_GT(found, at) << key;
    at = found;
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"aliases", "blobs", "created_unix_ns", "dtypes",
                                            "files", "format", "groups", "index_files", "known",
                                            "library", "lineage", "sequence", "side_files", "step",
                                            "tag", "version", "world", "~crc32c"}));
}

TEST(Record, EndsInItsChecksum) {
  const std::string text = EncodeRecord(Sample());
  const std::string tail = text.substr(text.size() - 23);
  EXPECT_TRUE(tail.starts_with("\"~crc32c\": \"")) << tail;
  EXPECT_TRUE(tail.ends_with("\"}\n")) << tail;
  EXPECT_EQ(Sealed(text), text);
}

TEST(Record, EveryTruncationIsCorrupt) {
  const std::string text = EncodeRecord(Sample());
  for (size_t n = 0; n < text.size(); ++n) {
    EXPECT_CODE(kCorrupt, DecodeRecord(text.substr(0, n)).status());
  }
  EXPECT_CODE(kCorrupt, DecodeRecord(text + "\n").status());
}

TEST(Record, EveryChangedByteIsCorrupt) {
  const std::string text = EncodeRecord(Sample());
  for (size_t i = 0; i < text.size(); ++i) {
    for (int flip = 1; flip < 256; flip += i % 7 == 0 ? 1 : 31) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      ASSERT_EQ(DecodeRecord(damaged).status().code(), Code::kCorrupt) << i << " ^ " << flip;
    }
  }
}

TEST(Record, EveryChangedByteThatHasARightChecksumIsSafe) {
  const std::string text = EncodeRecord(Sample());
  for (size_t i = 0; i + 23 < text.size(); ++i) {
    for (const char byte : {'0', '9', '"', '}', '[', ',', '-', '\0', '\xff', ' '}) {
      std::string damaged = text;
      damaged[i] = byte;
      auto record = DecodeRecord(Sealed(damaged));
      if (record.ok()) continue;
      const Code code = record.status().code();
      ASSERT_TRUE(code == Code::kCorrupt || code == Code::kUnsupported) << damaged;
    }
  }
}

TEST(Record, AHigherVersionIsUnsupportedByName) {
  const Status status = DecodeRecord(Changed("\"version\": 1", "\"version\": 2")).status();
  EXPECT_CODE(kUnsupported, status);
  EXPECT_SAYS(status, "version 2");
  EXPECT_CODE(kCorrupt, DecodeRecord(Changed("\"version\": 1", "\"version\": 0")).status());
  EXPECT_CODE(kCorrupt,
              DecodeRecord(Changed("\"format\": \"ckpt\"", "\"format\": \"x\"")).status());
}

TEST(Record, KeysOfALaterMinorVersionAreSkipped) {
  EXPECT_OK(DecodeRecord(Changed("\"tag\"", "\"sub\": 1,\n\"tag\"")).status());
}

TEST(Record, ADtypeOfANewerLibraryIsUnsupportedByName) {
  const std::string dtypes = "\"dtypes\": {\"model\":{\"w\":66047}}";  // code 255
  const Status status = DecodeRecord(Changed("\"dtypes\": {}", dtypes)).status();
  EXPECT_CODE(kUnsupported, status);
  EXPECT_SAYS(status, "tensor w");
}

TEST(Record, AliasesAndDtypesComeBack) {
  CommitRecord record = Sample();
  record.aliases["model"]["head"] = "embed";
  record.dtypes["model"]["z"] = MakeDType(5, 128);
  const auto decoded = DecodeRecord(EncodeRecord(record));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(decoded->aliases, record.aliases);
  EXPECT_EQ(decoded->dtypes, record.dtypes);
}

TEST(Record, IsStrictAboutEveryMember) {
  const std::pair<const char*, const char*> changes[] = {
      {"\"step\": 100", "\"step\": -1"},
      {"\"step\": 100", "\"step\": \"100\""},
      {"\"step\": 100", "\"step\": 1e2"},
      {"\"step\": 100", "\"step\": 9223372036854775808"},
      {"\"ranks\":4", "\"ranks\":0"},
      {"\"ranks\":4", "\"ranks\":3"},  // a blob and a writer of rank 3
      {"\"sequence\": 18446744073709551614", "\"sequence\": 18446744073709551616"},
      {"\"tag\": ", "\"tah\": "},
      {"\"bytes\":3145729", "\"bytes\":3145728"},  // three checksums, not four
      {"\"bytes\":3145729", "\"bytes\":18446744073709551615"},
      {"\"crc_block\":1048576", "\"crc_block\":524288"},
      {"\"name\":\"config.json\"", "\"name\":\"../config.json\""},
      {"\"name\":\"config.json\"", "\"name\":\"/etc/passwd\""},
      {"\"name\":\"config.json\"", "\"name\":\".hidden\""},
      {"\"name\":\"config.json\"", "\"name\":\"ckpt.json\""},
      {"\"name\":\"config.json\"", "\"name\":\"model.safetensors\""},  // twice
      {"\"crc32c\":\"01020304\"", "\"crc32c\":\"0102030G\""},
      {"\"blobs\":[\"blobs.safetensors\"]", "\"blobs\":[\"other.safetensors\"]"},
      {"\"blobs\":[\"blobs.safetensors\"]", "\"blobs\":[]"},
      {"\"blobs\":[\"blobs.safetensors\"]", "\"b.c\":[\"blobs.safetensors\"]"},
      {"\"blobs\":[\"blobs.safetensors\"],", ""},  // a file in no group
      {"\"scope\":\"shared\"", "\"scope\":\"all\""},
      {"\"scope\":\"shared\"", "\"scope\":\"per_rank\""},  // without a rank
      {"\"folder\":\"step-000000000090\"", "\"folder\":\"../root\""},
  };
  for (const auto& [from, to] : changes) {
    SCOPED_TRACE(to);
    EXPECT_CODE(kCorrupt, DecodeRecord(Changed(from, to)).status());
  }
}

TEST(CrcTable, IsBase64OfLittleEndianWords) {
  EXPECT_EQ(EncodeCrcTable({}), "");
  EXPECT_EQ(EncodeCrcTable({0x04030201}), "AQIDBA==");
  EXPECT_EQ(EncodeCrcTable({1, 0xffffffff}), "AQAAAP////8=");
  EXPECT_EQ(EncodeCrcTable({1, 2, 3}), "AQAAAAIAAAADAAAA");
}

TEST(CrcTable, HasOneSpelling) {
  const std::vector<uint32_t> one = {0x04030201};
  EXPECT_EQ(DecodeCrcTable("AQIDBA==", 1), one);
  for (const char* text :
       {"AQIDBB==", "AQIDBA=", "AQIDBA", "AQIDBA=A", "AQ DBA==", "=QIDBA==", "AQIDBA==AAAA", ""}) {
    EXPECT_EQ(DecodeCrcTable(text, 1), std::nullopt) << text;
  }
  EXPECT_EQ(DecodeCrcTable("AQIDBA==", 2), std::nullopt);
  EXPECT_EQ(DecodeCrcTable("", UINT64_MAX), std::nullopt);
}

TEST(CrcText, IsEightLowerCaseDigits) {
  EXPECT_EQ(CrcText(0xABC), "00000abc");
  EXPECT_EQ(ParseCrcText("00000abc"), 0xABCu);
  for (const char* text : {"00000ABC", "0000abc", "000000abc", "0000 abc", "-0000abc"}) {
    EXPECT_EQ(ParseCrcText(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace ckpt
