// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "util/text.h"

#include <algorithm>
#include <cstring>

namespace ckpt {

std::string ErrnoText(int err) {
  const char* words = strerrordesc_np(err);
  const char* name = strerrorname_np(err);
  if (words == nullptr || name == nullptr) return Cat("errno ", err);
  return Cat(words, " (", name, ")");
}

std::string Bracketed(const std::vector<int64_t>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += Cat(i == 0 ? "" : ", ", values[i]);
  return out + "]";
}

std::string RankRanges(std::vector<int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string out;
  for (size_t i = 0; i < ranks.size();) {
    size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    if (!out.empty()) out += ", ";
    out += j == i       ? Cat(ranks[i])
           : j == i + 1 ? Cat(ranks[i], ", ", ranks[j])
                        : Cat(ranks[i], "-", ranks[j]);
    i = j + 1;
  }
  return out;
}

std::string RankSet(std::vector<int32_t> ranks) {
  constexpr size_t kMaxRanges = 8;
  if (ranks.size() == 1) return Cat("rank ", ranks[0]);
  std::sort(ranks.begin(), ranks.end());
  size_t ranges = 0;
  size_t shown = 0;
  for (; shown < ranks.size(); ++shown) {
    if (shown == 0 || ranks[shown] != ranks[shown - 1] + 1) ++ranges;
    if (ranges > kMaxRanges) break;
  }
  const size_t rest = ranks.size() - shown;
  ranks.resize(shown);
  return Cat("ranks ", RankRanges(std::move(ranks)), rest > 0 ? Cat(" and ", rest, " more") : "");
}

std::string HumanBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return Cat(bytes, " B");
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

namespace {

// Length of the well-formed UTF-8 sequence at `s`, 0 if there is none (Unicode 15, table 3-7).
size_t Utf8Length(const unsigned char* s, size_t n) {
  auto cont = [&](size_t i, unsigned lo = 0x80, unsigned hi = 0xBF) {
    return i < n && s[i] >= lo && s[i] <= hi;
  };
  if (s[0] < 0x80) return 1;
  if (s[0] >= 0xC2 && s[0] <= 0xDF) return cont(1) ? 2 : 0;
  if (s[0] == 0xE0) return cont(1, 0xA0) && cont(2) ? 3 : 0;
  if (s[0] == 0xED) return cont(1, 0x80, 0x9F) && cont(2) ? 3 : 0;
  if (s[0] >= 0xE1 && s[0] <= 0xEF) return cont(1) && cont(2) ? 3 : 0;
  if (s[0] == 0xF0) return cont(1, 0x90) && cont(2) && cont(3) ? 4 : 0;
  if (s[0] >= 0xF1 && s[0] <= 0xF3) return cont(1) && cont(2) && cont(3) ? 4 : 0;
  if (s[0] == 0xF4) return cont(1, 0x80, 0x8F) && cont(2) && cont(3) ? 4 : 0;
  return 0;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  const auto* s = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t i = 0; i < text.size();) {
    size_t n = Utf8Length(s + i, text.size() - i);
    if (n == 0) return false;
    i += n;
  }
  return true;
}

std::string Lendable(std::string_view text) {
  const bool plain = IsUtf8(text) && text.find('\0') == std::string_view::npos;
  return plain ? std::string(text) : Printable(text, SIZE_MAX);
}

std::string Printable(std::string_view text, size_t limit) {
  const auto* s = reinterpret_cast<const unsigned char*>(text.data());
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= limit) return out + "...";
    size_t n = Utf8Length(s + i, text.size() - i);
    if (n == 0) {
      out += fmt::format("\\x{:02x}", s[i]);
      n = 1;
    } else if (s[i] == '\n') {
      out += "\\n";
    } else if (s[i] < 0x20 || s[i] == 0x7f) {
      out += fmt::format("\\u{:04x}", s[i]);
    } else {
      out.append(text.substr(i, n));
    }
    i += n;
  }
  return out;
}

}  // namespace ckpt
