// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The moving parts of one rank's Group: loop and thread of the monitor, the coordinator on rank 0,
// the exchange.  group.cc is the thin face over it.  Thread-safe.
// Test: tests/unit/comm/group_test.cc
#ifndef CKPT_COMM_MEMBER_H_
#define CKPT_COMM_MEMBER_H_

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "comm/activity.h"
#include "comm/bootstrap.h"
#include "comm/comm.h"
#include "comm/context_number.h"
#include "comm/coordinator.h"
#include "comm/exchange.h"
#include "comm/inbox.h"
#include "comm/monitor.h"
#include "comm/net.h"

namespace ckpt {

class Member {
 public:
  Member(GroupOptions options, JobIdentity identity);
  ~Member();  // leaves

  // The init collective, on the caller's thread.
  Status Join();
  void Leave() CKPT_EXCLUDES(leave_mu_);

  const JobIdentity& identity() const { return identity_; }
  const GroupOptions& options() const { return options_; }
  Inbox& inbox() { return inbox_; }
  Activity& activity() { return activity_; }

  // To the coordinator, through the monitor; never waits.
  void Send(Bytes head, Bytes tail = {});
  // Rank 0.
  void Publish(uint64_t round, uint32_t phase, const Status& status, std::vector<Bytes> payloads,
               bool last);
  Status BeginCommit(uint64_t round);
  // nullptr for a group of one.
  ExchangeServer* exchange_server() { return exchange_server_.get(); }
  ExchangeClient* exchange_client() { return exchange_client_.get(); }

 private:
  void StartMonitor(Seat* seat, HelloMsg hello);
  Status OpenExchange(const Seat& seat, uint16_t* port);
  HelloMsg Hello(uint16_t exchange_port, TimePoint deadline) const;
  void ConnectExchange(const Seat& seat, std::vector<Endpoint> peers);

  const GroupOptions options_;
  const JobIdentity identity_;
  std::optional<ContextNumber> number_;
  Inbox inbox_;
  Activity activity_;
  Loop loop_;  // before all that lives on it
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Monitor> monitor_;
  std::unique_ptr<ExchangeServer> exchange_server_;
  std::unique_ptr<ExchangeClient> exchange_client_;
  Mutex leave_mu_;
  std::thread thread_ CKPT_GUARDED_BY(leave_mu_);
};

}  // namespace ckpt

#endif  // CKPT_COMM_MEMBER_H_
