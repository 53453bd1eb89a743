// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the targets share.
#include "fuzz/target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace ckpt::fuzz {

std::span<const Target> Targets() {
  static constexpr Target kTargets[] = {
      {"handshake", RunHandshake, HandshakeSeeds, 64},
      {"messages", RunMessages, MessageSeeds, 64},
      {"rounds", RunRounds, RoundsSeeds, 0},
      {"coordinator", RunCoordinator, CoordinatorSeeds, 0},
      {"exchange", RunExchange, ExchangeSeeds, 0},
      {"wires", RunWires, WireSeeds, 64},
  };
  return kTargets;
}

void Require(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", claim);
  std::abort();
}

uint8_t Script::Byte() {
  if (in_.empty()) return 0;
  const auto out = static_cast<uint8_t>(in_[0]);
  in_.remove_prefix(1);
  return out;
}

std::string_view Script::Text() {
  const size_t n = std::min<size_t>(Byte(), in_.size());
  const std::string_view out = in_.substr(0, n);
  in_.remove_prefix(n);
  return out;
}

Bytes AsText(std::string_view text) {
  Require(text.size() < 256, "a seed's text is short");
  return Bytes(1, static_cast<char>(text.size())) + Bytes(text);
}

}  // namespace ckpt::fuzz
