// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Tells the contexts of one process apart: the smallest number that no live context of that name
// uses.  The n-th context of a name meets the n-th of the other ranks.  Thread-safe.
// Test: tests/unit/comm/parts_test.cc
#ifndef CKPT_COMM_CONTEXT_NUMBER_H_
#define CKPT_COMM_CONTEXT_NUMBER_H_

#include <cstdint>
#include <string>

namespace ckpt {

class ContextNumber {  // taken for the object's life
 public:
  explicit ContextNumber(std::string name);
  ~ContextNumber();
  ContextNumber(const ContextNumber&) = delete;
  ContextNumber& operator=(const ContextNumber&) = delete;
  uint32_t value() const { return value_; }

 private:
  const std::string name_;
  uint32_t value_ = 0;
};

}  // namespace ckpt

#endif  // CKPT_COMM_CONTEXT_NUMBER_H_
