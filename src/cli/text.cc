// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Text for people and for programs.
#include "cli/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>

namespace cli {
namespace {

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: not UTF-8
};

CodePoint Decode(std::string_view s) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {lead, 1};
  const size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || s.size() < n) return {};
  uint32_t value = lead & (0xFFu >> (n + 1));
  for (size_t i = 1; i < n; ++i) {
    if ((at(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (at(i) & 0x3Fu);
  }
  static constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[n] || value > 0x10FFFF || surrogate) return {};
  return {value, n};
}

// Controls, and what reorders or hides text.
bool IsHarmful(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

std::string Format(const char* format, uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Characters on screen, near enough.
size_t Width(std::string_view s) {
  return static_cast<size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string Escaped(std::string_view text, Backslash backslash) {
  std::string out;
  while (!text.empty()) {
    const CodePoint c = Decode(text);
    if (c.bytes == 0) {
      out += Format("\\x%02x", static_cast<unsigned char>(text[0]));
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (c.value == '\\' && backslash == Backslash::kDoubled) {
      out += "\\\\";
    } else if (IsHarmful(c.value)) {
      out += Format("\\u%04x", c.value);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(std::max<size_t>(c.bytes, 1));
  }
  return out;
}

std::string HumanBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string UtcTime(int64_t unix_ns) {
  const std::time_t seconds = unix_ns / 1'000'000'000;
  std::tm tm = {};
  char text[32] = "?";
  if (gmtime_r(&seconds, &tm) != nullptr) {
    (void)std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &tm);
  }
  return text;
}

std::string DTypeName(uint32_t dtype) {
  const uint32_t code = dtype & 0xFF, bits = dtype >> 8 & 0xFF;
  // dlpack.h v1.1; the 8-bit floats as safetensors names them.
  static constexpr std::pair<uint32_t, const char*> kFamilies[] = {
      {0, "I"}, {1, "U"}, {2, "F"}, {4, "BF"}, {5, "C"}};
  for (const auto& [family, letter] : kFamilies) {
    if (family == code) return letter + std::to_string(bits);
  }
  static constexpr std::pair<uint32_t, const char*> kNames[] = {
      {6, "BOOL"}, {10, "F8_E4M3"}, {12, "F8_E5M2"}, {14, "F8_E8M0"}, {17, "F4"}};
  for (const auto& [named, name] : kNames) {
    if (named == code) return name;
  }
  return "code " + std::to_string(code) + " bits " + std::to_string(bits);
}

std::string Shape(const int64_t* dims, int32_t ndim) {
  std::string out = "[";
  for (int32_t i = 0; i < ndim; ++i) out += (i > 0 ? ", " : "") + std::to_string(dims[i]);
  return out + "]";
}

std::string Table(const std::vector<std::vector<std::string>>& rows, std::vector<size_t> right) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - Width(row[i]), ' ');
      const bool to_right = std::find(right.begin(), right.end(), i) != right.end();
      const bool last = i + 1 == row.size();
      out += to_right ? pad + row[i] : row[i] + (last ? "" : pad);
      out += last ? "\n" : "  ";
    }
  }
  return out;
}

Exit Write(std::string_view text) {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return kGood;
  if (errno == EPIPE) return kGood;
  Message("cannot write to stdout");
  return kIoError;
}

void Message(std::string_view text) {
  std::fprintf(stderr, "ckpt: %.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace cli
