// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "util/sync.h"

#include <pthread.h>
#include <signal.h>

namespace ckpt {

std::thread StartThread(std::string name, std::function<void()> body) {
  // The new thread inherits the mask: it must be blocked before the thread exists.
  struct BlockAll {
    sigset_t before;
    BlockAll() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~BlockAll() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } block;
  return std::thread([name = std::move(name), body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    body();
  });
}

}  // namespace ckpt
