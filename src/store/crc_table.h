// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A file's checksums as text: base64 (RFC 4648, padded) of little-endian u32.  Private to
// src/store. Pure; any thread.  Test: tests/unit/store/record_test.cc
#ifndef CKPT_STORE_CRC_TABLE_H_
#define CKPT_STORE_CRC_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ckpt {

std::string EncodeCrcTable(const std::vector<uint32_t>& crcs);
// nullopt unless `text` is exactly what EncodeCrcTable gives for `count` values.
std::optional<std::vector<uint32_t>> DecodeCrcTable(std::string_view text, uint64_t count);

// Eight lower-case hexadecimal digits, and back.
std::string CrcText(uint32_t crc);
std::optional<uint32_t> ParseCrcText(std::string_view text);

}  // namespace ckpt

#endif  // CKPT_STORE_CRC_TABLE_H_
