// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON from disk: strict, bounded in depth, no duplicate keys, no exceptions.  Private to
// src/store. Pure; any thread.  Test: tests/unit/store/json_in_test.cc
#ifndef CKPT_STORE_JSON_IN_H_
#define CKPT_STORE_JSON_IN_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "util/status.h"

namespace ckpt {

using Json = nlohmann::json;

inline constexpr size_t kMaxJsonDepth = 8;

// One JSON object and nothing else.  CORRUPT otherwise, with the place; a duplicate key is named in
// cause.name.  Integers of up to 64 bits keep their value.
Result<Json> ParseJsonObject(std::string_view text);

// Text of `json` as we write it: sorted keys, UTF-8 kept; never throws.
std::string JsonText(const Json& json, int indent = -1);

// Typed access to the members of one object.  The first member that is missing or of another type
// makes status() CORRUPT ("`where`: ..."); from then on every getter gives an empty value.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string where);
  const Status& status() const { return status_; }

  std::string Str(const char* key);
  uint64_t U64(const char* key, uint64_t max = UINT64_MAX);
  int64_t I64(const char* key, int64_t min, int64_t max);
  const Json& Array(const char* key);
  const Json& Object(const char* key);
  void Fail(const std::string& why);

 private:
  const Json* Find(const char* key, bool (*is)(const Json&), const char* type);
  const Json& object_;
  const std::string where_;
  Status status_;
};

}  // namespace ckpt

#endif  // CKPT_STORE_JSON_IN_H_
