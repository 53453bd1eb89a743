// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One list of fields per message serves both directions, so that they cannot drift apart.
// Test: tests/unit/comm/parts_test.cc
#include "comm/message.h"

namespace ckpt {
namespace {

struct Put {
  WireWriter w;
  bool without_payload = false;
  void operator()(const uint64_t& v) { w.U64(v); }
  void operator()(const int64_t& v) { w.I64(v); }
  void operator()(const uint32_t& v) { w.U32(v); }
  void operator()(const int32_t& v) { w.I32(v); }
  void operator()(const bool& v) { w.U8(v ? 1 : 0); }
  void operator()(const Op& v) { w.U32(static_cast<uint32_t>(v)); }
  void operator()(const std::string& v) { w.Str(v); }
  void operator()(const Status& v) { PutStatus(w, v); }
  void Payload(const Bytes& v) {
    if (!without_payload) w.Str(v);
  }
  template <typename T>
  void List(const std::vector<T>& list, uint64_t) {
    w.U64(list.size());
    for (const T& item : list) Fields(*this, item);
  }
};

struct Get {
  WireReader r;
  bool ok = true;
  void operator()(uint64_t& v) { v = r.U64(); }
  void operator()(int64_t& v) { v = r.I64(); }
  void operator()(uint32_t& v) { v = r.U32(); }
  void operator()(int32_t& v) { v = r.I32(); }
  void operator()(bool& v) {
    const uint8_t byte = r.U8();
    if (byte > 1) ok = false;
    v = byte == 1;
  }
  void operator()(Op& v) { v = static_cast<Op>(r.U32()); }
  void operator()(std::string& v) { v = r.Str(); }
  void operator()(Status& v) { v = GetStatus(r); }
  void Payload(Bytes& v) { v = r.Str(); }
  template <typename T>
  void List(std::vector<T>& list, uint64_t min_item_bytes) {
    list.resize(r.Count(min_item_bytes));
    for (T& item : list) Fields(*this, item);
  }
};

// M is the message, or the const message.
template <typename M, typename T>
concept Is = std::is_same_v<std::remove_const_t<M>, T>;

template <typename C, Is<Field> M>
void Fields(C& c, M& m) {
  c(m.name);
  c(m.value);
}
template <typename C, Is<Endpoint> M>
void Fields(C& c, M& m) {
  uint32_t port = m.port;
  c(m.address);
  c(port);
  if constexpr (!std::is_const_v<M>) {
    if (port > UINT16_MAX) c.ok = false;
    m.port = static_cast<uint16_t>(port);
  }
}
template <typename C, Is<HelloMsg> M>
void Fields(C& c, M& m) {
  c(m.rank);
  c(m.size);
  c(m.host);
  c(m.pid);
  c(m.library_build);
  c.List(m.job_config, 16);
  c(m.exchange_port);
  if constexpr (!std::is_const_v<M>) {
    if (m.exchange_port > UINT16_MAX) c.ok = false;
  }
  c(m.remaining_ms);
  c(m.exchange_address);
}
template <typename C, Is<ArriveMsg> M>
void Fields(C& c, M& m) {
  c(m.call_id);
  c(m.call.op);
  c(m.call.step);
  c(m.call.timeout_ms);
  c.List(m.call.fields, 16);
  c(m.local);
}
template <typename C, Is<ContributeMsg> M>
void Fields(C& c, M& m) {
  c(m.round);
  c(m.phase);
  c(m.local);
  c.Payload(m.payload);
}
template <typename C, Is<ProgressMsg> M>
void Fields(C& c, M& m) {
  c(m.round);
  c(m.bytes);
  c(m.activity);
}
template <typename C, Is<HeartbeatMsg> M>
void Fields(C& c, M& m) {
  c(m.info.host);
  c(m.info.phase);
  c(m.info.doing);
  c(m.info.last_call);
  c(m.info.phase_step);
}
template <typename C, Is<AckMsg> M>
void Fields(C& c, M& m) {
  c(m.round);
}
template <typename C, Is<RosterMsg> M>
void Fields(C& c, M& m) {
  c(m.status);
  c.List(m.exchange, 12);
}
template <typename C, Is<VerdictMsg> M>
void Fields(C& c, M& m) {
  c(m.call_id);
  c(m.round);
  c(m.status);
}
template <typename C, Is<PhaseMsg> M>
void Fields(C& c, M& m) {
  c(m.round);
  c(m.phase);
  c(m.last);
  c(m.status);
  c.Payload(m.payload);
}
template <typename C, Is<LateMsg> M>
void Fields(C& c, M& m) {
  c(m.text);
}
template <typename C, Is<Owed> M>
void Fields(C& c, M& m) {
  c(m.op);
  c(m.step);
  c(m.any_call);
  c(m.verdict);
}
template <typename C, Is<ByeMsg> M>
void Fields(C& c, M& m) {
  c.List(m.owed, 13);
}

}  // namespace

template <typename M>
Bytes Encode(const M& message) {
  Put put;
  put.w.U8(static_cast<uint8_t>(M::kKind));
  Fields(put, message);
  return put.w.Take();
}

template <typename M>
Bytes EncodeHead(const M& message, uint64_t payload_bytes) {
  Put put;
  put.without_payload = true;
  put.w.U8(static_cast<uint8_t>(M::kKind));
  Fields(put, message);
  put.w.U64(payload_bytes);
  return put.w.Take();
}

Bytes EncodeEmpty(Kind kind) { return Bytes(1, static_cast<char>(kind)); }

Kind KindOf(std::string_view frame) {
  return frame.empty() ? Kind{0} : static_cast<Kind>(static_cast<uint8_t>(frame[0]));
}

template <typename M>
bool Decode(std::string_view frame, M* out) {
  if (KindOf(frame) != M::kKind) return false;
  Get get{WireReader(frame.substr(1))};
  Fields(get, *out);
  return get.ok && get.r.AtEnd();
}

#define CKPT_MESSAGE(M)               \
  template Bytes Encode<M>(const M&); \
  template bool Decode<M>(std::string_view, M*);
CKPT_MESSAGE(HelloMsg)
CKPT_MESSAGE(ArriveMsg)
CKPT_MESSAGE(ContributeMsg)
CKPT_MESSAGE(ProgressMsg)
CKPT_MESSAGE(HeartbeatMsg)
CKPT_MESSAGE(AckMsg)
CKPT_MESSAGE(RosterMsg)
CKPT_MESSAGE(VerdictMsg)
CKPT_MESSAGE(PhaseMsg)
CKPT_MESSAGE(LateMsg)
CKPT_MESSAGE(ByeMsg)
template Bytes EncodeHead<ContributeMsg>(const ContributeMsg&, uint64_t);
template Bytes EncodeHead<PhaseMsg>(const PhaseMsg&, uint64_t);

}  // namespace ckpt
