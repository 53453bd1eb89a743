// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A small language for tests of several ranks: groups of one process, each rank on a thread of its
// own.  Nothing sleeps to synchronise; what must have happened is waited for.
#ifndef CKPT_TESTS_UNIT_COMM_WORLD_H_
#define CKPT_TESTS_UNIT_COMM_WORLD_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/comm.h"
#include "util/text.h"

namespace ckpt::testing {

inline GroupOptions Options(int32_t rank, int32_t size, const std::string& job) {
  GroupOptions o;
  o.library_build = "test";
  o.heartbeat = Millis(100);
  o.contract_timeout = Millis(20000);
  JobIdentity id;
  id.rank = rank;
  id.size = size;
  id.job_id = job;
  id.source = "test";
  o.identity = id;
  return o;
}

inline std::string NewJob() {
  static std::atomic<int> next{0};
  return Cat("test ", ::getpid(), " ", next++);
}

// Runs `body(rank)` for all ranks at once and waits for all.
inline void OnAll(int32_t size, const std::function<void(int32_t rank)>& body) {
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < size; ++r) threads.emplace_back([&body, r] { body(r); });
  for (std::thread& t : threads) t.join();
}

struct World {
  explicit World(int32_t n, const std::function<void(int32_t, GroupOptions&)>& adjust = {})
      : size(n), groups(static_cast<size_t>(n)), status(static_cast<size_t>(n)) {
    const std::string job = NewJob();
    OnAll(size, [&](int32_t r) {
      GroupOptions o = Options(r, size, job);
      if (adjust) adjust(r, o);
      auto made = Group::Create(std::move(o));
      status[static_cast<size_t>(r)] = made.status();
      if (made.ok()) groups[static_cast<size_t>(r)] = *made;
    });
  }
  bool ok() const {
    for (const auto& g : groups) {
      if (!g) return false;
    }
    return true;
  }
  Group& operator[](int32_t r) { return *groups[static_cast<size_t>(r)]; }
  void All(const std::function<void(int32_t rank, Group& group)>& body) {
    OnAll(size, [&](int32_t r) { body(r, (*this)[r]); });
  }

  int32_t size;
  std::vector<std::shared_ptr<Group>> groups;
  std::vector<Status> status;
};

inline Call Save(int64_t step, uint64_t timeout_ms = 20000) {
  return {Op::kSave, step, timeout_ms, {{"tag", "a"}}};
}

// A whole round of one phase: every rank contributes its rank, all get the sum as text.
inline Status SumOfRanks(Group& group, int64_t step, std::string* sum) {
  auto round = group.Arrive(Save(step), Status());
  if (!round.ok()) return round.status();
  group.Contribute(*round, 1, Status(), Cat(group.rank()), false);
  if (group.rank() == 0) {
    auto all = group.Collect(*round, 1);
    if (!all.ok()) return all.status();
    int total = 0;
    for (const Bytes& b : *all) total += std::stoi(b);
    group.Publish(*round, 1, Status(), {Cat(total)}, true);
  }
  auto result = group.Await(*round, 1);
  if (result.ok()) *sum = *result;
  return result.status();
}

}  // namespace ckpt::testing

#endif  // CKPT_TESTS_UNIT_COMM_WORLD_H_
