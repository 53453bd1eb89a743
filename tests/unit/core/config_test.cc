// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Claims about the configuration text, and that docs/configuration.md lists the keys of the code.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "core/core.h"

namespace ckpt {
namespace {

Config Good(const std::string& text) {
  Result<Config> config = ParseConfig(text);
  EXPECT_TRUE(config.ok()) << text << ": " << config.status().message();
  return config.ok() ? *config : Config();
}

void Refused(const std::string& text, Code code, const std::string& key, const std::string& words) {
  Result<Config> config = ParseConfig(text);
  ASSERT_FALSE(config.ok()) << text;
  EXPECT_EQ(config.status().code(), code) << config.status().message();
  EXPECT_EQ(config.status().cause().name, key);
  EXPECT_NE(config.status().message().find(words), std::string::npos) << config.status().message();
}

std::map<std::string, std::string> JobWide(const std::string& text) {
  const Config config = Good(text);
  return {config.job_wide.begin(), config.job_wide.end()};
}

TEST(Config, EmptyTextGivesTheDefaultsOfConfig) {
  const Config config = Good(""), defaults;
  EXPECT_EQ(config.max_file_bytes, defaults.max_file_bytes);
  EXPECT_EQ(config.io_align, defaults.io_align);
  EXPECT_EQ(config.io_block, defaults.io_block);
  EXPECT_EQ(config.io_threads, defaults.io_threads);
  EXPECT_EQ(config.io_direct, defaults.io_direct);
  EXPECT_EQ(config.io_stall_timeout_ms, defaults.io_stall_timeout_ms);
  EXPECT_EQ(config.min_run, defaults.min_run);
  EXPECT_EQ(config.chunk_bytes, defaults.chunk_bytes);
  EXPECT_EQ(config.replica_check, defaults.replica_check);
}

TEST(Config, EveryBuiltKeyIsSet) {
  const Config config = Good(
      "max_file_bytes=2MiB\nio.align=1MiB\nio.block=8MiB\nio.threads=7\nio.direct=off\n"
      "io.stall_timeout_ms=500\nplan.min_run=0\nlimits.chunk_bytes=4096\nreplica.check=off\n"
      "io.engine=threads");
  EXPECT_EQ(config.max_file_bytes, 2u << 20);
  EXPECT_EQ(config.io_align, 1u << 20);
  EXPECT_EQ(config.io_block, 8u << 20);
  EXPECT_EQ(config.io_threads, 7u);
  EXPECT_EQ(config.io_direct, DirectIo::kOff);
  EXPECT_EQ(config.io_stall_timeout_ms, 500u);
  EXPECT_EQ(config.min_run, 0u);
  EXPECT_EQ(config.chunk_bytes, 4096u);
  EXPECT_EQ(config.replica_check, ReplicaCheck::kOff);
}

TEST(Config, SpacesCommentsAndEmptyLinesAreIgnored) {
  const Config config = Good("# all of it\n\n  io.threads =\t3  # three\r\n\n");
  EXPECT_EQ(config.io_threads, 3u);
}

TEST(Config, SpellingsOfOneSizeAgreeAcrossRanks) {
  EXPECT_EQ(JobWide("io.align=8KiB"), JobWide("io.align=8192"));
  EXPECT_EQ(JobWide(""), JobWide("replica.check=sampled\nio.threads=9"));
  EXPECT_NE(JobWide(""), JobWide("max_file_bytes=1MiB"));
}

TEST(Config, WrongLinesAreNamed) {
  Refused("io.threads", Code::kInvalidArgument, "io.threads", "line 1");
  Refused("\nfoo=1", Code::kInvalidArgument, "foo", "line 2: unknown key");
  Refused("io.threads=1\nio.threads=1", Code::kInvalidArgument, "io.threads", "line 2: duplicate");
  Refused("=3", Code::kInvalidArgument, "", "unknown key");
}

TEST(Config, WrongValuesAreNamed) {
  for (const char* value : {"", "0", "257", "-1", "two", "1.5", "99999999999999999999"}) {
    Refused(std::string("io.threads=") + value, Code::kInvalidArgument, "io.threads", "1 to 256");
  }
  for (const char* value : {"4kib", "KiB", "4 KiB", "18446744073709551615GiB", "6KiB", "1KiB"}) {
    Refused(std::string("io.align=") + value, Code::kInvalidArgument, "io.align", "power of two");
  }
  Refused("io.block=5000", Code::kInvalidArgument, "io.block", "multiple of 4KiB");
  Refused("io.direct=maybe", Code::kInvalidArgument, "io.direct", "auto, on or off");
  Refused("max_file_bytes=0", Code::kInvalidArgument, "max_file_bytes", "size");
  Refused("keep_last=-1", Code::kInvalidArgument, "keep_last", "number");  // D06
}

TEST(Config, WhatIsNotBuiltIsAcceptedAtItsDefaultOnly) {
  Good("slot.reuse=off\nio.cpus=all\nstaging.bytes=auto");
  Refused("slot.reuse=on", Code::kUnsupported, "slot.reuse", "not in this version");
  Refused("io.engine=uring", Code::kUnsupported, "io.engine", "uring");
}

// Rows "| `key` | type | default | scope | built | ..." of the table.
struct Row {
  std::string key, default_text, scope, built;
};
std::vector<Row> DocumentedKeys() {
  const auto root = std::filesystem::path(__FILE__).parent_path() / "../../..";
  std::ifstream file(root / "docs/configuration.md");
  const std::regex row(R"(\| `([a-z_.]+)` \| [^|]+ \| ([^|]+) \| (job|rank) \| (yes|no) \|.*)");
  std::vector<Row> rows;
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_match(line, match, row))
      rows.push_back({match[1], match[2], match[3], match[4]});
  }
  return rows;
}

TEST(Config, DocsListTheKeysOfTheCode) {
  // The message about an unknown key lists all that are known.
  const std::string message = ParseConfig("?=1").status().message();
  std::string known = message.substr(message.find("known: ") + 7);
  std::set<std::string> code, docs;
  const std::regex key("[a-z_.]+");
  for (std::sregex_iterator it(known.begin(), known.end(), key), end; it != end; ++it) {
    code.insert(it->str());
  }
  for (const Row& row : DocumentedKeys()) docs.insert(row.key);
  EXPECT_GT(docs.size(), 15u);
  EXPECT_EQ(code, docs);
}

TEST(Config, DocsTellDefaultScopeAndWhatIsBuilt) {
  const auto job_wide = JobWide("");
  for (const Row& row : DocumentedKeys()) {
    EXPECT_EQ(JobWide(row.key + "=" + row.default_text), job_wide) << row.key;
    EXPECT_EQ(job_wide.count(row.key) == 1, row.scope == "job") << row.key;
    const Result<Config> nonsense = ParseConfig(row.key + "=no such value");
    ASSERT_FALSE(nonsense.ok()) << row.key;
    EXPECT_EQ(nonsense.status().code() == Code::kInvalidArgument, row.built == "yes") << row.key;
  }
}

}  // namespace
}  // namespace ckpt
