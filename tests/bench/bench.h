// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What benchmarks share: clock, median and range, the machine in words, memory of this process, and
// the plain write that saves are compared with.  Errors end the program with a sentence: a
// benchmark has no caller.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

[[noreturn]] void Fail(const std::string& what);  // with errno in words if it is set

double Now();  // seconds, monotonic, the same clock in all processes

struct Range {
  double median, min, max;
};
Range Summarize(std::vector<double> values);  // REQUIRES: not empty

// "2 cores, 23.5 GiB, Linux 6.18.44, ext4": of the file system that holds `folder`.  No names.
std::string Machine(const std::string& folder);
std::string Today();  // 2026-11-30, UTC

// "VmRSS" or "VmHWM" of this process, in bytes.
uint64_t Memory(const char* field);
// Makes VmHWM start again at VmRSS.
void ResetPeak();

// `n` bytes in private memory, all touched.  Element i of 4 bytes depends on first + i only.
char* WarmBytes(uint64_t n, uint64_t first);

// One process, a new file, write(2) of 1 MiB at a time, fsync: seconds.  The file is removed after.
double PlainWrite(const std::string& path, const char* data, uint64_t n);

}  // namespace bench
