// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The real Coordinator on its loop, over local sockets: two honest ranks, and a third that knows
// the secret and then sends anything.  The honest ones must get their answers all the same.
#include "comm/coordinator.h"

#include <sys/socket.h>

#include <thread>

#include "comm/bootstrap.h"
#include "fuzz/local_socket.h"
#include "fuzz/target.h"

namespace ckpt::fuzz {
namespace {

constexpr int32_t kHostile = 2;
enum Mode : uint8_t { kJoinsFirst = 0, kBeforeHello = 1 };

const Patience kPatience{Millis(20000), {}};

const Credentials& Shared() {
  static const Credentials shared{SecretFromToken("fuzz"), "job", 7};
  return shared;
}

Bytes Hello(int32_t rank, uint64_t remaining_ms) {
  return Encode(HelloMsg{rank, 3, "node", 1, "build", {{"k", "v"}}, 9, remaining_ms});
}
Bytes Arrive(int64_t step) {
  return Encode(ArriveMsg{1, {Op::kSave, step, 20000, {{"tag", "a"}}}, Status()});
}

class Scene {
 public:
  Scene() {
    std::string name;
    Fd listening = ListenLocally(&name);
    auto pair = SocketPair();
    Require(pair.ok(), "a socket pair");
    ranks_[0] = std::move(pair->first);
    for (const int32_t r : {1, kHostile}) ranks_[r] = ConnectLocally(name);
    CoordinatorOptions o;
    o.size = 3;
    o.max_message_bytes = 1 << 16;
    o.credentials = Shared();
    o.on_collected = [this](uint64_t round, uint32_t phase, std::vector<Bytes>) {
      loop_.Post([this, round, phase] {
        coordinator_->Publish(round, phase, Status(), {"result"}, /*last=*/true);
      });
    };
    coordinator_ = std::make_unique<Coordinator>(loop_, std::move(o));
    coordinator_->Start(std::move(listening), std::move(pair->second));
    thread_ = std::thread([this] { loop_.Run(); });
    for (const int32_t r : {1, kHostile}) {
      ClientHandshake handshake(Shared(), r, 0, Purpose::kControl);
      Require(ProveSecret(Raw(r), &handshake, kPatience).ok(), "the proof is taken");
    }
  }
  ~Scene() {
    loop_.Post([this] { coordinator_->Finish([this] { loop_.Stop(); }); });
    for (Fd& fd : ranks_) fd = Fd();
    thread_.join();
  }

  int Raw(int32_t rank) const { return ranks_[rank].get(); }
  // Whether it was taken: the coordinator may have closed the connection already.
  bool Send(int32_t rank, std::string_view frame) const {
    return SendFrame(Raw(rank), frame, kPatience).ok();
  }
  void HostileLeaves() { ranks_[kHostile] = Fd(); }

  // The next message of this kind; whatever else comes must be well-formed too.
  template <typename M>
  M Next(int32_t rank) const {
    for (;;) {
      const auto frame = ReceiveFrame(Raw(rank), 1 << 20, kPatience);
      Require(frame.ok(), "an honest rank is answered");
      M out;
      if (Decode(*frame, &out)) return out;
      Require(KindOf(*frame) != M::kKind, "the coordinator's messages are well-formed");
    }
  }

 private:
  Loop loop_;
  std::unique_ptr<Coordinator> coordinator_;
  std::thread thread_;
  Fd ranks_[3];
};

void SendAnything(const Scene& scene, Script* script) {
  while (!script->done()) {
    const uint8_t length = script->Byte();
    if (length == 255) {  // a raw end: a frame's length, or half of one
      (void)SendAll(scene.Raw(kHostile), script->Rest(), kPatience).ok();
      return;
    }
    const std::string_view rest = script->Rest();
    const std::string_view frame = rest.substr(0, length);
    *script = Script(rest.substr(frame.size()));
    if (!scene.Send(kHostile, frame)) return;
  }
}

}  // namespace

void RunCoordinator(std::string_view input) {
  static const bool started = StartAuth().ok();
  Require(started, "libsodium starts");
  Script script(input.substr(0, 1 << 14));  // fits the sockets' buffers
  const auto mode = static_cast<Mode>(script.Byte() % 2);
  Scene scene;
  // Where the third may never join, init ends soon.
  const uint64_t remaining_ms = mode == kJoinsFirst ? 20000 : 10;
  if (mode == kBeforeHello) SendAnything(scene, &script);
  for (const int32_t r : {0, 1}) (void)scene.Send(r, Hello(r, remaining_ms));
  if (mode == kJoinsFirst) (void)scene.Send(kHostile, Hello(kHostile, 20000));
  const RosterMsg roster = scene.Next<RosterMsg>(1);
  Require(roster.status.code() == scene.Next<RosterMsg>(0).status.code(), "one roster for all");
  if (!roster.status.ok()) return;
  if (mode == kJoinsFirst) SendAnything(scene, &script);
  for (const int32_t r : {0, 1}) (void)scene.Send(r, Arrive(1));
  scene.HostileLeaves();
  for (const int32_t r : {0, 1}) {
    const VerdictMsg verdict = scene.Next<VerdictMsg>(r);
    Require(verdict.call_id == 1, "the verdict is that of the call");
    if (!verdict.status.ok()) continue;
    Require(scene.Send(r, Encode(ContributeMsg{verdict.round, 1, Status(), "x"})), "sent");
  }
}

Seeds CoordinatorSeeds() {
  const Bytes first(1, kJoinsFirst), before(1, kBeforeHello);
  const Bytes contribute = AsText(Encode(ContributeMsg{1, 1, Status(), "x"}));
  return {
      {"agrees", first + AsText(Arrive(1)) + contribute},
      {"fails",
       first + AsText(Encode(ArriveMsg{1, {Op::kSave, 1, 20000, {}}, Status(Code::kIo, "disk")}))},
      {"beats", first + AsText(Encode(HeartbeatMsg{{"h", "p", "d", "l", 3}})) +
                    AsText(Encode(ProgressMsg{1, 2, "pwrite"})) + AsText(Encode(AckMsg{1}))},
      {"leaves", first + AsText(EncodeEmpty(Kind::kLeft))},
      {"malformed", first + AsText("\x02garbage")},
      {"long-frame", first + Bytes("\xff\xff\xff\xff\x7f", 5)},
      {"half-frame", first + Bytes("\xff\x40\0\0\0half", 9)},
      {"joins", before + AsText(Hello(kHostile, 10))},
      {"claims-another-rank", before + AsText(Hello(1, 10))},
      {"beats-before-hello", before + AsText(Encode(HeartbeatMsg{{"h", "p", "d", "l", 3}}))},
      {"joins-twice", before + AsText(Hello(kHostile, 10)) + AsText(Hello(kHostile, 10))},
      {"no-frame", before},
  };
}

}  // namespace ckpt::fuzz
