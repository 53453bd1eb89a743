// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Text for people: concatenation, errno in words (thread-safe, locale-free), rank sets as ranges,
// sizes, and UTF-8 checks.  Pure functions.  Test: tests/unit/util/text_test.cc
#ifndef CKPT_UTIL_TEXT_H_
#define CKPT_UTIL_TEXT_H_

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ckpt {

namespace text_internal {
inline void Append(std::string* out, std::string_view piece) { out->append(piece); }
template <typename T>
requires(!std::is_convertible_v<T, std::string_view>) void Append(std::string* out,
                                                                  const T& value) {
  out->append(fmt::format("{}", value));
}
}  // namespace text_internal

// Concatenates anything fmt can print; locale-independent.
template <typename... Args>
std::string Cat(const Args&... args) {
  std::string out;
  (text_internal::Append(&out, args), ...);
  return out;
}

// {3, 4} -> "[3, 4]".
std::string Bracketed(const std::vector<int64_t>& values);

// "No space left on device (ENOSPC)" style text, without strerror's shared buffer.
std::string ErrnoText(int err);

// {0,1,2,3,7} -> "0-3, 7".  Sorts and removes duplicates.
std::string RankRanges(std::vector<int32_t> ranks);

// For messages of any number of ranks: "rank 2", "ranks 0-3, 7", "ranks 0, 2, 4, ... and 2040
// more".
std::string RankSet(std::vector<int32_t> ranks);

// 1610612736 -> "1.5 GiB".
std::string HumanBytes(uint64_t bytes);

// True if `text` is well-formed UTF-8 (no surrogates, no overlong forms).
bool IsUtf8(std::string_view text);

// For messages: control characters and invalid UTF-8 escaped (\n, \u0000), at most `limit` bytes.
std::string Printable(std::string_view text, size_t limit = 200);
// The text itself where it is UTF-8 without NUL, so that C can hold it; else Printable, uncut.
std::string Lendable(std::string_view text);

}  // namespace ckpt

#endif  // CKPT_UTIL_TEXT_H_
