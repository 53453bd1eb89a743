// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank does not come to the gate, comes late, dies, stops, leaves, or is in another call.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contract/table.h"

namespace contract {
namespace {

constexpr uint64_t kShort = 1500;
constexpr uint64_t kLong = 4500;  // above the 3 s after which a silent rank is UNRESPONSIVE

// Rank 2 stays away until the others have given up.
void Missing(Player& p) {
  if (p.is(2)) return p.WaitForVerdicts();
  p.SaveAndWitness();
}

void Late(Player& p) {
  if (p.is(2)) p.WaitForVerdicts(3);
  p.SaveAndWitness();
}

void LateButInTime(Player& p) {
  if (p.is(0)) p.when_late = [&p] { p.rank.Notify("late"); };
  if (p.is(2)) p.rank.WaitFor("late");
  p.SaveAndWitness();
}

// Blocked as in a collective of its own: a read that nobody answers until the others have theirs.
void Blocked(Player& p) {
  const std::string pipe = p.rank.folder() + "/collective";
  if (p.is(2)) {
    p.ctx().Phase("all-reduce", kStep);
    mkfifo(pipe.c_str(), 0600);
    p.rank.Notify("in the collective");
    const int fd = open(pipe.c_str(), O_RDONLY | O_CLOEXEC);
    char byte = 0;
    EXPECT_EQ(read(fd, &byte, 1), 1);
    close(fd);
    return;
  }
  p.rank.WaitFor("in the collective");
  const int fd = p.is(0) ? open(pipe.c_str(), O_WRONLY | O_CLOEXEC) : -1;
  p.SaveAndWitness();
  if (fd < 0) return;
  EXPECT_EQ(write(fd, "x", 1), 1);
  close(fd);
}

// `victim` comes to its end (the plan's "end") before the others call.
std::function<void(Player&)> EndsBefore(int victim) {
  return [victim](Player& p) {
    if (p.is(victim)) {
      p.FaultNow();
      p.rank.Event("end");
    }
    p.rank.WaitFor("end");
    p.SaveAndWitness();
  };
}

// The same once all others are known to wait in the gate: `teller` has its RANK_LATE event.
std::function<void(Player&)> EndsWhileTheyWait(int victim, int teller) {
  return [victim, teller](Player& p) {
    if (p.is(teller)) {
      p.when_late = [&p] {
        p.FaultNow();
        p.rank.Event("end");
      };
    }
    if (p.is(victim)) return p.WaitForVerdicts(3);
    p.SaveAndWitness();
  };
}

// Like Missing, but the rank is stopped meanwhile; the plan wakes it up at "go on".
std::function<void(Player&)> Stopped(int victim) {
  return [victim](Player& p) {
    if (p.is(victim)) {
      p.rank.Event("end");
      return p.WaitForVerdicts();
    }
    p.rank.WaitFor("end");
    p.SaveAndWitness();
    const int waker = victim == 0 ? 1 : 0;
    if (!p.is(waker)) return;
    p.WaitForVerdicts();
    p.rank.Event("go on");
  };
}

// The coordinator stands still for half of the deadline, and then all are there.
void SlowCoordinator(Player& p) {
  if (p.is(1)) {
    p.rank.Event("stop");
    p.when_late = {};
    usleep(500'000);  // the length of the stop is what is tested
    p.rank.Event("go on");
  }
  p.SaveAndWitness();
}

void ExitsWithoutFinalize(Player& p) {
  if (p.is(2)) {
    p.FaultNow();
    p.rank.Notify("gone");
    _exit(0);
  }
  p.rank.WaitFor("gone");
  p.SaveAndWitness();
}

// The context is freed while the others wait.
std::function<void(Player&)> Frees(int victim, int teller) {
  return [victim, teller](Player& p) {
    if (p.is(teller)) p.when_late = [&p] { p.rank.Notify("all wait"); };
    if (!p.is(victim)) return void(p.SaveAndWitness());
    p.rank.WaitFor("all wait");
    p.FaultNow();
    p.ctx().Free();
    p.WaitForVerdicts();
  };
}

void LoadsInstead(Player& p) {
  p.Witness([&] { return p.is(3) ? p.trainer->Load({.step = kStep}) : p.trainer->Save(kStep); });
}

void SavesWhileTheOthersLoad(Player& p) {
  p.Witness([&] { return p.is(0) ? p.trainer->Save(kStep) : p.trainer->Load(); });
}

void FinalizesInstead(Player& p) {
  p.Witness([&] { return p.is(3) ? p.ctx().Finalize() : p.trainer->Save(kStep); });
}

void FinalizesAlone(Player& p) {
  if (p.is(3)) return p.WaitForVerdicts();
  p.Witness([&] { return p.ctx().Finalize(kShort); });
}

// Rank 3 is a step ahead: those behind are told at once, and it waits for them.
void AnotherStep(Player& p) {
  if (p.is(3)) {
    const Outcome ahead = p.trainer->Save(kStep + 1);
    EXPECT_TRUE(ahead.ok()) << ahead;
    return;
  }
  p.SaveAndWitness();
  const Outcome reached = p.trainer->Save(kStep + 1);
  EXPECT_TRUE(reached.ok()) << reached;
}

// Rank 3 has two saves in the wrong order.
void WrongOrder(Player& p) {
  if (p.is(3)) {
    EXPECT_TRUE(p.trainer->Save(kStep + 1).ok());
    const Outcome behind = p.trainer->Save(kStep);  // the others are at the next
    EXPECT_EQ(behind.status, CKPT_ERR_MISMATCH) << behind;
  } else {
    p.SaveAndWitness();
    EXPECT_TRUE(p.trainer->Save(kStep + 1).ok());
  }
  const Outcome next = p.trainer->Save(kStep + 2);
  EXPECT_TRUE(next.ok()) << next;
}

}  // namespace

std::vector<Fault> GateFaults() {
  using launch::ContinueAt, launch::KillAt, launch::StopAt;
  constexpr auto kMissing = CKPT_ERR_PARTICIPANTS;
  const std::set<int> not2 = {0, 1, 3}, not0 = {1, 2, 3}, not3 = {0, 1, 2};
  return {
      {.name = "a rank does not call",
       .body = Missing,
       .ends = Ends::kByDeadline,
       .code = kMissing,
       .named = {2},
       .condition = CKPT_RANK_ALIVE_ELSEWHERE,
       .get = not2,
       .deadline_ms = kShort,
       .everywhere = true},
      {.name = "a rank calls after the deadline",
       .body = Late,
       .ends = Ends::kByDeadline,
       .code = kMissing,
       .named = {2},
       .condition = CKPT_RANK_ALIVE_ELSEWHERE,
       .deadline_ms = kShort,
       .everywhere = true},
      {.name = "a rank is late, within the deadline",
       .body = LateButInTime,
       .ends = Ends::kByDeadline,
       .deadline_ms = kShort},
      {.name = "a rank is blocked in the trainer's collective",
       .body = Blocked,
       .ends = Ends::kByDeadline,
       .code = kMissing,
       .named = {2},
       .condition = CKPT_RANK_ALIVE_ELSEWHERE,
       .get = not2,
       .says = "\"all-reduce\" step 100",
       .deadline_ms = kShort},
      {.name = "a rank is killed before the gate",
       .body = EndsBefore(2),
       .code = kMissing,
       .named = {2},
       .condition = CKPT_RANK_DEAD,
       .get = not2,
       .next = Next::kNewJob,
       .everywhere = true,
       .plan = {KillAt("end", 2)}},
      {.name = "a rank is killed while the others wait",
       .body = EndsWhileTheyWait(2, 0),
       .code = kMissing,
       .named = {2},
       .condition = CKPT_RANK_DEAD,
       .get = not2,
       .next = Next::kNewJob,
       .deadline_ms = 3000,
       .plan = {KillAt("end", 2)}},
      {.name = "a rank exits without finalize",
       .body = ExitsWithoutFinalize,
       .code = kMissing,
       .named = {2},
       .condition = CKPT_RANK_DEAD,
       .get = not2,
       .next = Next::kNewJob},
      {.name = "a rank is stopped",
       .body = Stopped(2),
       .ends = Ends::kByDeadline,
       .code = kMissing,
       .named = {2},
       .condition = CKPT_RANK_UNRESPONSIVE,
       .get = not2,
       .deadline_ms = kLong,
       .everywhere = true,
       .plan = {StopAt("end", 2), ContinueAt("go on", 2)}},
      {.name = "a rank frees its context while the others wait",
       .body = Frees(2, 0),
       .code = kMissing,
       .named = {2},
       .condition = CKPT_RANK_LEFT,
       .get = not2,
       .next = Next::kNewJob,
       .deadline_ms = 3000},
      {.name = "one loads while the others save",
       .body = LoadsInstead,
       .code = CKPT_ERR_MISMATCH,
       .says = "load(step=100) on rank 3",
       .everywhere = true,
       .either_side = true},
      {.name = "one saves while the others load",
       .body = SavesWhileTheOthersLoad,
       .code = CKPT_ERR_MISMATCH,
       .says = "save(step=100) on rank 0",
       .either_side = true},
      {.name = "one finalizes while the others save",
       .body = FinalizesInstead,
       .code = CKPT_ERR_MISMATCH,
       .says = "finalize() on rank 3",
       .next = Next::kNewJob,
       .either_side = true},
      {.name = "some finalize",
       .body = FinalizesAlone,
       .ends = Ends::kByDeadline,
       .code = kMissing,
       .named = {3},
       .condition = CKPT_RANK_ALIVE_ELSEWHERE,
       .get = not3,
       .next = Next::kNewJob,
       .deadline_ms = kShort},
      {.name = "one is at another step",
       .body = AnotherStep,
       .code = CKPT_ERR_MISMATCH,
       .get = not3,
       .says = "save(step=101) on rank 3",
       .everywhere = true,
       .either_side = true},
      {.name = "one has two saves in the wrong order",
       .body = WrongOrder,
       .code = CKPT_ERR_MISMATCH,
       .get = not3,
       .says = "save(step=101) on rank 3",
       .either_side = true},
      {.name = "the coordinator does not call",
       .body =
           [](Player& p) {
             if (p.is(0)) return p.WaitForVerdicts();
             p.SaveAndWitness();
           },
       .ends = Ends::kByDeadline,
       .code = kMissing,
       .named = {0},
       .condition = CKPT_RANK_ALIVE_ELSEWHERE,
       .get = not0,
       .deadline_ms = kShort},
      {.name = "the coordinator is killed before the gate",
       .body = EndsBefore(0),
       .code = kMissing,
       .named = {0},
       .condition = CKPT_RANK_DEAD,
       .get = not0,
       .next = Next::kNewJob,
       .everywhere = true,
       .plan = {KillAt("end", 0)}},
      {.name = "the coordinator is killed while the others wait",
       .body = EndsWhileTheyWait(0, 1),
       .code = kMissing,
       .named = {0},
       .condition = CKPT_RANK_DEAD,
       .get = not0,
       .next = Next::kNewJob,
       .deadline_ms = 3000,
       .plan = {KillAt("end", 0)}},
      {.name = "the coordinator is stopped",
       .body = Stopped(0),
       .ends = Ends::kByDeadline,
       .code = kMissing,
       .named = {0},
       .condition = CKPT_RANK_UNRESPONSIVE,
       .get = not0,
       .next = Next::kNewJob,
       .deadline_ms = kLong,
       .everywhere = true,
       .plan = {StopAt("end", 0), ContinueAt("go on", 0)}},
      {.name = "the coordinator stands still for half a second",
       .body = SlowCoordinator,
       .ends = Ends::kByDeadline,
       .deadline_ms = kLong,
       .plan = {StopAt("stop", 0), ContinueAt("go on", 0)}},
      {.name = "the coordinator frees its context while the others wait",
       .body = Frees(0, 1),
       .code = kMissing,
       .named = {0},
       .condition = CKPT_RANK_LEFT,
       .get = not0,
       .next = Next::kNewJob,
       .deadline_ms = 3000},
  };
}

}  // namespace contract
