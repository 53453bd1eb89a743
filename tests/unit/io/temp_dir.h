// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A folder of a test's own, on the disk of the build tree's TMPDIR, gone at its end, and the small
// words that the io tests share.
#ifndef CKPT_TESTS_UNIT_IO_TEMP_DIR_H_
#define CKPT_TESTS_UNIT_IO_TEMP_DIR_H_

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/io.h"

namespace ckpt {

#define EXPECT_OK(expr)                                 \
  do {                                                  \
    const ::ckpt::Status ckpt_got_ = (expr);            \
    EXPECT_TRUE(ckpt_got_.ok()) << ckpt_got_.message(); \
  } while (0)
#define EXPECT_CODE(expr, expected) EXPECT_EQ((expr).code(), ::ckpt::Code::expected)

class TempDir {
 public:
  explicit TempDir(const std::string& base = std::filesystem::temp_directory_path().string()) {
    std::string pattern = base + "/ckpt-io-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << pattern;
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  Dir Open() const { return Dir::Open(path_).value(); }

 private:
  std::string path_;
};

// The test's fixture: `dir_` is an open, empty folder.
class IoTest : public ::testing::Test {
 protected:
  TempDir temp_;
  Dir dir_ = temp_.Open();
};

inline std::string Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline mode_t ModeOf(const std::string& path) {
  struct stat st = {};
  EXPECT_EQ(::lstat(path.c_str(), &st), 0) << path;
  return st.st_mode & 07777;
}

// Names in the message what was done and to what.
inline void ExpectNames(const Status& status, const std::string& what, const std::string& path) {
  EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
  EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
}

}  // namespace ckpt

#endif  // CKPT_TESTS_UNIT_IO_TEMP_DIR_H_
