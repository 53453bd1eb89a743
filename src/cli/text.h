// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Text for people and for programs: escaping, sizes, times, dtypes, aligned tables, stdout.
#ifndef CKPT_CLI_TEXT_H_
#define CKPT_CLI_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"

namespace cli {

// Names come from files: control characters, direction marks, invalid UTF-8 and backslashes are
// shown as \n, \u202e, \xff, \\, so that a name cannot play tricks on a terminal.  The library's
// sentences show names in that way already: their backslashes are kept.
enum class Backslash { kDoubled, kKept };
std::string Escaped(std::string_view text, Backslash backslash = Backslash::kDoubled);

std::string HumanBytes(uint64_t bytes);                // "1.5 GiB"
std::string UtcTime(int64_t unix_ns);                  // "2026-01-31 12:00:00Z"
std::string DTypeName(uint32_t dtype);                 // "F32"; "code 9 bits 8" if it has no name
std::string Shape(const int64_t* dims, int32_t ndim);  // "[32, 8]"

// Rows of equal length, the first the headings.  Columns in `right` are aligned to the right; the
// last column is not padded.
std::string Table(const std::vector<std::vector<std::string>>& rows, std::vector<size_t> right);

// Writes to stdout.  A reader that has gone away (EPIPE) is no error; any other is kIoError.
Exit Write(std::string_view text);
// "ckpt: <text>" to stderr.
void Message(std::string_view text);

}  // namespace cli

#endif  // CKPT_CLI_TEXT_H_
