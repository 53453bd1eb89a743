// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Every message of the control plane, and the frames that carry them.
#include "comm/message.h"
#include "comm/socket.h"
#include "fuzz/target.h"

namespace ckpt::fuzz {
namespace {

constexpr uint8_t kFrames = 255;  // no kind of message: the rest is a stream of frames
constexpr uint64_t kMaxFrame = 4096;

// One list of fields serves both directions: what decodes is exactly what would be sent.
template <typename M>
void RoundTrip(std::string_view frame) {
  M message;
  if (Decode(frame, &message)) Require(Encode(message) == frame, "a message encodes as it came");
}

void ReadFrames(std::string_view stream) {
  auto pair = SocketPair();
  Require(pair.ok(), "a socket pair");
  const Patience patience{Millis(10000), {}};
  stream = stream.substr(0, 16384);  // fits a socket's buffer: nobody else reads
  Require(SendAll(pair->first.get(), stream, patience).ok(), "the stream is sent");
  pair->first = Fd();
  size_t taken = 0;
  for (;;) {
    const auto frame = ReceiveFrame(pair->second.get(), kMaxFrame, patience);
    if (!frame.ok()) break;
    Require(frame->size() <= kMaxFrame, "no frame is longer than allowed");
    Require(stream.substr(taken + 4, frame->size()) == *frame, "a frame holds what was sent");
    taken += 4 + frame->size();
  }
  Require(taken <= stream.size(), "no more is read than was sent");
}

}  // namespace

void RunMessages(std::string_view input) {
  if (!input.empty() && static_cast<uint8_t>(input[0]) == kFrames) {
    return ReadFrames(input.substr(1));
  }
  RoundTrip<HelloMsg>(input);
  RoundTrip<ArriveMsg>(input);
  RoundTrip<ContributeMsg>(input);
  RoundTrip<ProgressMsg>(input);
  RoundTrip<HeartbeatMsg>(input);
  RoundTrip<AckMsg>(input);
  RoundTrip<RosterMsg>(input);
  RoundTrip<VerdictMsg>(input);
  RoundTrip<PhaseMsg>(input);
  RoundTrip<LateMsg>(input);
  RoundTrip<ByeMsg>(input);
}

Seeds MessageSeeds() {
  RankReport report;
  report.rank = 2;
  report.condition = Condition::kDead;
  report.host = "node7";
  report.phase = "forward";
  const Status failed =
      Status(Code::kIo, "write model: no space", Cause{2, 28, "model", "w", "tag"})
          .WithRanks({report});
  WireWriter frame;
  frame.U32(5);
  const Bytes five = frame.Take() + "hello";
  WireWriter huge;
  huge.U8(static_cast<uint8_t>(Kind::kRoster));
  huge.I32(0);
  huge.U64(~uint64_t{0} / 12);
  return {
      {"hello", Encode(HelloMsg{1, 4, "node1", 77, "ckpt 0.1.0", {{"io.align", "4096"}}, 99, 500})},
      {"arrive", Encode(ArriveMsg{9, {Op::kSave, 100, 60000, {{"tag", "a"}}}, Status()})},
      {"arrive-failed", Encode(ArriveMsg{9, {Op::kLoad, -1, 5, {{"step", "7"}}}, failed})},
      {"contribute", Encode(ContributeMsg{3, 1, Status(), "payload"})},
      {"contribute-failed", Encode(ContributeMsg{3, 2, failed, ""})},
      {"progress", Encode(ProgressMsg{3, 4096, "pwrite of model"})},
      {"heartbeat", Encode(HeartbeatMsg{{"node1", "forward", "running", "ckpt_load() OK", 17}})},
      {"ack", Encode(AckMsg{3})},
      {"roster", Encode(RosterMsg{Status(), {{"10.0.0.1", 65535}, {"", 1}}})},
      {"roster-huge-count", huge.Take()},
      {"verdict", Encode(VerdictMsg{9, 3, failed})},
      {"phase", Encode(PhaseMsg{3, 2, true, Status(), "order"})},
      {"late", Encode(LateMsg{"save(step=100): waiting for ranks 1-3"})},
      {"bye", Encode(ByeMsg{{{Op::kSave, 100, true, Status(Code::kIo, "disk full")}}})},
      {"left", EncodeEmpty(Kind::kLeft)},
      {"frames", Bytes(1, '\xff') + five + five + five.substr(0, 6)},
      {"frame-huge", Bytes("\xff\xff\xff\xff\x7f", 5)},
  };
}

}  // namespace ckpt::fuzz
