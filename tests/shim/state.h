// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The shim's one state per process, and what its interposers (calls.cc) ask of it.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <string>

namespace shim {

// The next definition of a call that we define: a sanitizer's or the C library's.
template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool Active();
bool ActiveForReads();  // reads are events only where a rule names them

// What the plan wants of one call.
struct Order {
  int error = 0;                // not 0: do not call, fail with it
  uint64_t limit = UINT64_MAX;  // bytes that may be transferred
};

// An event, unless the plan does not cover its paths: counts, logs, waits, kills. Thread-safe.
Order Before(const char* op, const std::string& path, const std::string& to = {});

// Of a file descriptor, or of a name in the folder `at`, as the kernel sees it.
std::string PathOf(int fd);
std::string PathAt(int at, const char* name);

// Close is an event only for a file that was written to.
void NoteWritten(int fd);
bool ForgetWritten(int fd);

}  // namespace shim
