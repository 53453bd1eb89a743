// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the host's describe callback on a thread of its own (`ckpt-desc`), made when first needed,
// so that a callback that hangs (an interpreter lock held elsewhere) delays nobody. Thread-safe.
// Test: tests/unit/comm/parts_test.cc
#ifndef CKPT_COMM_DESCRIBE_H_
#define CKPT_COMM_DESCRIBE_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace ckpt {

class Describer {
 public:
  using Callback = std::function<std::string()>;
  // `callback` may be empty.
  explicit Describer(Callback callback);
  // Waits at most a second for a callback that runs; a thread that still hangs then is left behind.
  ~Describer();

  bool available() const;
  // `done` gets the text on the describer's thread, if the callback ever returns.  Dropped while an
  // earlier request is still running.
  void Ask(std::function<void(std::string)> done);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // shared with the thread, which may outlive this object
  std::thread thread_;
};

}  // namespace ckpt

#endif  // CKPT_COMM_DESCRIBE_H_
