// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Overflow-safe arithmetic on sizes that come from callers, disks and peers.
// Pure.  Test: tests/unit/util/checked_test.cc
#ifndef CKPT_UTIL_CHECKED_H_
#define CKPT_UTIL_CHECKED_H_

#include <cstdint>
#include <optional>

namespace ckpt {

inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// REQUIRES: align > 0.
constexpr uint64_t RoundDown(uint64_t n, uint64_t align) { return n - n % align; }
constexpr uint64_t RoundUp(uint64_t n, uint64_t align) {
  return n % align == 0 ? n : n + (align - n % align);
}

}  // namespace ckpt

#endif  // CKPT_UTIL_CHECKED_H_
