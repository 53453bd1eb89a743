// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Compact binary encoding for what ranks send each other: little-endian fixed-width integers and
// length-prefixed bytes.  A WireReader never reads past its end: after the first malformed or
// missing value ok() is false and every further read returns zero or empty.
// One thread at a time.  Test: tests/unit/util/wire_test.cc
#ifndef CKPT_UTIL_WIRE_H_
#define CKPT_UTIL_WIRE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "util/status.h"

namespace ckpt {

using Bytes = std::string;  // opaque binary

class WireWriter {
 public:
  void U8(uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void U32(uint32_t v) { Raw(&v, sizeof v); }
  void U64(uint64_t v) { Raw(&v, sizeof v); }
  void I32(int32_t v) { Raw(&v, sizeof v); }
  void I64(int64_t v) { Raw(&v, sizeof v); }
  void Str(std::string_view s) {
    U64(s.size());
    out_.append(s);
  }
  void I64s(const std::vector<int64_t>& v) {
    U64(v.size());
    Raw(v.data(), v.size() * sizeof(int64_t));
  }
  Bytes Take() { return std::move(out_); }
  const Bytes& bytes() const { return out_; }

 private:
  void Raw(const void* p, size_t n) { out_.append(static_cast<const char*>(p), n); }
  Bytes out_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view in) : in_(in) {}
  uint8_t U8() { return Fixed<uint8_t>(); }
  uint32_t U32() { return Fixed<uint32_t>(); }
  uint64_t U64() { return Fixed<uint64_t>(); }
  int32_t I32() { return Fixed<int32_t>(); }
  int64_t I64() { return Fixed<int64_t>(); }
  std::string Str() { return std::string(View(U64())); }
  std::vector<int64_t> I64s();
  // A count of items of at least `min_item_bytes` each: refused (ok() false, 0) if they cannot fit
  // in what is left, so that a hostile count never drives an allocation.
  uint64_t Count(uint64_t min_item_bytes);

  // What was read means nothing here: malformed like what is missing.
  void Refuse() {
    ok_ = false;
    in_ = {};
  }
  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && in_.empty(); }

 private:
  std::string_view View(uint64_t n);
  template <typename T>
  T Fixed() {
    std::string_view v = View(sizeof(T));
    T out{};
    if (v.size() == sizeof(T)) std::memcpy(&out, v.data(), sizeof(T));
    return out;
  }
  std::string_view in_;
  bool ok_ = true;
};

// A Status with cause and rank reports, so that every rank returns the same words.  GetStatus
// refuses codes and conditions that the ABI does not know.
void PutStatus(WireWriter& w, const Status& status);
Status GetStatus(WireReader& r);

}  // namespace ckpt

#endif  // CKPT_UTIL_WIRE_H_
