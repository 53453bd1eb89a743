// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The small parts of the transport, each by itself: challenge, messages, joining, activity, /proc,
// context numbers, describe, inbox.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "comm/activity.h"
#include "comm/auth.h"
#include "comm/context_number.h"
#include "comm/describe.h"
#include "comm/inbox.h"
#include "comm/join.h"
#include "comm/message.h"
#include "comm/proc.h"
#include "util/text.h"

namespace ckpt {
namespace {

// --- auth

struct Shaken {
  bool client = false, server = false;
};

Shaken Shake(Credentials client_side, Credentials server_side, int32_t expected_server = 0) {
  EXPECT_TRUE(StartAuth().ok());
  ClientHandshake client(std::move(client_side), 3, expected_server, Purpose::kControl);
  ServerHandshake server(std::move(server_side), 0, Purpose::kControl);
  Bytes challenge, nothing;
  EXPECT_TRUE(server.Take(client.Hello(), &challenge).ok());
  Shaken out;
  auto answer = client.Answer(challenge);
  out.client = answer.ok();
  if (!answer.ok()) return out;
  out.server = server.Take(*answer, &nothing).ok() && server.done() && server.rank() == 3;
  return out;
}

TEST(Auth, BothSidesProveTheSecret) {
  const Credentials c{SecretFromToken("token"), "job", 7};
  EXPECT_TRUE(Shake(c, c).server);
  // Over CKPT_PORT the incarnation is learnt from the server.
  EXPECT_TRUE(Shake({c.secret, "job", 0}, c).server);
}

TEST(Auth, AnyDifferenceIsNoticedByTheClientFirst) {
  const Credentials c{SecretFromToken("token"), "job", 7};
  EXPECT_FALSE(Shake({SecretFromToken("other"), "job", 7}, c).client);
  EXPECT_FALSE(Shake({c.secret, "another job", 7}, c).client);
  EXPECT_FALSE(Shake({c.secret, "job", 8}, c).client);
  EXPECT_FALSE(Shake(c, c, /*expected_server=*/1).client);
}

TEST(Auth, AClientThatDoesNotKnowTheSecretIsRefused) {
  ASSERT_TRUE(StartAuth().ok());
  const Credentials good{SecretFromToken("token"), "job", 7};
  ClientHandshake liar({SecretFromToken("other"), "job", 7}, 3, 0, Purpose::kControl);
  ServerHandshake server(good, 0, Purpose::kControl);
  ServerHandshake accomplice({SecretFromToken("other"), "job", 7}, 0, Purpose::kControl);
  Bytes challenge, theirs;
  ASSERT_TRUE(server.Take(liar.Hello(), &challenge).ok());
  ASSERT_TRUE(accomplice.Take(liar.Hello(), &theirs).ok());
  const auto answer = liar.Answer(theirs);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(server.Take(*answer, &theirs).ok());
  EXPECT_FALSE(server.done());
}

TEST(Auth, GarbageIsRefusedWithoutHarm) {
  ASSERT_TRUE(StartAuth().ok());
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    ServerHandshake server({SecretFromToken("t"), "j", 1}, 0, Purpose::kControl);
    std::string garbage(random() % 64, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    Bytes reply;
    EXPECT_FALSE(server.Take(garbage, &reply).ok());
    EXPECT_TRUE(reply.empty());
  }
}

TEST(Auth, FileNamesDoNotShowTheJobId) {
  ASSERT_TRUE(StartAuth().ok());
  EXPECT_EQ(HashName("job").size(), 32u);
  EXPECT_NE(HashName("job"), HashName("job2"));
}

// --- message

TEST(Message, EveryFieldSurvives) {
  ArriveMsg a{9, {Op::kLoad, -1, 5, {{"tag", "x"}, {"uri", "y"}}}, Status(Code::kShape, "bad")};
  ArriveMsg b;
  ASSERT_TRUE(Decode(Encode(a), &b));
  EXPECT_EQ(b.call_id, 9u);
  EXPECT_EQ(b.call.op, Op::kLoad);
  EXPECT_EQ(b.call.step, -1);
  EXPECT_EQ(b.call.fields[1].value, "y");
  EXPECT_EQ(b.local.message(), "bad");

  PhaseMsg p{3, 2, true, Status(), {}};
  PhaseMsg q;
  ASSERT_TRUE(Decode(EncodeHead(p, 4) + "data", &q));
  EXPECT_EQ(q.payload, "data");
  EXPECT_TRUE(q.last);

  RosterMsg r{Status(), {{"10.0.0.1", 65535}, {"", 1}}};
  RosterMsg s;
  ASSERT_TRUE(Decode(Encode(r), &s));
  EXPECT_EQ(s.exchange[0].port, 65535);
}

TEST(Message, WhatIsCutOrChangedIsRefusedOrHarmless) {
  HelloMsg hello{1, 4, "h", 9, "build", {{"a", "b"}}, 99, 5};
  const Bytes good = Encode(hello);
  for (size_t n = 0; n < good.size(); ++n) {
    HelloMsg out;
    EXPECT_FALSE(Decode(good.substr(0, n), &out)) << n;
  }
  HelloMsg out;
  EXPECT_FALSE(Decode(good + "x", &out));
  std::mt19937 random(2);
  for (int i = 0; i < 20000; ++i) {
    Bytes bad = good;
    for (int k = 0; k < 3; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    HelloMsg ignored;
    (void)Decode(bad, &ignored);  // must neither crash nor take much memory
  }
}

TEST(Message, WhatNoRankCanMeanIsRefused) {
  // A port, a code and a condition beyond those that there are.
  Bytes roster = Encode(RosterMsg{Status(), {{"", 1}}});
  roster[roster.size() - 2] = 1;
  RosterMsg ignored;
  EXPECT_FALSE(Decode(roster, &ignored));
  VerdictMsg verdict{1, 2, Status(static_cast<Code>(-99), "x")};
  EXPECT_FALSE(Decode(Encode(verdict), &verdict));
  RankReport report;
  report.condition = static_cast<Condition>(8);
  verdict.status = Status(Code::kIo, "x").WithRanks({report});
  EXPECT_FALSE(Decode(Encode(verdict), &verdict));
}

// --- join

HelloMsg Hello(int32_t rank, int32_t size, const std::string& build = "b") {
  HelloMsg h;
  h.rank = rank;
  h.size = size;
  h.host = Cat("host", rank);
  h.pid = 100 + rank;
  h.library_build = build;
  h.job_config = {{"io.align", "4096"}};
  return h;
}

TEST(Join, ADifferenceNamesKeyValuesAndRanks) {
  Join join(3);
  ASSERT_TRUE(join.Add(0, Hello(0, 3), "").ok());
  ASSERT_TRUE(join.Add(2, Hello(2, 3), "10.0.0.2").ok());
  HelloMsg odd = Hello(1, 3);
  odd.job_config[0].value = "1048576";
  ASSERT_TRUE(join.Add(1, odd, "10.0.0.1").ok());
  EXPECT_TRUE(join.complete());
  const Status status = join.Agreement();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_EQ(status.cause().field, "io.align");
  EXPECT_EQ(status.message(),
            "init: io.align differs: \"1048576\" on rank 1, \"4096\" on ranks 0, 2");
  EXPECT_EQ(join.Endpoints()[2].address, "10.0.0.2");
}

TEST(Join, AKeyThatARankLacksIsADifferenceOfThatRankAlone) {
  Join join(3);
  ASSERT_TRUE(join.Add(0, Hello(0, 3), "").ok());
  HelloMsg odd = Hello(1, 3);
  odd.job_config.clear();
  ASSERT_TRUE(join.Add(1, odd, "").ok());
  ASSERT_TRUE(join.Add(2, Hello(2, 3), "").ok());
  EXPECT_EQ(join.Agreement().message(),
            "init: io.align differs: \"(not set)\" on rank 1, \"4096\" on ranks 0, 2");
}

TEST(Join, ARankThatIsTakenNamesBothProcesses) {
  Join join(2);
  ASSERT_TRUE(join.Add(1, Hello(1, 2), "").ok());
  const Status second = join.Add(1, Hello(1, 2), "");
  EXPECT_EQ(second.code(), Code::kInvalidArgument);
  EXPECT_NE(second.message().find("rank 1 is taken by process 101"), std::string::npos);
  EXPECT_EQ(join.Add(7, Hello(7, 8), "").code(), Code::kMismatch);
  EXPECT_FALSE(join.complete());
}

TEST(Join, MissingRanksAreNamed) {
  Join join(5);
  ASSERT_TRUE(join.Add(0, Hello(0, 5), "").ok());
  const Status status = join.Missing(Millis(1500));
  EXPECT_EQ(status.code(), Code::kParticipants);
  EXPECT_NE(status.message().find("missing: ranks 1-4"), std::string::npos) << status.message();
  EXPECT_EQ(status.ranks().size(), 4u);
}

TEST(Join, AnyNumberOfRanksFitsATerminal) {
  Join join(4096);
  for (int32_t r = 0; r < 4096; r += 2) {
    HelloMsg hello = Hello(r, 4096);
    hello.job_config[0].value = Cat(r);
    ASSERT_TRUE(join.Add(r, hello, "").ok());
  }
  const Status missing = join.Missing(Millis(1500));
  EXPECT_LT(missing.message().size(), 400u) << missing.message();
  EXPECT_NE(missing.message().find("13, 15 and 2040 more"), std::string::npos);
  EXPECT_EQ(missing.ranks().size(), 2048u);
  const Status differs = join.Agreement();
  EXPECT_LT(differs.message().size(), 200u) << differs.message();
  EXPECT_NE(differs.message().find("and 2044 more values"), std::string::npos);
}

// --- activity

TEST(Activity, PhaseAndCallAreTold) {
  Activity activity;
  activity.SetPhase("forward", 17);
  activity.CallBegins("ckpt_load(step=900)");
  RankInfo info = activity.Snapshot();
  EXPECT_EQ(info.phase, "forward");
  EXPECT_EQ(info.phase_step, 17);
  EXPECT_TRUE(info.last_call.starts_with("ckpt_load(step=900) running for 0.")) << info.last_call;
  activity.CallEnds(Code::kOk);
  EXPECT_TRUE(activity.Snapshot().last_call.starts_with("ckpt_load(step=900) returned OK 0."));
}

TEST(Activity, LongPhasesAreCutBetweenCharacters) {
  Activity activity;
  activity.SetPhase(std::string(100, 'a').c_str(), 0);
  EXPECT_EQ(activity.Snapshot().phase, std::string(63, 'a'));
  activity.SetPhase((std::string(62, 'a') + "\xC3\xA9").c_str(), 0);
  EXPECT_EQ(activity.Snapshot().phase, std::string(62, 'a'));
  activity.SetPhase(nullptr, 0);
  EXPECT_EQ(activity.Snapshot().phase, "");
}

TEST(Activity, AReaderNeverSeesHalfAPhase) {
  Activity activity;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int64_t i = 0; !stop; ++i) {
      activity.SetPhase(std::string(60, static_cast<char>('a' + i % 2)).c_str(), i % 2);
    }
  });
  for (int i = 0; i < 3000; ++i) {
    const RankInfo info = activity.Snapshot();
    if (info.phase.empty()) continue;
    EXPECT_EQ(info.phase, std::string(60, info.phase[0]));
    EXPECT_EQ(info.phase_step, info.phase[0] - 'a');
  }
  stop = true;
  writer.join();
}

// --- proc

TEST(Proc, ThisThreadRuns) {
  ThreadWatch watch(static_cast<pid_t>(::syscall(SYS_gettid)));
  EXPECT_TRUE(watch.Doing().starts_with("running, ")) << watch.Doing();
}

TEST(Proc, AThreadThatWaitsSaysInWhichCall) {
  std::atomic<pid_t> tid{0};
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  std::thread reader([&] {
    tid = static_cast<pid_t>(::syscall(SYS_gettid));
    char c;
    EXPECT_EQ(::read(fds[0], &c, 1), 1);
  });
  while (tid == 0) std::this_thread::yield();
  ThreadWatch watch(tid);
  std::string doing;
  while (!(doing = watch.Doing()).starts_with("sleeping")) std::this_thread::yield();
  if (doing.find("syscall") != std::string::npos) {
    EXPECT_TRUE(doing.starts_with(Cat("sleeping in syscall read (", SYS_read, ")"))) << doing;
  }
  EXPECT_EQ(::write(fds[1], "x", 1), 1);
  reader.join();
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(Proc, StartTimeTellsTheLivingFromTheDead) {
  EXPECT_TRUE(StartTime(::getpid()).has_value());
  EXPECT_EQ(StartTime(::getpid()), StartTime(::getpid()));
  EXPECT_FALSE(StartTime(0x7ffffff0).has_value());
}

// --- context numbers

TEST(ContextNumber, TheSmallestUnusedOneOfTheName) {
  auto a = std::make_unique<ContextNumber>("n");
  const ContextNumber b("n"), other("m");
  EXPECT_EQ(a->value(), 0u);
  EXPECT_EQ(b.value(), 1u);
  EXPECT_EQ(other.value(), 0u);
  a.reset();
  EXPECT_EQ(ContextNumber("n").value(), 0u);
}

// --- describe

TEST(Describe, TheTextComesFromAnotherThread) {
  Mutex mu;
  CondVar changed;
  std::string got;
  Describer describer([] { return "at line 7"; });
  describer.Ask([&](std::string text) {
    MutexLock lock(mu);
    got = std::move(text);
    changed.NotifyAll();
  });
  MutexLock lock(mu);
  while (got.empty()) changed.Wait(mu);
  EXPECT_EQ(got, "at line 7");
}

TEST(Describe, ACallbackThatHangsIsLeftBehind) {
  std::atomic<bool> entered{false}, release{false}, ended{false};
  {
    Describer describer([&] {
      entered = true;
      while (!release) std::this_thread::yield();
      ended = true;
      return std::string();
    });
    describer.Ask([](std::string) { ADD_FAILURE() << "nobody waits any more"; });
    while (!entered) std::this_thread::yield();
  }
  release = true;
  while (!ended) std::this_thread::yield();
}

// --- inbox

TEST(Inbox, AWaitRunsPumpOnTheCallersThreadOnly) {
  const std::thread::id me = std::this_thread::get_id();
  std::atomic<int> pumped{0};
  Inbox* seen = nullptr;
  Inbox inbox([&] {
    EXPECT_EQ(std::this_thread::get_id(), me);
    if (++pumped == 2) seen->Put(VerdictMsg{1, 5, Status()});
  });
  seen = &inbox;
  auto call = inbox.BeginCall(Call{});
  ASSERT_TRUE(call.ok());
  std::thread recipe([&] { EXPECT_FALSE(inbox.WaitCollected(5, 1).ok()); });
  EXPECT_EQ(*inbox.WaitVerdict(*call), 5u);
  inbox.Put(PhaseMsg{5, 1, true, Status(Code::kIo, "disk"), {}});
  recipe.join();
  EXPECT_TRUE(inbox.Closed(5));
}

TEST(Inbox, ALostCoordinatorAfterTheVoteLeavesTheOutcomeUnknown) {
  for (const bool voted : {false, true}) {
    Inbox inbox({});
    ASSERT_TRUE(inbox.BeginCall(Call{}).ok());
    inbox.Put(VerdictMsg{1, 5, Status()});
    ASSERT_TRUE(inbox.WaitVerdict(1).ok());
    if (voted) inbox.Voted(5);
    inbox.Lost(Status(Code::kParticipants, "rank 0 is dead"));
    EXPECT_EQ(inbox.WaitPhase(5, 1).status().code(),
              voted ? Code::kOutcomeUnknown : Code::kParticipants);
    const Status next = inbox.BeginCall(Call{}).status();
    EXPECT_EQ(next.code(), Code::kComm);
    EXPECT_NE(next.message().find("a new ckpt_init"), std::string::npos);
  }
}

TEST(Inbox, AResultThatHasComeOutlivesTheCoordinator) {
  Inbox inbox({});
  ASSERT_TRUE(inbox.BeginCall(Call{}).ok());
  inbox.Put(VerdictMsg{1, 5, Status()});
  ASSERT_TRUE(inbox.WaitVerdict(1).ok());
  inbox.Put(PhaseMsg{5, 1, true, Status(), "done"});
  inbox.Lost(Status(Code::kParticipants, "rank 0 is dead"));
  EXPECT_EQ(*inbox.WaitPhase(5, 1), "done");
}

TEST(Inbox, ASecondCollectiveGetsState) {
  Inbox inbox({});
  ASSERT_TRUE(inbox.BeginCall(Call{}).ok());
  EXPECT_EQ(inbox.BeginCall(Call{}).status().code(), Code::kState);
  inbox.Put(VerdictMsg{1, 5, Status()});
  ASSERT_TRUE(inbox.WaitVerdict(1).ok());
  EXPECT_EQ(inbox.BeginCall(Call{}).status().code(), Code::kState);  // its phases are still to come
  inbox.Put(PhaseMsg{5, 1, true, Status(), {}});
  EXPECT_TRUE(inbox.BeginCall(Call{}).ok());
}

}  // namespace
}  // namespace ckpt
