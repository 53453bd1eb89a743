// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of one host find rank 0: a 0600 file in a 0700 folder of this user, named by the
// hash of the job id, with port and secret.  Pure file work, no sockets; one thread at a time.
// Test: tests/unit/comm/secret_file_test.cc
#ifndef CKPT_COMM_SECRET_FILE_H_
#define CKPT_COMM_SECRET_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "util/status.h"

namespace ckpt {

struct Rendezvous {
  uint16_t port = 0;
  std::string secret;
  uint64_t incarnation = 0;
  pid_t pid = 0;  // rank 0's, with its start time: tells a leftover from a live one
  uint64_t start_time = 0;
};

// $XDG_RUNTIME_DIR/ckpt, or /tmp/ckpt-<uid> where that is not this user's.
std::string RuntimeFolder(const std::function<const char*(const char*)>& get);

// Makes the folder if needed, refuses it unless it is a real folder of this user with mode 0700
// (IO, path named), and publishes by temporary file + rename.  INVALID_ARGUMENT if a live rank 0 of
// this job has published already.  Returns the file's path.
Result<std::string> Publish(const std::string& folder, const std::string& name,
                            const Rendezvous& rendezvous);

// nullopt: not there, or left by a process that is gone.  IO: folder or file cannot be trusted.
Result<std::optional<Rendezvous>> ReadRendezvous(const std::string& folder,
                                                 const std::string& name);

// Only if it still is ours.
void Withdraw(const std::string& folder, const std::string& name, uint64_t incarnation);

}  // namespace ckpt

#endif  // CKPT_COMM_SECRET_FILE_H_
