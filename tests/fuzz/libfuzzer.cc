// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer's entry for the target that CKPT_FUZZ_TARGET names; one program per target.
#include <cstring>

#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ckpt::fuzz::Target* const target = [] {
    for (const auto& t : ckpt::fuzz::Targets()) {
      if (std::strcmp(t.name, CKPT_FUZZ_TARGET) == 0) return &t;
    }
    ckpt::fuzz::Require(false, "the target exists");
    return static_cast<const ckpt::fuzz::Target*>(nullptr);
  }();
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
