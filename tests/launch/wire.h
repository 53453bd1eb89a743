// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages between the launcher and a rank: one datagram of a SOCK_SEQPACKET pair each, a kind and
// two strings. Shared by launcher.cc and rank.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace launch {

inline constexpr size_t kMaxMessage = 64 * 1024;

// Kinds, rank to launcher.
inline constexpr char kBarrier = 'B';  // name, members "0,2"
inline constexpr char kEvent = 'E';    // name
inline constexpr char kWaitFor = 'W';  // name, count
inline constexpr char kSignal = 'S';   // rank, signal number
inline constexpr char kPut = 'P';      // key, value
// Kinds, launcher to rank.
inline constexpr char kGo = 'o';
inline constexpr char kBroken = 'x';  // why

struct Message {
  char kind = 0;
  std::string a = {};
  std::string b = {};
};

bool Send(int fd, const Message& message);  // false: the other side is gone
std::optional<Message> Receive(int fd, bool wait);

}  // namespace launch
