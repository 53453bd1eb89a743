// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the encoder and the decoder of ckpt.json must agree on.  Private to src/store.
// Test: tests/unit/store/record_test.cc
#ifndef CKPT_STORE_RECORD_KEYS_H_
#define CKPT_STORE_RECORD_KEYS_H_

#include <cstdint>
#include <string_view>

#include "meta/meta.h"

namespace ckpt {

inline constexpr std::string_view kFormatName = "ckpt";
inline constexpr uint64_t kFormatVersion = 1;

// The file ends in kCrcHead, eight hexadecimal digits, kCrcTail.  '~' sorts behind every other key.
inline constexpr std::string_view kCrcHead = "\"~crc32c\": \"";
inline constexpr std::string_view kCrcTail = "\"}\n";
inline constexpr std::string_view kCrcZeros = "00000000";

inline constexpr std::string_view kScopeNames[] = {"per_rank", "shared", "file"};  // by BlobScope

}  // namespace ckpt

#endif  // CKPT_STORE_RECORD_KEYS_H_
