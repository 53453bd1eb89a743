// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Which process on which boot of which host this is, and whether another one still lives.
// Reads /proc; any thread.  Private to src/store.  Test: tests/unit/store/process_id_test.cc
#ifndef CKPT_STORE_PROCESS_ID_H_
#define CKPT_STORE_PROCESS_ID_H_

#include <cstdint>
#include <string>

namespace ckpt {

struct ProcessId {
  std::string host;           // for people
  std::string boot_id;        // differs after each boot
  std::string pid_namespace;  // "pid:[4026531836]": what the pid counts in
  int64_t pid = 0;
  uint64_t start_time = 0;  // clock ticks after boot: tells a process from a later one with its pid
  bool operator==(const ProcessId&) const = default;
};

// Read anew at each call.
ProcessId ThisProcess();

enum class Life {
  kAlive,
  kDead,     // certainly: gone, or a zombie
  kUnknown,  // on another host or of another boot, or in a pid namespace that we cannot look into
};
Life LifeOf(const ProcessId& other, const ProcessId& self);

}  // namespace ckpt

#endif  // CKPT_STORE_PROCESS_ID_H_
