// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Sockets of this process that no network and no file system sees.
#ifndef CKPT_TESTS_FUZZ_LOCAL_SOCKET_H_
#define CKPT_TESTS_FUZZ_LOCAL_SOCKET_H_

#include <string>

#include "comm/socket.h"

namespace ckpt::fuzz {

// One that listens, with the name by which it is reached, and a connection to it.
Fd ListenLocally(std::string* name);
Fd ConnectLocally(const std::string& name);

}  // namespace ckpt::fuzz

#endif  // CKPT_TESTS_FUZZ_LOCAL_SOCKET_H_
