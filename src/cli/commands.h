// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The `ckpt` command: what each subcommand is asked for, and the exit codes
// (docs/configuration.md). It reads through ckpt.h only and writes nothing.  Test: tests/process/
// (h_names), tools/quickstart
#ifndef CKPT_CLI_COMMANDS_H_
#define CKPT_CLI_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace cli {

enum Exit : int { kGood = 0, kDamaged = 1, kUsage = 2, kNotFound = 3, kIoError = 4 };

struct Request {
  std::string path;             // a root or a step folder
  std::optional<int64_t> step;  // none: the newest
  bool json = false;
};

// Each writes its answer to stdout, its complaints to stderr, and returns the exit code.
Exit List(const Request& request);
Exit Show(const Request& request);
Exit Verify(const Request& request);

}  // namespace cli

#endif  // CKPT_CLI_COMMANDS_H_
