// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON that --json gives: one object, "schema": 1, keys in this order; sizes in bytes, times in
// nanoseconds since 1970.  Fields are only added.
#ifndef CKPT_CLI_JSON_H_
#define CKPT_CLI_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

#include "ckpt.h"

namespace cli {

using Json = nlohmann::ordered_json;

Json NewJson(const char* command, const std::string& path);  // schema, command, path
Json StepJson(const ckpt_checkpoint_info& step);
// With a newline.  What is not UTF-8 becomes U+FFFD.
std::string Dump(const Json& json);

}  // namespace cli

#endif  // CKPT_CLI_JSON_H_
