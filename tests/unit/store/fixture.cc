// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "unit/store/fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "io/crc32c.h"

namespace ckpt {

void PrintTo(const Status& status, std::ostream* out) {
  *out << CodeName(status.code()) << " " << status.message();
}

TensorDesc Tensor(const std::string& name, DType dtype, Dims shape, const std::string& group) {
  TensorDesc t;
  t.group = group;
  t.name = name;
  t.dtype = dtype;
  t.shape = std::move(shape);
  const Status sized = SizeTensor(&t);
  EXPECT_TRUE(sized.ok()) << sized.message();
  return t;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  ASSERT_TRUE(out.good()) << path;
}

bool Exists(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0;
}

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

std::vector<uint32_t> Crcs(const std::string& bytes) {
  std::vector<uint32_t> crcs;
  for (size_t at = 0; at < bytes.size(); at += kCrcBlock) {
    crcs.push_back(Crc32c(0, bytes.data() + at, std::min<size_t>(kCrcBlock, bytes.size() - at)));
  }
  return crcs;
}

SmallFileRecord Small(const std::string& name, const std::string& bytes) {
  return {name, bytes.size(), Crc32c(0, bytes.data(), bytes.size())};
}

CommitRecord Identity(StepTransaction& save, const SaveSpec& spec) {
  CommitRecord r;
  r.step = spec.step;
  r.lineage = spec.lineage;
  r.library = "test";
  r.world_size = 2;
  r.created_unix_ns = 1'700'000'000'000'000'000;
  auto sequence = save.NextSequence();
  auto known = save.Known();
  EXPECT_TRUE(sequence.ok() && known.ok());
  r.sequence = sequence.ok() ? *sequence : 0;
  if (known.ok()) r.known = *known;
  return r;
}

}  // namespace

Prepared Fill(const RootOwner& owner, StepTransaction& save, const SaveSpec& spec) {
  Prepared out;
  CommitRecord& r = out.record = Identity(save, spec);
  LayoutOptions options;
  options.max_file_bytes = spec.max_file_bytes;
  auto files = LayoutGroup("model", spec.tensors, options);
  EXPECT_TRUE(files.ok()) << files.status().message();
  const std::string staging = owner.root().path() + "/" + save.staging_folder() + "/";
  for (const FileLayout& file : *files) {
    EXPECT_OK(save.AddFile(file.name, file.bytes));
    const std::string bytes = file.header + std::string(file.bytes - file.header.size(), spec.fill);
    WriteAll(staging + file.name, bytes);
    r.files.push_back({file.name, file.bytes, Crcs(bytes), {{0, file.bytes}}});
    r.groups["model"].push_back(file.name);
  }
  const std::string config = Cat("{\"step\": ", spec.step, "}");
  EXPECT_OK(save.AddFile("config.json", config.size()));
  WriteAll(staging + "config.json", config);
  r.side_files = {Small("config.json", config)};
  const std::string index = IndexJson(*files);
  out.index_files = {{IndexName("model"), index}};
  r.index_files = {Small(IndexName("model"), index)};
  return out;
}

Status Save(const std::shared_ptr<RootOwner>& owner, const SaveSpec& spec) {
  CKPT_ASSIGN_OR_RETURN(auto save, StepTransaction::Begin(owner, {spec.step, spec.on_existing,
                                                                  spec.lineage, spec.keep_last}));
  if (save == nullptr) return Status();  // KEEP
  const Prepared p = Fill(*owner, *save, spec);
  const Status status =
      save->Commit(p.record, p.index_files, spec.enter_commit, spec.abandoned, spec.warnings);
  if (status.ok() && spec.finish) save->Finish(spec.warnings);
  return status;
}

RootTest::RootTest() {
  std::string pattern = ::testing::TempDir() + "ckpt-store-XXXXXX";
  base_ = mkdtemp(pattern.data());
  root_ = base_ + "/root";
}

RootTest::~RootTest() {
  std::error_code ignored;
  std::filesystem::remove_all(base_, ignored);
}

std::shared_ptr<RootOwner> RootTest::Take(const std::string& job) {
  auto owner = RootOwner::Take(root_, {job}, nullptr);
  EXPECT_TRUE(owner.ok()) << owner.status().message();
  return owner.ok() ? *owner : nullptr;
}

Dir RootTest::Root() const {
  auto dir = Dir::Open(root_);
  EXPECT_TRUE(dir.ok()) << dir.status().message();
  return std::move(dir).value();
}

Dir RootTest::StepDir(int64_t step) const {
  auto dir = Root().OpenDir(StepFolder(step));
  EXPECT_TRUE(dir.ok()) << dir.status().message();
  return std::move(dir).value();
}

std::vector<int64_t> RootTest::Steps() const {
  auto steps = ListSteps(Root());
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  std::vector<int64_t> out;
  for (const StepEntry& s : *steps) out.push_back(s.record ? s.step : -s.step - 1);
  return out;
}

char RootTest::FillOf(int64_t step) const {
  const std::string bytes = ReadAll(InStep(step, "model.safetensors"));
  return bytes.empty() ? '?' : bytes.back();
}

void RootTest::ExpectClean() const {
  for (const std::string& name : Names(root_)) {
    EXPECT_FALSE(name.starts_with(".staging-") || name.starts_with(".trash-") ||
                 name.starts_with(".replace-"))
        << name;
  }
}

}  // namespace ckpt
