// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The configuration text: "key=value" lines into a Config.  The table below is the one list of
// keys; docs/configuration.md is checked against it.  Pure.  Test: tests/unit/core/config_test.cc
#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "core/core.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;
constexpr uint64_t kMaxMillis = 1'000'000'000'000;  // 31 years: no clock arithmetic overflows
constexpr uint64_t kUnlimited = uint64_t{1} << 62;

enum class Scope { kJob, kRank };

// One key.  A built key has `parse`, which sets the field and returns the value's canonical text,
// or an empty string if the value is not `wanted`.  Any other key is accepted at its default only.
struct Key {
  std::string_view name;
  std::string_view default_text;
  Scope scope;
  std::string wanted;
  std::function<std::string(std::string_view, Config*)> parse;
};

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

std::optional<uint64_t> ParseSize(std::string_view text) {
  static constexpr std::pair<std::string_view, uint64_t> kUnits[] = {
      {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}};
  for (const auto& [unit, factor] : kUnits) {
    if (text.size() <= unit.size() || text.substr(text.size() - unit.size()) != unit) continue;
    const auto n = ParseNumber(text.substr(0, text.size() - unit.size()));
    return n ? CheckedMul(*n, factor) : std::nullopt;
  }
  return ParseNumber(text);
}

std::string SizeText(uint64_t n) {
  if (n >= kGiB && n % kGiB == 0) return Cat(n / kGiB, "GiB");
  if (n >= kMiB && n % kMiB == 0) return Cat(n / kMiB, "MiB");
  if (n >= kKiB && n % kKiB == 0) return Cat(n / kKiB, "KiB");
  return Cat(n);
}

struct Bounds {
  uint64_t min, max;
  uint64_t multiple = 1;
  bool power_of_two = false;
  bool Hold(uint64_t n) const {
    return n >= min && n <= max && n % multiple == 0 && (!power_of_two || (n & (n - 1)) == 0);
  }
};

Key Size(std::string_view name, std::string_view default_text, Scope scope, uint64_t Config::*field,
         Bounds bounds) {
  std::string wanted = Cat("a size from ", SizeText(bounds.min), " to ", SizeText(bounds.max));
  if (bounds.power_of_two) wanted += " that is a power of two";
  if (bounds.multiple > 1) wanted += Cat(" that is a multiple of ", SizeText(bounds.multiple));
  return {name, default_text, scope, wanted, [=](std::string_view value, Config* config) {
            const auto n = ParseSize(value);
            if (!n || !bounds.Hold(*n)) return std::string();
            config->*field = *n;
            return Cat(*n);
          }};
}

template <typename Field>
Key Number(std::string_view name, std::string_view default_text, Scope scope, Field Config::*field,
           Bounds bounds) {
  return {name, default_text, scope, Cat("a number from ", bounds.min, " to ", bounds.max),
          [=](std::string_view value, Config* config) {
            const auto n = ParseNumber(value);
            if (!n || !bounds.Hold(*n)) return std::string();
            config->*field = static_cast<Field>(*n);
            return Cat(*n);
          }};
}

Key IoDirect() {
  return {"io.direct", "auto", Scope::kRank, "auto, on or off",
          [](std::string_view value, Config* config) {
            if (value != "auto" && value != "on" && value != "off") return std::string();
            config->io_direct = value == "on"    ? DirectIo::kOn
                                : value == "off" ? DirectIo::kOff
                                                 : DirectIo::kAuto;
            return std::string(value);
          }};
}

Key IoBlock() {
  Key key =
      Size("io.block", "auto", Scope::kRank, &Config::io_block, {4 * kKiB, 64 * kMiB, 4 * kKiB});
  key.wanted = Cat("auto or ", key.wanted);
  key.parse = [size = key.parse](std::string_view value, Config* config) {
    return value == "auto" ? std::string(value) : size(value, config);
  };
  return key;
}

Key IoEngine() {
  return {"io.engine", "auto", Scope::kRank, "auto, uring or threads",
          [](std::string_view value, Config*) {
            return std::string(value == "auto" || value == "threads" ? value : "");
          }};
}

Key ReplicaCheck() {
  return {"replica.check", "sampled", Scope::kJob, "full, sampled or off",
          [](std::string_view value, Config* config) {
            if (value != "full" && value != "sampled" && value != "off") return std::string();
            config->replica_check = value == "full"      ? ReplicaCheck::kFull
                                    : value == "sampled" ? ReplicaCheck::kSampled
                                                         : ReplicaCheck::kOff;
            return std::string(value);
          }};
}

Key Ties() {
  return {"ties", "drop", Scope::kJob, "drop or duplicate",
          [](std::string_view value, Config* config) {
            if (value != "drop" && value != "duplicate") return std::string();
            config->duplicate_ties = value == "duplicate";
            return std::string(value);
          }};
}

Key OwnerForce() {
  return {"owner.force", "off", Scope::kJob, "off or on",
          [](std::string_view value, Config* config) {
            if (value != "off" && value != "on") return std::string();
            config->owner_force = value == "on";
            return std::string(value);
          }};
}

Key Unbuilt(std::string_view name, std::string_view default_text, Scope scope) {
  return {name, default_text, scope, "", nullptr};
}

const std::vector<Key>& Keys() {
  static const std::vector<Key> keys = {
      Number("keep_last", "0", Scope::kJob, &Config::keep_last, {0, kUnlimited}),
      Size("max_file_bytes", "5000000000", Scope::kJob, &Config::max_file_bytes, {1, kUnlimited}),
      Ties(),
      ReplicaCheck(),
      Size("io.align", "4KiB", Scope::kJob, &Config::io_align, {4 * kKiB, 64 * kMiB, 1, true}),
      IoDirect(),
      IoEngine(),
      Number("io.threads", "2", Scope::kRank, &Config::io_threads, {1, 256}),
      IoBlock(),
      Unbuilt("io.retries", "2", Scope::kJob),
      Number("io.stall_timeout_ms", "120000", Scope::kJob, &Config::io_stall_timeout_ms,
             {1, kMaxMillis}),
      Unbuilt("io.max_bytes_per_s", "0", Scope::kRank),
      Unbuilt("io.nice", "0", Scope::kRank),
      Unbuilt("io.cpus", "all", Scope::kRank),
      Unbuilt("staging.bytes", "auto", Scope::kRank),
      Size("plan.min_run", "256KiB", Scope::kJob, &Config::min_run, {0, kGiB}),
      Unbuilt("load.distribute", "auto", Scope::kJob),
      Unbuilt("slot.reuse", "off", Scope::kJob),
      Unbuilt("writers.per_host", "0", Scope::kJob),
      OwnerForce(),
      Size("limits.chunk_bytes", "16MiB", Scope::kJob, &Config::chunk_bytes,
           {64, kGiB, 16}),  // no message cuts an element
  };
  return keys;
}

std::string_view Trim(std::string_view s) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = s.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return s.substr(begin, s.find_last_not_of(kSpace) - begin + 1);
}

Status Refuse(Code code, size_t line, std::string_view key, std::string_view why) {
  Cause cause;
  cause.name = key;
  return Status(code, Cat("config line ", line, ": ", why), std::move(cause));
}

Status UnknownKey(size_t line, std::string_view name) {
  std::string known;
  for (const Key& key : Keys()) known += Cat(known.empty() ? "" : ", ", key.name);
  return Refuse(Code::kInvalidArgument, line, name,
                Cat("unknown key \"", Printable(name), "\" (known: ", known, ")"));
}

// Values that a later version will take: not wrong, only not built.
bool IsLaterValue(std::string_view key, std::string_view value) {
  return key == "io.engine" && value == "uring";
}

// Sets one key; returns its canonical text.
Result<std::string> SetValue(size_t line, const Key& key, std::string_view value, Config* config) {
  const std::string shown = Cat(key.name, "=", Printable(value));
  if (!key.parse || IsLaterValue(key.name, value)) {
    if (value == key.default_text) return std::string(value);
    return Refuse(Code::kUnsupported, line, key.name,
                  Cat(shown, ": not in this version, only ", key.name, "=", key.default_text));
  }
  std::string canonical = key.parse(value, config);
  if (!canonical.empty()) return canonical;
  return Refuse(Code::kInvalidArgument, line, key.name, Cat(shown, ": must be ", key.wanted));
}

// Handles one trimmed line without comment; `given` are the keys of earlier lines.
Status ParseLine(size_t number, std::string_view line, std::set<std::string_view>* given,
                 std::vector<std::string>* canonical, Config* config) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return Refuse(Code::kInvalidArgument, number, line,
                  Cat("\"", Printable(line), "\" is not key=value"));
  }
  const std::string_view name = Trim(line.substr(0, equals));
  const auto& keys = Keys();
  const auto key =
      std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.name == name; });
  if (key == keys.end()) return UnknownKey(number, name);
  if (!given->insert(key->name).second) {
    return Refuse(Code::kInvalidArgument, number, name, Cat("duplicate key \"", name, "\""));
  }
  CKPT_ASSIGN_OR_RETURN((*canonical)[static_cast<size_t>(key - keys.begin())],
                        SetValue(number, *key, Trim(line.substr(equals + 1)), config));
  return Status();
}

}  // namespace

Result<Config> ParseConfig(std::string_view text) {
  const auto& keys = Keys();
  Config config;
  std::vector<std::string> canonical(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    CKPT_ASSIGN_OR_RETURN(canonical[i], SetValue(0, keys[i], keys[i].default_text, &config));
  }
  if (!IsUtf8(text)) return Refuse(Code::kInvalidArgument, 0, "config", "the text is not UTF-8");
  std::set<std::string_view> given;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::string_view content = Trim(line.substr(0, std::min(line.find('#'), line.size())));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty()) continue;
    CKPT_RETURN_IF_ERROR(ParseLine(number, content, &given, &canonical, &config));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].scope == Scope::kJob) config.job_wide.emplace_back(keys[i].name, canonical[i]);
  }
  return config;
}

}  // namespace ckpt
