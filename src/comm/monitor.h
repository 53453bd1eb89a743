// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank's side of the control plane: its one connection to the coordinator, heartbeats, and the
// watch over the coordinator.  Belongs to its loop's thread.  Test: tests/unit/comm/group_test.cc
#ifndef CKPT_COMM_MONITOR_H_
#define CKPT_COMM_MONITOR_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/activity.h"
#include "comm/describe.h"
#include "comm/inbox.h"
#include "comm/message.h"
#include "comm/net.h"
#include "comm/proc.h"

namespace ckpt {

struct MonitorOptions {
  Millis heartbeat{1000};
  Millis contract_timeout{60000};
  uint64_t max_message_bytes = 1ull << 30;
  pid_t main_thread = 0;
  std::function<void(const std::string&)> on_late;
  Describer::Callback describe;
};

class Monitor {
 public:
  // `inbox` and `activity` outlive this.
  Monitor(Loop& loop, MonitorOptions options, Inbox* inbox, Activity* activity);
  ~Monitor();

  void Start(Fd control, HelloMsg hello);
  void Send(Bytes head, Bytes tail = {});
  // `done` runs once the coordinator has closed, or after 300 ms.
  void Leave(std::function<void()> done);

 private:
  void Take(std::string_view frame);
  bool Dispatch(std::string_view frame);
  void TakePhase(PhaseMsg message);
  void Tick();
  void Heartbeat(const std::string& details);
  void Probed();
  void Lost(Condition how, const std::string& why, std::vector<Owed> owed = {});
  void LeaveDone();

  Loop& loop_;
  const MonitorOptions options_;
  const std::string host_;
  Inbox* const inbox_;
  Activity* const activity_;
  ThreadWatch watch_;
  std::shared_ptr<Conn> conn_;
  bool joined_ = false;  // the roster has come
  bool bye_ = false;
  TimePoint last_tick_{}, last_heartbeat_{};
  Clock::duration silence_{};  // of the coordinator, without time in which this process stood still
  Timer timer_, probe_timer_, leave_timer_;
  std::function<void()> on_left_;
  // Tells a description that comes after its probe's 200 ms from the one waited for.
  std::shared_ptr<uint64_t> probe_ = std::make_shared<uint64_t>(0);
  bool probe_open_ = false;
  Describer describer_;  // last: its thread ends before the rest goes
};

}  // namespace ckpt

#endif  // CKPT_COMM_MONITOR_H_
