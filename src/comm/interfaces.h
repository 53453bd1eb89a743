// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of this host's addresses a rank uses (CKPT_INTERFACE), and who holds a port that it cannot
// have.  Thread-safe; asks the kernel each time.  Test: tests/unit/comm/interfaces_test.cc
#ifndef CKPT_COMM_INTERFACES_H_
#define CKPT_COMM_INTERFACES_H_

#include <cstdint>
#include <string>

#include "util/status.h"

namespace ckpt {

// "[::1]" -> "::1"; anything else as it is.
std::string WithoutBrackets(const std::string& address);

// `wanted`: an interface's name, or an address (numeric; brackets allowed), which is given back. Of
// an interface with several addresses: one that `coordinator` (MASTER_ADDR, may be empty) resolves
// to, else one of the family it resolves to, else IPv4 before IPv6; link-local ones last.
// INVALID_ARGUMENT, cause.name CKPT_INTERFACE, that lists what this host has.
Result<std::string> AddressOfInterface(const std::string& wanted, const std::string& coordinator);

// "process 123 (nginx) holds it", as far as /proc says to this user.
std::string WhoListens(uint16_t port);

}  // namespace ckpt

#endif  // CKPT_COMM_INTERFACES_H_
