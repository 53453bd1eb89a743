// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Group over its parts: translation of calls to messages, the process that forked, sizes.
// Test: tests/unit/comm/group_test.cc, fault_test.cc
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <system_error>

#include "comm/comm.h"
#include "comm/member.h"
#include "comm/proc.h"
#include "util/text.h"

namespace ckpt {
namespace {

class GroupImpl final : public Group {
 public:
  explicit GroupImpl(std::unique_ptr<Member> member) : member_(std::move(member)) {}

  ~GroupImpl() override {
    // A forked child has none of the threads, may find any lock held, and must not speak to peers:
    // what it has is a copy of memory, and that it gives up.
    if (Forked()) (void)member_.release();
  }

  int32_t rank() const override { return identity().rank; }
  int32_t size() const override { return identity().size; }
  const JobIdentity& identity() const override { return member_->identity(); }

  Result<uint64_t> Arrive(const Call& call, const Status& local) override {
    if (Forked()) return Status(Code::kForked, "this process was forked after ckpt_init");
    CKPT_ASSIGN_OR_RETURN(const uint64_t call_id, inbox().BeginCall(call));
    // So that a verdict about this call shows the phase that the host set before it, not the one
    // of up to a heartbeat ago.
    RankInfo info = member_->activity().Snapshot();
    info.host = host_;
    info.doing = Cat("arrived for ", Describe(call));
    member_->Send(Encode(HeartbeatMsg{std::move(info)}));
    Bytes frame = Encode(ArriveMsg{call_id, call, local});
    if (frame.size() > limit()) {
      frame = Encode(ArriveMsg{call_id, {call.op, call.step, call.timeout_ms, {}}, TooLong(frame)});
    }
    member_->Send(std::move(frame));
    return inbox().WaitVerdict(call_id);
  }

  void Contribute(uint64_t round, uint32_t phase, const Status& local, Bytes payload,
                  bool commit_vote) override {
    if (Forked()) return;
    ContributeMsg message{round, phase, local, {}};
    if (payload.size() + 4096 > limit()) {
      if (local.ok()) message.local = TooLong(payload);
      payload.clear();
    }
    if (commit_vote && message.local.ok()) inbox().Voted(round);
    Bytes head = EncodeHead(message, payload.size());
    member_->Send(std::move(head), std::move(payload));
  }

  Result<Bytes> Await(uint64_t round, uint32_t phase) override {
    return inbox().WaitPhase(round, phase);
  }
  bool Closed(uint64_t round) const override { return member_->inbox().Closed(round); }

  Result<std::vector<Bytes>> Collect(uint64_t round, uint32_t phase) override {
    return inbox().WaitCollected(round, phase);
  }
  void Publish(uint64_t round, uint32_t phase, const Status& status, std::vector<Bytes> payloads,
               bool last) override {
    if (Forked()) return;
    for (const Bytes& payload : payloads) {
      if (payload.size() + 4096 > limit()) {
        return member_->Publish(round, phase, TooLong(payload), {}, last);
      }
    }
    member_->Publish(round, phase, status, std::move(payloads), last);
  }
  Status BeginCommit(uint64_t round) override { return member_->BeginCommit(round); }

  void Wake() override { inbox().Wake(); }
  void Progress(uint64_t round, uint64_t bytes, const std::string& activity) override {
    member_->activity().Progress(round, bytes, activity);
  }
  void SetPhase(const char* phase, int64_t step) override {
    member_->activity().SetPhase(phase, step);
  }
  void CallBegins(const std::string& call) override { member_->activity().CallBegins(call); }
  void CallEnds(Code code) override { member_->activity().CallEnds(code); }
  void Leave() override {
    if (!Forked()) member_->Leave();
  }

  void StartServing(uint64_t round, Provider provider) override {
    if (auto* server = member_->exchange_server()) server->Start(round, std::move(provider));
  }
  void StopServing(uint64_t round) override {
    if (auto* server = member_->exchange_server()) server->Stop(round);
  }
  Status Ask(uint64_t round, int32_t peer, std::string_view request, char* reply,
             size_t bytes) override {
    return member_->exchange_client()->Ask(round, peer, request, reply, bytes,
                                           [this, round] { return Closed(round); });
  }

 private:
  bool Forked() const { return ::getpid() != pid_; }
  Inbox& inbox() { return member_->inbox(); }
  uint64_t limit() const { return member_->options().max_message_bytes; }
  Status TooLong(const Bytes& message) const {
    return Status(Code::kLimit, Cat("a control message of ", message.size(), " bytes; at most ",
                                    limit(), " are allowed"))
        .WithRank(rank());
  }

  const pid_t pid_ = ::getpid();
  const std::string host_ = HostName();
  std::unique_ptr<Member> member_;
};

Result<JobIdentity> Identify(const GroupOptions& options) {
  if (options.identity) return *options.identity;
  if (options.self) {
    JobIdentity id;
    id.job_id = Cat("self ", ::getpid());
    id.source = "SELF";
    return id;
  }
  return IdentityFromEnvironment([](const char* n) -> const char* { return std::getenv(n); });
}

}  // namespace

Result<std::shared_ptr<Group>> Group::Create(GroupOptions options) {
  CKPT_ASSIGN_OR_RETURN(JobIdentity identity, Identify(options));
  try {
    auto member = std::make_unique<Member>(std::move(options), std::move(identity));
    CKPT_RETURN_IF_ERROR(member->Join());
    // Shared: workers of a save may still ask Closed() when the session lets go.
    return std::shared_ptr<Group>(std::make_shared<GroupImpl>(std::move(member)));
  } catch (const std::bad_alloc&) {
    return Status(Code::kNoMemory, "init: out of memory");
  } catch (const std::system_error& e) {
    Cause cause;
    cause.sys_errno = e.code().value();
    return Status(Code::kComm, Cat("init: ", e.what()), cause);
  }
}

}  // namespace ckpt
