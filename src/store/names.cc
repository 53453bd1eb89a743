// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Names on disk.  Test: tests/unit/store/names_test.cc
#include "store/names.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "store/store.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kIntentPrefix = ".replace-";
constexpr std::string_view kDataSuffix = ".safetensors";
constexpr size_t kStepDigits = 12;
constexpr size_t kMaxName = 255;  // NAME_MAX of every file system that we know

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// nullopt: another character, or too large.  "" is 0.
std::optional<int64_t> ParseDigits(std::string_view digits) {
  int64_t value = 0;
  for (char c : digits) {
    if (!IsDigit(c) || __builtin_mul_overflow(value, int64_t{10}, &value) ||
        __builtin_add_overflow(value, int64_t{c - '0'}, &value)) {
      return std::nullopt;
    }
  }
  return value;
}

// Length of a trailing "-NNNNN-of-NNNNN", 0 if there is none.
size_t PartSuffix(std::string_view stem) {
  size_t i = stem.size();
  const auto digits = [&] {
    const size_t end = i;
    while (i > 0 && IsDigit(stem[i - 1])) --i;
    return end - i;
  };
  if (digits() < 5 || i < 4 || stem.substr(i - 4, 4) != "-of-") return 0;
  i -= 4;
  if (digits() < 5 || i < 1 || stem[i - 1] != '-') return 0;
  return stem.size() - (i - 1);
}

}  // namespace

std::string StepFolder(int64_t step) { return Cat(kStepPrefix, fmt::format("{:012}", step)); }

std::optional<int64_t> ParseStepFolder(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kStepPrefix.size());
  if (digits.size() < kStepDigits) return std::nullopt;
  // One spelling per step: zeros only pad up to the usual width.
  if (digits.size() > kStepDigits && digits[0] == '0') return std::nullopt;
  return ParseDigits(digits);
}

std::string NewId() {
  static std::atomic<uint64_t> counter{0};
  uint64_t id = 0;
  if (getrandom(&id, sizeof id, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof id)) {
    // Early boot without entropy: a name only has to differ from the others of its root.
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    id = static_cast<uint64_t>(now) ^ static_cast<uint64_t>(getpid()) << 40 ^ ++counter << 56;
  }
  return fmt::format("{:016x}", id);
}

std::string StagingFolder(std::string_view id) { return Cat(kStagingPrefix, id); }
std::string TrashFolder(std::string_view id) { return Cat(kTrashPrefix, id); }

std::string IntentFile(int64_t step) { return Cat(kIntentPrefix, step); }

std::optional<int64_t> ParseIntentFile(std::string_view name) {
  if (!name.starts_with(kIntentPrefix)) return std::nullopt;
  const std::optional<int64_t> step = ParseDigits(name.substr(kIntentPrefix.size()));
  return step && IntentFile(*step) == name ? step : std::nullopt;
}

std::string SafetensorsName(const std::string& group, size_t index, size_t count) {
  if (count == 1) return Cat(group, kDataSuffix);
  return fmt::format("{}-{:05}-of-{:05}{}", group, index + 1, count, kDataSuffix);
}

std::string IndexName(const std::string& group) { return Cat(group, kDataSuffix, ".index.json"); }

std::string GroupOfFile(std::string_view name) {
  if (name.ends_with(kDataSuffix)) name.remove_suffix(kDataSuffix.size());
  name.remove_suffix(PartSuffix(name));
  return std::string(name);
}

Status CheckFileName(std::string_view name) {
  const char* why = nullptr;
  if (name.empty() || name.size() > kMaxName) why = "not 1 to 255 bytes";
  if (why == nullptr && name[0] == '.') why = "starts with a dot";
  if (name.find('/') != std::string_view::npos) why = "holds a slash";
  if (name.find('\0') != std::string_view::npos) why = "holds a NUL byte";
  if (!IsUtf8(name)) why = "is not UTF-8";
  if (name == kRecordFile) why = "is the commit record's";
  if (why == nullptr) return Status();
  Cause cause;
  cause.name = Lendable(name);
  return Status(Code::kInvalidArgument, Cat("file name \"", Printable(name), "\": ", why),
                std::move(cause));
}

bool IsGroupName(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_' || c == '-';
  });
  return plain && !name.empty() && name.size() <= 64;
}

std::string BaseName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace ckpt
