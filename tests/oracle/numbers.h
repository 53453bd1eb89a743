// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The oracle's arithmetic: dtypes, casts of one element, a bitwise CRC32C, base64, random draws.
// Written from docs/format.md and OFP8, sharing no code with the library. Covered by
// reference_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oracle {

using Dims = std::vector<int64_t>;

// A unit is what is stored and moved: one element, or the two of a byte of F4.
struct DType {
  uint32_t code;          // CKPT_DTYPE
  const char* name;       // safetensors'; of those it cannot name: "U8"
  int64_t bytes;          // of a unit
  int64_t per_unit = 1;   // elements
  bool named = true;      // false: stored as U8 with one more dimension
  int exp = 0, frac = 0;  // bits, of those that can be cast; else 0
};
const std::vector<DType>& DTypes();
const DType& FindDType(uint32_t code);
inline bool IsFloat(uint32_t code) { return FindDType(code).frac > 0; }

// One element, at `in`, as bytes of the other dtype: nearest even, too large is infinity (F8_E4M3:
// its NaN); a NaN keeps its sign and the upper bits of its fraction and is made quiet.
std::string Cast(uint32_t from, const char* in, uint32_t to);

uint32_t Crc32c(const std::string& bytes);
std::string Base64(const std::string& bytes);
std::string Hex8(uint32_t value);

// The bytes of a content: the same for the same (seed, index), whoever asks.
uint64_t Mix(uint64_t seed, uint64_t index);

// Random draws that depend on the seed alone, not on the standard library.
class Rng {
 public:
  explicit Rng(uint64_t seed) : seed_(seed) {}
  uint64_t Next() { return Mix(seed_, count_++); }
  int64_t In(int64_t low, int64_t high) {  // both included
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int64_t n) { return In(1, n) == 1; }
  template <typename T>
  const T& Of(const std::vector<T>& items) {
    return items[static_cast<size_t>(In(0, static_cast<int64_t>(items.size()) - 1))];
  }
  template <typename T>
  void Shuffle(std::vector<T>* items) {
    for (size_t i = items->size(); i > 1; --i)
      std::swap((*items)[i - 1], (*items)[static_cast<size_t>(In(0, static_cast<int64_t>(i) - 1))]);
  }

 private:
  uint64_t seed_, count_ = 0;
};

}  // namespace oracle
