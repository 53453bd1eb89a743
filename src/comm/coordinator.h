// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Rank 0's side of the control plane: lets the ranks in, tells all of them the roster, then feeds
// what they say to Rounds and sends what it decides.  No rule of the contract is here.
// Belongs to its loop's thread.  Test: tests/unit/comm/group_test.cc
#ifndef CKPT_COMM_COORDINATOR_H_
#define CKPT_COMM_COORDINATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/join.h"
#include "comm/listener.h"
#include "comm/message.h"
#include "comm/net.h"
#include "comm/rounds.h"

namespace ckpt {

struct CoordinatorOptions {
  int32_t size = 1;
  Millis heartbeat{1000};
  Millis stall_timeout{120000};
  uint64_t max_message_bytes = 1ull << 30;
  Credentials credentials;
  // All contributions of a phase, for the recipe.
  std::function<void(uint64_t round, uint32_t phase, std::vector<Bytes> all)> on_collected;
};

class Coordinator {
 public:
  Coordinator(Loop& loop, CoordinatorOptions options);
  ~Coordinator();

  // `listening` may be empty (size 1); `own` is the coordinator's end of rank 0's own connection;
  // `port`: what `listening` is a duplicate of, if it is shared.
  void Start(Fd listening, Fd own, std::shared_ptr<SharedPort> port = {});
  // The recipe.
  void Publish(uint64_t round, uint32_t phase, const Status& status, std::vector<Bytes> payloads,
               bool last);
  Status BeginCommit(uint64_t round);
  // Says goodbye; `done` runs once everything is sent and the others have closed, or after 500 ms.
  void Finish(std::function<void()> done);

 private:
  struct Peer {
    std::shared_ptr<Conn> conn;
    bool left = false;
  };
  // Rank 0's own copy of a round's last message, held until the others have acknowledged theirs:
  // then rank 0 may exit without taking their results with it.
  struct Held {
    PhaseMsg own;
    std::set<int32_t> waiting;
    TimePoint until = TimePoint::max();
    bool complete = false;  // `own` is there: everybody's message has been sent
  };

  void Admit(int32_t rank, std::shared_ptr<Conn> conn);
  void TakeHello(int32_t rank, const std::shared_ptr<Conn>& conn, std::string_view frame);
  void EndInit(const Status& status);
  void StartRounds();
  void Take(int32_t rank, std::string_view frame);
  bool Dispatch(int32_t rank, std::string_view frame);
  void ConnectionClosed(int32_t rank, const Conn* conn);
  void Tick();
  void Flush();
  void Emit(Outgoing out);
  void Arm();
  void Send(int32_t rank, Bytes head, Bytes tail = {});
  void SendPhase(int32_t rank, PhaseMsg message);
  void Acknowledged(int32_t rank, uint64_t round);
  void ReleaseHeld(bool all_overdue);
  void CheckFinished();
  std::shared_ptr<Conn>& ConnOf(int32_t rank) { return peers_[static_cast<size_t>(rank)].conn; }

  Loop& loop_;
  const CoordinatorOptions options_;
  const TimePoint started_;
  Join join_;
  TimePoint init_deadline_ = TimePoint::max();
  bool init_ended_ = false;
  Status init_status_;  // once it has ended
  std::unique_ptr<Listener> listener_;
  std::vector<Peer> peers_;
  std::set<std::shared_ptr<Conn>> strangers_;  // authenticated, HELLO not yet seen or refused
  std::optional<Rounds> rounds_;
  uint64_t last_published_ = 0;  // the round that the publication being flushed ends
  std::map<uint64_t, Held> held_;
  TimePoint next_ping_{};
  TimePoint armed_ = TimePoint::max();  // when the timer will fire
  Timer timer_;
  Timer finish_timer_;
  std::function<void()> on_finished_;
};

}  // namespace ckpt

#endif  // CKPT_COMM_COORDINATOR_H_
