// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The fuzz targets: what a hostile or broken peer can send, fed to the code that reads it.  Each is
// one function of bytes, run by libFuzzer (tools/fuzz) and on every file of corpus/ (replay_test).
#ifndef CKPT_TESTS_FUZZ_TARGET_H_
#define CKPT_TESTS_FUZZ_TARGET_H_

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/wire.h"

namespace ckpt::fuzz {

using Seeds = std::vector<std::pair<std::string, Bytes>>;  // file name, input

struct Target {
  const char* name;  // also of its folder in corpus/
  // Aborts where a claim does not hold.
  void (*run)(std::string_view input);
  Seeds (*seeds)();  // real messages
  // Bytes of one input's allocations per byte of input, beyond a constant; 0: not asserted, since
  // threads and sockets allocate too.
  uint64_t growth;
};
std::span<const Target> Targets();

// Prints `claim` and aborts, which libFuzzer and the replay both see.
void Require(bool holds, const char* claim);

// Cuts an input into small values and strings; at its end all are 0 and empty.
class Script {
 public:
  explicit Script(std::string_view in) : in_(in) {}
  bool done() const { return in_.empty(); }
  uint8_t Byte();
  std::string_view Text();  // one byte of length, then so many bytes
  std::string_view Rest() { return std::exchange(in_, {}); }

 private:
  std::string_view in_;
};
// The reverse of Text.  REQUIRES: text.size() < 256.
Bytes AsText(std::string_view text);

void RunHandshake(std::string_view input);
Seeds HandshakeSeeds();
void RunMessages(std::string_view input);
Seeds MessageSeeds();
void RunRounds(std::string_view input);
Seeds RoundsSeeds();
void RunCoordinator(std::string_view input);
Seeds CoordinatorSeeds();
void RunExchange(std::string_view input);
Seeds ExchangeSeeds();
void RunWires(std::string_view input);
Seeds WireSeeds();

}  // namespace ckpt::fuzz

#endif  // CKPT_TESTS_FUZZ_TARGET_H_
