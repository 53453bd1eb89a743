// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The session of one context: its group, its events, its ends.  The recipes are save.cc and
// load.cc. Test: tests/process/
#include "core/session.h"

#include <sys/random.h>
#include <unistd.h>

#include <filesystem>
#include <new>

#include "util/text.h"

namespace ckpt {
namespace {

constexpr size_t kMaxQueuedEvents = 4096;
constexpr Millis kSettle(2000);  // for threads that end by themselves unless their disk is stuck
constexpr uint32_t kEventProgress = 1, kEventWarning = 3, kEventRankLate = 4;  // ckpt.h

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

std::string RandomHex(size_t bytes) {
  std::string raw(bytes, '\0'), out;
  if (::getentropy(raw.data(), raw.size()) != 0) raw = Cat(Clock::now().time_since_epoch().count());
  for (unsigned char c : raw) out += fmt::format("{:02x}", c);
  return out;
}

}  // namespace

// --- EventQueue, Crew

void EventQueue::Push(Event event) {
  MutexLock lock(mu_);
  if (events_.size() >= kMaxQueuedEvents) {
    for (auto it = events_.begin(); it != events_.end(); ++it) {
      if (it->kind != kEventProgress) continue;
      events_.erase(it);
      break;
    }
    if (events_.size() >= kMaxQueuedEvents) events_.pop_front();
  }
  events_.push_back(std::move(event));
}

std::deque<Event> EventQueue::Take() {
  MutexLock lock(mu_);
  return std::exchange(events_, {});
}

void Crew::Settle(Millis limit) {
  const TimePoint deadline = Clock::now() + limit;
  MutexLock lock(shared_->mu);
  while (shared_->running > 0) {
    if (!shared_->cv.WaitUntil(shared_->mu, deadline)) return;
  }
}

void Crew::Start(const std::string& name, std::function<void()> body) {
  auto shared = shared_;
  {
    MutexLock lock(shared->mu);
    ++shared->running;
  }
  const auto done = [shared] {
    MutexLock lock(shared->mu);
    if (--shared->running == 0) shared->cv.NotifyAll();
  };
  try {
    StartThread(name, [done, body = std::move(body)]() mutable {
      body();
      body = nullptr;  // what the body owns goes before the crew is told
      done();
    }).detach();
  } catch (...) {
    done();
    throw;
  }
}

void RunWorkers(uint32_t threads, const std::function<void()>& work) {
  std::vector<std::thread> others;
  try {
    others.reserve(threads);
    while (others.size() + 1 < threads) others.push_back(StartThread("ckpt-io", work));
  } catch (const std::exception&) {
    // Fewer threads are slower, not wrong.
  }
  work();
  for (std::thread& other : others) other.join();
}

Status Contain(const std::function<Status()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(Code::kNoMemory, "out of memory");
  } catch (const std::exception& e) {
    return Status(Code::kInternal, e.what());
  }
}

void SessionImpl::StartStep(const std::string& name, uint64_t round, uint32_t phase,
                            std::function<void()> body) {
  crew_.Start(name, [self = shared_from_this(), round, phase, body = std::move(body)] {
    const Status threw = Contain([&body] {
      body();
      return Status();
    });
    if (!threw.ok()) {
      self->group_->Contribute(round, phase, self->Localize(threw), Bytes(), false);
    }
  });
}

Status SessionImpl::RunOnCaller(uint64_t round, uint32_t phase,
                                const std::function<Status()>& body) {
  bool threw = true;
  const Status status = Contain([&] {
    const Status returned = body();
    threw = false;
    return returned;
  });
  if (!threw) return status;
  group_->Contribute(round, phase, Localize(status), Bytes(), false);
  return group_->Await(round, phase).status();  // what the peers get, this rank gets
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

// --- Session

Result<std::shared_ptr<Session>> Session::Create(SessionOptions options) {
  if (options.log == nullptr) options.log = std::make_shared<Log>(nullptr, LogLevel::kError);
  if (!options.root.empty()) options.root = AbsolutePath(options.root);
  auto session = std::make_shared<SessionImpl>(std::move(options));
  CKPT_RETURN_IF_ERROR(session->Open());
  Session* const handle = session.get();
  return std::shared_ptr<Session>(handle, [session](Session*) { session->Close(); });
}

SessionImpl::SessionImpl(SessionOptions options)
    : options_(std::move(options)),
      pid_(::getpid()),
      host_(HostName()),
      events_(std::make_shared<EventQueue>()) {}

void SessionImpl::Settle() {
  try {
    crew_.Start("ckpt-release", [self = shared_from_this()] {
      MutexLock lock(self->owner_mu_);
      self->owner_.reset();
    });
  } catch (const std::exception&) {
    // No thread: the record goes with the session, or is taken over as a dead owner's.
  }
  crew_.Settle(kSettle);
}

void SessionImpl::Close() {
  if (::getpid() != pid_) return;  // a forked child only drops memory
  const bool was_finalized = finalized_.exchange(true);
  group_->Leave();
  if (!was_finalized) Settle();
}

Status SessionImpl::Open() {
  GroupOptions group;
  group.self = options_.self;
  group.name = options_.name;
  group.library_build = kLibraryBuild;
  for (const auto& [key, value] : options_.config.job_wide)
    group.job_config.push_back({key, value});
  group.job_config.push_back({"contract_timeout_ms", Cat(options_.contract_timeout_ms)});
  group.job_config.push_back({"heartbeat_ms", Cat(options_.heartbeat_ms)});
  group.contract_timeout = Millis(options_.contract_timeout_ms);
  group.heartbeat = Millis(options_.heartbeat_ms);
  group.stall_timeout = Millis(options_.config.io_stall_timeout_ms);
  group.log = options_.log;
  group.describe = options_.describe;
  // The session owns the group, so the pump's `this` outlives every wait; the monitor's callback
  // only touches the queue, which it shares.
  group.pump = [this] { Pump(); };
  group.on_late = [events = events_](const std::string& text) {
    Event event;
    event.kind = kEventRankLate;
    event.text = text;
    events->Push(std::move(event));
  };
  CKPT_ASSIGN_OR_RETURN(group_, Group::Create(std::move(group)));
  return Status();
}

void SessionImpl::Pump() {
  options_.log->Drain();
  for (const Event& event : events_->Take()) {
    if (options_.on_event && options_.on_event(event) != 0) Cancel(event.round);
  }
}

void SessionImpl::Cancel(uint64_t round) {
  Cancellable call;
  {
    MutexLock lock(mu_);
    call = cancellable_;
  }
  // A worker of a save that was closed may still have been in a write.
  if (round != 0 && round != call.round) return;
  if (call.flag != nullptr) *call.flag = true;
  if (call.round == 0) return;
  const Status cancelled(Code::kCancelled, "the host's event callback asked to cancel");
  group_->Contribute(call.round, call.phase, Localize(cancelled), Bytes(), false);
}

std::shared_ptr<std::atomic<bool>> SessionImpl::BeginCancellable() {
  Pump();
  auto flag = std::make_shared<std::atomic<bool>>(false);
  MutexLock lock(mu_);
  cancellable_ = {flag, 0, 0};
  return flag;
}

void SessionImpl::CancelIn(uint64_t round, uint32_t phase) {
  bool already = false;
  {
    MutexLock lock(mu_);
    cancellable_.round = round;
    cancellable_.phase = phase;
    already = *cancellable_.flag;
  }
  if (already) Cancel(round);
}

void SessionImpl::Queue(Event event) {
  events_->Push(std::move(event));
  group_->Wake();
}

void SessionImpl::Warn(int64_t step, const std::string& text) {
  log().Write(LogLevel::kWarn, "core", text);
  Event event;
  event.kind = kEventWarning;
  event.step = step;
  event.text = text;
  Queue(std::move(event));
}

Status SessionImpl::Usable() const {
  if (::getpid() != pid_) {
    return Status(Code::kForked, Cat("this process was forked from pid ", pid_,
                                     " after ckpt_init: a context cannot be used in a child"));
  }
  if (finalized_) {
    return Status(Code::kState,
                  "the context is finalized: only ckpt_ctx_free and a new ckpt_init are left");
  }
  return Status();
}

Status SessionImpl::Localize(const Status& status) const {
  if (status.ok() || status.cause().rank >= 0) return status;
  const int32_t rank = group_ == nullptr ? 0 : group_->rank();
  return status.WithMessage(Cat(status.message(), " (rank ", rank, " on host ", host_, ")"))
      .WithRank(rank);
}

Status SessionImpl::ArriveWithError(bool save, int64_t step, const Status& error) {
  CKPT_RETURN_IF_ERROR(Usable());
  CallScope scope(group(), save ? Cat("ckpt_save_collective(step=", step, ")") : "ckpt_load()");
  Call call;
  call.op = save ? Op::kSave : Op::kLoad;
  call.step = save ? step : -1;
  call.timeout_ms = options_.contract_timeout_ms;
  Result<uint64_t> round = group_->Arrive(call, Localize(error));
  return scope.Done(round.ok() ? Localize(error) : round.status());
}

Status SessionImpl::Finalize(uint64_t timeout_ms) {
  CKPT_RETURN_IF_ERROR(Usable());
  Call call;
  call.op = Op::kFinalize;
  call.timeout_ms = TimeoutMs(timeout_ms);
  Result<uint64_t> round = [&] {
    CallScope scope(group(), "ckpt_finalize()");
    Result<uint64_t> r = group_->Arrive(call, Status());
    (void)scope.Done(r.status());
    return r;
  }();
  if (round.status().code() == Code::kState)
    return round.status();  // another collective is running
  finalized_ = true;
  Settle();  // what a save left to do after its verdict
  Pump();
  group_->Leave();
  return round.status();
}

void SessionImpl::SetPhase(const char* phase, int64_t step) {
  if (Usable().ok()) group_->SetPhase(phase, step);
}

Status SessionImpl::Poll() {
  CKPT_RETURN_IF_ERROR(Usable());
  Pump();
  return Status();
}

Result<int64_t> SessionImpl::Latest() {
  CKPT_RETURN_IF_ERROR(Usable());
  Result<Dir> root = Dir::Open(options_.root);
  if (!root.ok()) {
    if (root.status().code() != Code::kNotFound) return root.status();
    return Status(Code::kNoCheckpoint, Cat("root ", options_.root, " does not exist"));
  }
  std::vector<std::string> warnings;
  CKPT_ASSIGN_OR_RETURN(StepEntry newest, NewestStep(*root, &warnings));
  for (const std::string& warning : warnings) Warn(newest.step, warning);
  return newest.step;
}

Status SessionImpl::OnCoordinator(const char* what) const {
  CKPT_RETURN_IF_ERROR(Usable());
  if (group_->rank() == 0) return Status();
  return Status(Code::kState, Cat(what, ": only rank 0 owns the root and may mark its steps; this ",
                                  "is rank ", group_->rank()));
}

Status SessionImpl::SetPinned(int64_t step, bool pinned) {
  CKPT_RETURN_IF_ERROR(OnCoordinator("ckpt_pin"));
  CKPT_ASSIGN_OR_RETURN(const std::shared_ptr<RootOwner> owner, Owner());
  return ckpt::SetPinned(*owner, step, pinned ? Pin::kOn : Pin::kOff);
}

Status SessionImpl::MarkBad(int64_t step) {
  CKPT_RETURN_IF_ERROR(OnCoordinator("ckpt_mark_bad"));
  CKPT_ASSIGN_OR_RETURN(const std::shared_ptr<RootOwner> owner, Owner());
  return ckpt::MarkBad(*owner, step);
}

void SessionImpl::DropOwner() {
  MutexLock lock(owner_mu_);
  owner_.reset();
}

Result<std::shared_ptr<RootOwner>> SessionImpl::Owner(
    std::function<bool()> stop, std::function<void(const std::string&)> progress) {
  MutexLock lock(owner_mu_);
  if (owner_ != nullptr) return owner_;
  std::vector<std::string> warnings;
  OwnerOptions options;
  options.job_id = group_->identity().job_id;
  options.force = options_.config.owner_force;
  options.stop = std::move(stop);
  options.progress = std::move(progress);
  Result<std::shared_ptr<RootOwner>> owner = RootOwner::Take(options_.root, options, &warnings);
  for (const std::string& warning : warnings) Warn(-1, warning);
  if (owner.ok()) owner_ = *owner;
  return owner;
}

std::string SessionImpl::Lineage() {
  MutexLock lock(mu_);
  if (lineage_.empty()) lineage_ = RandomHex(16);
  return lineage_;
}

void SessionImpl::SetLineage(const std::string& lineage) {
  MutexLock lock(mu_);
  lineage_ = lineage;
}

}  // namespace ckpt
