// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A small language for the tests of src/store: a root in a temporary folder, a small step saved to
// it, files read, written and damaged behind the library's back.
#ifndef CKPT_TESTS_UNIT_STORE_FIXTURE_H_
#define CKPT_TESTS_UNIT_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"
#include "util/text.h"

namespace ckpt {

void PrintTo(const Status& status, std::ostream* out);

// The code, or the message of an error that was not expected.
#define EXPECT_OK(expr)                                                                         \
  do {                                                                                          \
    const ::ckpt::Status expect_ok_ = (expr);                                                   \
    EXPECT_TRUE(expect_ok_.ok()) << CodeName(expect_ok_.code()) << " " << expect_ok_.message(); \
  } while (0)
#define ASSERT_OK(expr)                                                                         \
  do {                                                                                          \
    const ::ckpt::Status assert_ok_ = (expr);                                                   \
    ASSERT_TRUE(assert_ok_.ok()) << CodeName(assert_ok_.code()) << " " << assert_ok_.message(); \
  } while (0)
#define EXPECT_CODE(expected, expr)                                            \
  do {                                                                         \
    const ::ckpt::Status expect_code_ = (expr);                                \
    EXPECT_EQ(CodeName(::ckpt::Code::expected), CodeName(expect_code_.code())) \
        << expect_code_.message();                                             \
  } while (0)
#define EXPECT_SAYS(status, words) \
  EXPECT_NE((status).message().find(words), std::string::npos) << (status).message()

TensorDesc Tensor(const std::string& name, DType dtype, Dims shape,
                  const std::string& group = "model");

std::string ReadAll(const std::string& path);
void WriteAll(const std::string& path, const std::string& bytes);
bool Exists(const std::string& path);                       // links are not followed
std::vector<std::string> Names(const std::string& folder);  // sorted

struct SaveSpec {
  int64_t step = 1;
  OnExisting on_existing = OnExisting::kAuto;
  std::string lineage = "lineage-a";
  char fill = 'x';  // of every tensor byte
  std::vector<TensorDesc> tensors = {Tensor("a", kF32, {4, 3}), Tensor("b", kBF16, {5})};
  uint64_t max_file_bytes = 5'000'000'000;
  std::function<Status()> enter_commit = [] { return Status(); };
  std::function<bool()> abandoned = [] { return false; };
  uint64_t keep_last = 0;
  bool finish = true;
  std::vector<std::string>* warnings = nullptr;
};

struct Prepared {
  CommitRecord record;
  std::vector<std::pair<std::string, std::string>> index_files;
};
// Adds and writes the files of `spec` in the staging folder, as the ranks would.
Prepared Fill(const RootOwner& owner, StepTransaction& save, const SaveSpec& spec);
// Begin, Fill, Commit, Finish.
Status Save(const std::shared_ptr<RootOwner>& owner, const SaveSpec& spec);

// A root that is removed at the end.
class RootTest : public ::testing::Test {
 protected:
  RootTest();
  ~RootTest() override;
  std::shared_ptr<RootOwner> Take(const std::string& job = "job-a");
  Dir Root() const;
  Dir StepDir(int64_t step) const;
  std::string At(const std::string& name) const { return base_ + "/root/" + name; }
  std::string InStep(int64_t step, const std::string& file) const {
    return At(StepFolder(step)) + "/" + file;
  }
  // Committed steps in order of ListSteps; an invalid one as -step - 1.
  std::vector<int64_t> Steps() const;
  char FillOf(int64_t step) const;  // last byte of the model file; '?' if there is none
  void ExpectClean() const;         // no staging, no trash, no intent

  std::string base_, root_;
};

}  // namespace ckpt

#endif  // CKPT_TESTS_UNIT_STORE_FIXTURE_H_
