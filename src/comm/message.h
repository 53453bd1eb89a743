// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rank's monitor and the coordinator say to each other, one message per frame: a kind byte,
// then the fields.  Pure.  Test: tests/unit/comm/parts_test.cc
#ifndef CKPT_COMM_MESSAGE_H_
#define CKPT_COMM_MESSAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/rounds.h"
#include "comm/socket.h"
#include "util/status.h"
#include "util/wire.h"

namespace ckpt {

enum class Kind : uint8_t {
  kHello = 1,  // rank -> coordinator
  kArrive,
  kContribute,
  kProgress,
  kHeartbeat,
  kAck,
  kLeft,
  kRoster = 32,  // coordinator -> rank
  kPing,
  kVerdict,
  kPhase,
  kProbe,
  kLate,
  kBye,
};

struct HelloMsg {
  static constexpr Kind kKind = Kind::kHello;
  int32_t rank = 0, size = 0;
  std::string host;
  int64_t pid = 0;
  std::string library_build;
  std::vector<Field> job_config;
  uint32_t exchange_port = 0;
  uint64_t remaining_ms = 0;          // until this rank's own init deadline
  std::string exchange_address = {};  // empty: where this connection comes from
};

struct ArriveMsg {
  static constexpr Kind kKind = Kind::kArrive;
  uint64_t call_id = 0;
  Call call;
  Status local;
};

struct ContributeMsg {
  static constexpr Kind kKind = Kind::kContribute;
  uint64_t round = 0;
  uint32_t phase = 0;
  Status local;
  Bytes payload;  // last: may be sent as the frame's tail
};

struct ProgressMsg {
  static constexpr Kind kKind = Kind::kProgress;
  uint64_t round = 0, bytes = 0;
  std::string activity;
};

struct HeartbeatMsg {
  static constexpr Kind kKind = Kind::kHeartbeat;
  RankInfo info;
};

struct AckMsg {  // of a round's last message
  static constexpr Kind kKind = Kind::kAck;
  uint64_t round = 0;
};

struct RosterMsg {  // ends init, for good or bad
  static constexpr Kind kKind = Kind::kRoster;
  Status status;
  std::vector<Endpoint> exchange;  // by rank; no address: the coordinator's host
};

struct VerdictMsg {
  static constexpr Kind kKind = Kind::kVerdict;
  uint64_t call_id = 0, round = 0;
  Status status;
};

struct PhaseMsg {
  static constexpr Kind kKind = Kind::kPhase;
  uint64_t round = 0;
  uint32_t phase = 0;
  bool last = false;  // the round has ended: acknowledge
  Status status;
  Bytes payload;  // last: may be sent as the frame's tail
};

struct LateMsg {
  static constexpr Kind kKind = Kind::kLate;
  std::string text;
};

struct ByeMsg {  // the coordinator leaves
  static constexpr Kind kKind = Kind::kBye;
  std::vector<Owed> owed;  // to this rank
};

template <typename M>
Bytes Encode(const M& message);
// kLeft, kPing, kProbe.
Bytes EncodeEmpty(Kind kind);
// The head of a message that ends in `payload`, which is sent as the frame's tail.
template <typename M>
Bytes EncodeHead(const M& message, uint64_t payload_bytes);

// 0 for an empty frame.
Kind KindOf(std::string_view frame);
// False: malformed.
template <typename M>
[[nodiscard]] bool Decode(std::string_view frame, M* out);

}  // namespace ckpt

#endif  // CKPT_COMM_MESSAGE_H_
