// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>

#include "io/crc32c.h"
#include "unit/store/fixture.h"

namespace ckpt {
namespace {

class CatalogTest : public RootTest {
 protected:
  void SaveStep(SaveSpec spec = {}) { ASSERT_OK(Save(Take(), spec)); }
};

TEST_F(CatalogTest, HoldsRecordAndTensors) {
  SaveStep({.step = 7});
  auto c = ReadCatalog(StepDir(7));
  ASSERT_OK(c.status());
  EXPECT_EQ(c->folder, "step-000000000007");
  const std::string text = ReadAll(InStep(7, "ckpt.json"));
  EXPECT_EQ(c->record_crc32c, Crc32c(0, text.data(), text.size()));
  ASSERT_EQ(c->files.size(), 1u);
  ASSERT_EQ(c->files[0].tensors.size(), 2u);
  EXPECT_EQ(c->files[0].tensors[0].desc, Tensor("a", kF32, {4, 3}));
  EXPECT_EQ(c->files[0].tensors[0].offset, 4096u);
  EXPECT_TRUE(c->files[0].header.empty());
}

TEST_F(CatalogTest, CrossesTheWire) {
  SaveStep({.max_file_bytes = 4096});
  auto c = ReadCatalog(StepDir(1));
  ASSERT_OK(c.status());
  ASSERT_EQ(c->files.size(), 2u);
  auto back = DecodeCatalog(EncodeCatalog(*c));
  ASSERT_OK(back.status());
  EXPECT_EQ(EncodeCatalog(*back), EncodeCatalog(*c));
  EXPECT_EQ(back->folder, c->folder);
  EXPECT_EQ(back->record_crc32c, c->record_crc32c);
  EXPECT_EQ(back->files[1].tensors[0].desc, c->files[1].tensors[0].desc);
  EXPECT_EQ(back->files[1].group, "model");
}

TEST_F(CatalogTest, DamageOnTheWireIsAnErrorNeverACrash) {
  SaveStep();
  auto c = ReadCatalog(StepDir(1));
  ASSERT_OK(c.status());
  const Bytes bytes = EncodeCatalog(*c);
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_CODE(kComm, DecodeCatalog(std::string_view(bytes).substr(0, n)).status());
  }
  EXPECT_CODE(kComm, DecodeCatalog(bytes + "x").status());
  for (size_t i = 0; i < bytes.size(); ++i) {
    Bytes damaged = bytes;
    damaged[i] = static_cast<char>(~damaged[i]);
    (void)DecodeCatalog(damaged).ok();
  }
}

TEST_F(CatalogTest, AFolderWithoutRecordIsNotFound) {
  SaveStep();
  ASSERT_EQ(unlink(InStep(1, "ckpt.json").c_str()), 0);
  const Status status = ReadCatalog(StepDir(1)).status();
  EXPECT_CODE(kNotFound, status);
  EXPECT_SAYS(status, "has no ckpt.json");
}

TEST_F(CatalogTest, ACopiedFolderIsNotTheStepOfItsNewName) {
  SaveStep({.step = 1});
  ASSERT_EQ(rename(At(StepFolder(1)).c_str(), At(StepFolder(2)).c_str()), 0);
  const Status status = ReadCatalog(StepDir(2)).status();
  EXPECT_CODE(kCorrupt, status);
  EXPECT_SAYS(status, "record of step 1");
  // Under a name that is no step's it is what its record says: somebody moved it out of the root.
  ASSERT_EQ(rename(At(StepFolder(2)).c_str(), At("best").c_str()), 0);
  auto moved = ReadCatalog(*Root().OpenDir("best"));
  ASSERT_OK(moved.status());
  EXPECT_EQ(moved->folder, "best");
}

TEST_F(CatalogTest, C02_K10_EveryFileMissingShortOrLongIsCorruptByName) {
  SaveStep();
  for (const char* file : {"model.safetensors", "model.safetensors.index.json", "config.json"}) {
    const std::string path = InStep(1, file), good = ReadAll(path);
    for (const std::string& bytes : {good.substr(0, good.size() - 1), good + "x", std::string()}) {
      WriteAll(path, bytes);
      const Status status = ReadCatalog(StepDir(1)).status();
      EXPECT_CODE(kCorrupt, status);
      EXPECT_SAYS(status, file);
      EXPECT_EQ(status.cause().path, file);
    }
    ASSERT_EQ(unlink(path.c_str()), 0);
    const Status missing = ReadCatalog(StepDir(1)).status();
    EXPECT_CODE(kCorrupt, missing);
    EXPECT_SAYS(missing, Cat("file ", file, ": is missing"));
    WriteAll(path, good);
  }
  EXPECT_OK(ReadCatalog(StepDir(1)).status());
}

TEST_F(CatalogTest, ReadsSideFilesLargerThanItsBuffer) {
  auto owner = Take();
  auto save = StepTransaction::Begin(owner, {1, OnExisting::kAuto, "lineage-a"});
  ASSERT_OK(save.status());
  Prepared p = Fill(*owner, **save, {});
  const std::string big(2 * kCrcBlock + 17, 'b');
  ASSERT_OK((*save)->AddFile("big.bin", big.size()));
  WriteAll(At((*save)->staging_folder()) + "/big.bin", big);
  p.record.side_files.push_back({"big.bin", big.size(), Crc32c(0, big.data(), big.size())});
  ASSERT_OK((*save)->Commit(
      p.record, p.index_files, [] { return Status(); }, [] { return false; }, nullptr));
  EXPECT_OK(ReadCatalog(StepDir(1)).status());
}

TEST_F(CatalogTest, HeadersLargerThanABlockAreReadWhole) {
  SaveSpec spec;
  spec.tensors.clear();
  for (int i = 0; i < 20; ++i) {
    spec.tensors.push_back(Tensor(Cat(std::string(100'000, 'n'), i), kU8, {i}));
  }
  SaveStep(spec);
  auto c = ReadCatalog(StepDir(1));
  ASSERT_OK(c.status());
  EXPECT_EQ(c->files[0].tensors.size(), 20u);
  EXPECT_EQ(c->record.files[0].crc32c.size(), 2u);
}

PlacedTensor Placed(const std::string& name, DType dtype, Dims shape, uint64_t offset) {
  PlacedTensor t;
  t.desc = *MakeTensor("model", name, dtype, std::move(shape));
  t.offset = offset;
  return t;
}

TEST(CheckTensors, H04_ANameInTwoFilesOfAGroupOrATensorOffItsAlignmentIsCorruptByName) {
  FileLayout a, b;
  a.name = "a";
  b.name = "b";
  a.group = b.group = "model";
  a.tensors = {Placed("w", kF32, {2}, 4096)};
  b.tensors = {Placed("v", kF32, {2}, 4096)};
  Catalog c;
  c.files = {a, b};
  EXPECT_TRUE(CheckTensors(c).ok());
  c.files[1].tensors = {Placed("w", kF32, {2}, 4096)};
  EXPECT_EQ(CheckTensors(c).code(), Code::kCorrupt);
  EXPECT_EQ(CheckTensors(c).cause().name, "w");
  c.files[1].tensors = {Placed("odd", kF32, {2}, 4098)};
  EXPECT_EQ(CheckTensors(c).code(), Code::kCorrupt);
  EXPECT_EQ(CheckTensors(c).cause().name, "odd");
}

}  // namespace
}  // namespace ckpt
