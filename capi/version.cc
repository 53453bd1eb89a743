// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What this library is and can.  Test: tests/conformance/version.c
#include <string_view>

#include "ckpt.h"

namespace {

constexpr std::string_view kFeatures[] = {
    "comm.env",    "comm.self",     "io.direct",     "load.convert",  "load.latest",
    "load.step",   "replica.check", "reader.blob",   "reader.verify", "save.cast",
    "save.keep",   "save.replace",  "load.fallback", "pin",           "retention",
    "state.alias", "state.rename",  "state.strides", "advise",
};

}  // namespace

uint32_t ckpt_abi_version(void) noexcept { return CKPT_HEADER_ABI; }

const char* ckpt_version_string(void) noexcept { return CKPT_VERSION; }

int32_t ckpt_has_feature(const char* name) noexcept {
  if (name == nullptr) return 0;
  for (std::string_view feature : kFeatures) {
    if (feature == name) return 1;
  }
  return 0;
}
