// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Which CRC32C back ends this CPU can run, fastest first.  Test: tests/unit/io/crc32c_test.cc
#include "io/crc32c_impl.h"

namespace ckpt {

const std::vector<const Crc32cBackend*>& Crc32cBackends() {
  static const std::vector<const Crc32cBackend*> backends = [] {
    std::vector<const Crc32cBackend*> found;
#if defined(__x86_64__)
    for (const auto* backend : {Crc32cVpclmul512(), Crc32cVpclmul256(), Crc32cSse42()}) {
      if (backend != nullptr) found.push_back(backend);
    }
#endif
    found.push_back(&Crc32cPortable());
    return found;
  }();
  return backends;
}

}  // namespace ckpt
