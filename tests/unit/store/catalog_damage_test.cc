// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "io/crc32c.h"
#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class CatalogDamageTest : public RootTest {
 protected:
  void SetUp() override { ASSERT_OK(Save(Take(), {})); }
  // The status of the catalog while `file` has `bytes`.
  Status With(const std::string& file, const std::string& bytes) {
    const std::string path = InStep(1, file), good = ReadAll(path);
    WriteAll(path, bytes);
    const Status status = ReadCatalog(StepDir(1)).status();
    WriteAll(path, good);
    return status;
  }
  // Rewrites the record with `change` and a right checksum.
  Status WithRecord(const std::function<void(CommitRecord&)>& change) {
    auto record = DecodeRecord(ReadAll(InStep(1, "ckpt.json")));
    EXPECT_TRUE(record.ok());
    change(*record);
    return With("ckpt.json", EncodeRecord(*record));
  }
};

TEST_F(CatalogDamageTest, C12_EveryChangedByteOfTheHeaderIsCorruptWithFileNamed) {
  const std::string good = ReadAll(InStep(1, "model.safetensors"));
  const size_t end = good.find_last_not_of(' ', 4095) + 40;  // into the padding
  for (size_t i = 0; i < end; ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    const Status status = With("model.safetensors", damaged);
    ASSERT_EQ(status.code(), Code::kCorrupt) << i;
    ASSERT_EQ(status.cause().path, "model.safetensors");
  }
}

TEST_F(CatalogDamageTest, C12_AChangedByteOfATensorInTheFirstBlockNamesTheTensors) {
  std::string damaged = ReadAll(InStep(1, "model.safetensors"));
  damaged.back() ^= 1;
  const Status status = With("model.safetensors", damaged);
  EXPECT_CODE(kCorrupt, status);
  EXPECT_SAYS(status, "file model.safetensors: ");
  EXPECT_SAYS(status, "tensor a, b");
  EXPECT_EQ(status.cause().name, "a");
}

TEST_F(CatalogDamageTest, C12_ChangedBytesOfIndexSideFileAndRecordAreCorrupt) {
  for (const char* file : {"model.safetensors.index.json", "config.json", "ckpt.json"}) {
    const std::string good = ReadAll(InStep(1, file));
    // record_test.cc changes every byte of the record.
    const size_t stride = std::string(file) == "ckpt.json" ? 7 : 1;
    for (size_t i = 0; i < good.size(); i += stride) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
      const Status status = With(file, damaged);
      ASSERT_EQ(status.code(), Code::kCorrupt) << file << " " << i;
      ASSERT_NE(status.message().find(file), std::string::npos);
    }
  }
}

TEST_F(CatalogDamageTest, B11_EveryTruncationOfTheRecordIsCorruptNotNone) {
  const std::string good = ReadAll(InStep(1, "ckpt.json"));
  for (size_t n = 0; n < good.size(); n += 5) {
    EXPECT_CODE(kCorrupt, With("ckpt.json", good.substr(0, n)));
  }
}

// A record and an index that are sound, but do not go with the files.
TEST_F(CatalogDamageTest, H11_AnIndexThatSaysOtherThanTheHeadersIsCorruptByTensor) {
  const std::string name = "model.safetensors.index.json", good = ReadAll(InStep(1, name));
  const auto with_index = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    WriteAll(InStep(1, name), text);
    const Status status = WithRecord([&](CommitRecord& r) {
      r.index_files[0].bytes = text.size();
      r.index_files[0].crc32c = Crc32c(0, text.data(), text.size());
    });
    WriteAll(InStep(1, name), good);
    EXPECT_CODE(kCorrupt, status);
    return status;
  };
  EXPECT_EQ(with_index("\"a\": ", "\"z\": ").cause().name, "a");
  EXPECT_EQ(with_index("\"a\": \"model", "\"a\": \"mozel").cause().name, "a");
  EXPECT_EQ(with_index("\"a\": ", "\"0\": \"model.safetensors\", \"a\": ").cause().name, "0");
  EXPECT_SAYS(with_index("weight_map", "weight_mop"), "weight_map");
  EXPECT_SAYS(with_index("{", "["), name);
}

TEST_F(CatalogDamageTest, H11_AGroupNeedsItsIndexAndAnIndexItsGroup) {
  const Status without = WithRecord([](CommitRecord& r) { r.index_files.clear(); });
  EXPECT_CODE(kCorrupt, without);
  EXPECT_SAYS(without, "group model has no index file");
  const Status other = WithRecord([](CommitRecord& r) {
    r.side_files.clear();
    r.index_files.push_back(r.index_files[0]);
    r.index_files[1] = {"config.json", 11, 0};
  });
  EXPECT_CODE(kCorrupt, other);
}

TEST_F(CatalogDamageTest, AHeaderLengthOutOfRangeIsCorruptWhateverItsChecksum) {
  std::string bytes = ReadAll(InStep(1, "model.safetensors"));
  for (const char high : {'\x01', '\x7f', '\xff'}) {
    bytes[6] = high;
    WriteAll(InStep(1, "model.safetensors"), bytes);
    const Status status = WithRecord(
        [&](CommitRecord& r) { r.files[0].crc32c = {Crc32c(0, bytes.data(), bytes.size())}; });
    EXPECT_CODE(kCorrupt, status);
    EXPECT_SAYS(status, "file model.safetensors: header of");
  }
}

TEST_F(CatalogDamageTest, LinksFoldersAndPipesInPlaceOfFilesAreNotFollowed) {
  for (const char* file : {"ckpt.json", "model.safetensors", "config.json"}) {
    const std::string path = InStep(1, file), aside = At("aside");
    ASSERT_EQ(rename(path.c_str(), aside.c_str()), 0);
    ASSERT_EQ(symlink(aside.c_str(), path.c_str()), 0);
    EXPECT_FALSE(ReadCatalog(StepDir(1)).ok());
    ASSERT_EQ(unlink(path.c_str()), 0);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_FALSE(ReadCatalog(StepDir(1)).ok());
    ASSERT_EQ(unlink(path.c_str()), 0);
    ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    EXPECT_FALSE(ReadCatalog(StepDir(1)).ok());
    ASSERT_EQ(rmdir(path.c_str()), 0);
    ASSERT_EQ(rename(aside.c_str(), path.c_str()), 0);
  }
  EXPECT_OK(ReadCatalog(StepDir(1)).status());
}

}  // namespace
}  // namespace ckpt
