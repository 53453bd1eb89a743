// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One rank of the benchmark "first save": a forked process that holds its share of a state, reaches
// libckpt.so by dlopen, and saves when told to over a socket.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

enum class Layout {
  kSharded,  // all tensors cut into flat ranges over the ranks
  kZero,     // 1/7 of the bytes (parameters) on every rank, 6/7 cut into flat ranges
};

struct Job {
  std::string library, root, config, id;
  Layout layout = Layout::kSharded;
  uint64_t bytes = 0;  // of the whole state, each byte counted once
  int ranks = 0;
};

struct Order {  // from the driver; step < 0: finalize and exit
  int64_t step;
};

struct Answer {  // from the rank; the first one, before any order, says that it is ready
  int64_t step;
  double start, end;     // of the call, on the clock that all processes share
  uint64_t extra_bytes;  // peak memory during the call, less that before ckpt_init
  uint64_t snapshot_ns, io_ns, commit_ns, exchanged;
  char version[32];
};

// Never returns.  Ends with _exit(0) after the last order, Fail() otherwise.
[[noreturn]] void ServeRank(const Job& job, int rank, int socket);

}  // namespace bench
