// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Behind the gate: file calls that fail before, during and after the data, ranks that die or stop
// while they write.
#include "contract/table.h"

namespace contract {
namespace {

// A tensor of each rank's own: every rank writes.
struct Own {
  explicit Own(Player& p) : data(1 << 20, 1.0f), state(p.ctx()) {
    state.Whole("of rank " + std::to_string(p.rank.id()), {1 << 20}, data);
    p.rank.Barrier("ready");
  }
  std::vector<float> data;
  ckpt_test::State state;
};

// `rules` of tests/shim for the file calls of `victim`.
std::function<void(Player&)> Broken(int victim, const std::string& rules) {
  return [=](Player& p) {
    Own own(p);
    if (p.is(victim)) p.Break(rules);
    p.Witness([&] { return Save(p.ctx(), own.state, kStep); });
    if (p.is(victim)) p.Break("");
  };
}

// Its writes are slow, so that the others have voted by then. `victim` stops, or is killed, at its
// first bytes: the plan's "end".
std::function<void(Player&)> EndsWhileItWrites(int victim) {
  return [=](Player& p) {
    Own own(p);
    if (p.is(victim)) {
      p.Break("delay 1000 op=write path=.safetensors every");
      p.when_writing = [&p] {
        p.FaultNow();
        p.rank.Event("end");
      };
      const Outcome o = Save(p.ctx(), own.state, kStep);
      p.Break("");
      EXPECT_FALSE(o.ok());
      return;
    }
    p.Witness([&] { return Save(p.ctx(), own.state, kStep); });
    const int waker = victim == 0 ? 1 : 0;
    if (!p.is(waker)) return;
    p.WaitForVerdicts();
    p.rank.Event("go on");
  };
}

}  // namespace

std::vector<Fault> DataFaults() {
  using launch::ContinueAt, launch::KillAt, launch::StopAt;
  constexpr auto kIo = CKPT_ERR_IO;
  return {
      {.name = "I/O before the data: the staging folder",
       .body = Broken(0, "fail EIO op=mkdir path=staging"),
       .code = kIo,
       .named = {0}},
      {.name = "I/O before the data: a file cannot be opened",
       .body = Broken(0, "fail EACCES op=create path=.safetensors"),
       .code = kIo,
       .named = {0}},
      {.name = "I/O in the data: a write fails",
       .body = Broken(2, "fail EIO op=write path=.safetensors"),
       .code = kIo,
       .named = {2},
       .says = "rank 2",
       .everywhere = true},
      {.name = "I/O in the data: no space",
       .body = Broken(2, "fail ENOSPC op=write path=.safetensors"),
       .code = CKPT_ERR_NO_SPACE,
       .named = {2}},
      {.name = "I/O after the data: an fsync fails",
       .body = Broken(3, "fail EIO op=fsync path=.safetensors"),
       .code = kIo,
       .named = {3}},
      {.name = "I/O after the data: the commit's rename",
       .body = Broken(0, "fail EIO op=noreplace,rename end=" + ckpt_test::StepName(kStep)),
       .code = kIo,
       .named = {0}},
      {.name = "a rank is killed while it writes",
       .body = EndsWhileItWrites(2),
       .code = CKPT_ERR_PARTICIPANTS,
       .named = {2},
       .condition = CKPT_RANK_DEAD,
       .get = {0, 1, 3},
       .next = Next::kNewJob,
       .everywhere = true,
       .plan = {KillAt("end", 2)}},
      {.name = "the coordinator is killed while it writes",
       .body = EndsWhileItWrites(0),
       .code = CKPT_ERR_OUTCOME_UNKNOWN,
       .named = {0},
       .condition = CKPT_RANK_DEAD,
       .get = {1, 2, 3},
       .next = Next::kNewJob,
       .plan = {KillAt("end", 0)}},
      {.name = "a rank is stopped while it writes",
       .body = EndsWhileItWrites(2),
       .ends = Ends::kByDeadline,
       .code = kIo,
       .named = {2},
       .get = {0, 1, 3},
       .deadline_ms = 3000,
       .plan = {StopAt("end", 2), ContinueAt("go on", 2)}},
  };
}

}  // namespace contract
