// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A ckpt_reader as C++: freed at the end, its lists as vectors, its errors as exit codes.
// Strings and shapes in the lists belong to the reader.
#ifndef CKPT_CLI_CHECKPOINT_H_
#define CKPT_CLI_CHECKPOINT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ckpt.h"
#include "cli/commands.h"

namespace cli {

struct FreeError {
  void operator()(ckpt_error* e) const { ckpt_error_free(e); }
};
using Error = std::unique_ptr<ckpt_error, FreeError>;

// The exit code that says the same as `status`.
Exit ExitOf(ckpt_status status);
// "ckpt: <message>" to stderr; the exit code.
Exit Complain(ckpt_status status, const ckpt_error* error);

class Checkpoint {
 public:
  ckpt_status TryOpen(const Request& request, Error* error);
  // Complains and returns something else than kGood if it cannot be opened.
  Exit Open(const Request& request);

  ckpt_reader* get() const { return reader_.get(); }
  std::vector<ckpt_checkpoint_info> Steps() const;
  // The step that was opened: the one asked for, or the newest.
  ckpt_checkpoint_info Opened() const;
  std::vector<ckpt_tensor_info> Tensors() const;
  std::vector<ckpt_file_info> Files() const;
  std::vector<ckpt_blob_info> Blobs() const;
  // Rank and bytes of each writer of file i.
  std::vector<std::pair<int32_t, uint64_t>> Writers(uint64_t i) const;

 private:
  struct Free {
    void operator()(ckpt_reader* r) const { ckpt_reader_free(r); }
  };
  std::unique_ptr<ckpt_reader, Free> reader_;
};

}  // namespace cli

#endif  // CKPT_CLI_CHECKPOINT_H_
