// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// dlopen, translation of errors, and the owners of ckpt_lib.h.
#include "launch/ckpt_lib.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ostream>
#include <stdexcept>

namespace ckpt_test {
namespace {

using Clock = std::chrono::steady_clock;

Api OpenApi() {
  const char* path = std::getenv("CKPT_LIB");
  if (!path || !*path) throw std::runtime_error("CKPT_LIB is not set");
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  Api api;
#define X(name)                                                         \
  api.name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
  if (!api.name) throw std::runtime_error(std::string(path) + " lacks " #name);
  CKPT_TEST_FUNCTIONS(X)
#undef X
  return api;
}

std::string Text(const char* s) { return s ? s : ""; }
const char* OrNull(const std::string& s) { return s.empty() ? nullptr : s.c_str(); }

template <class Call>
Outcome Timed(Call&& call) {
  ckpt_error* error = nullptr;
  const auto start = Clock::now();
  const ckpt_status status = call(&error);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Outcome o = Take(status, error);
  o.seconds = seconds;
  return o;
}

int32_t CallEvent(void* user, const ckpt_event* event) {
  return (*static_cast<std::function<int(const ckpt_event&)>*>(user))(*event);
}

}  // namespace

const Api& Lib() {
  static const Api api = OpenApi();
  return api;
}

Outcome Take(ckpt_status status, ckpt_error* error) {
  Outcome o;
  o.status = status;
  if (!error) return o;
  EXPECT_EQ(Lib().ckpt_error_status(error), status);
  o.message = Text(Lib().ckpt_error_message(error));
  const uint64_t n = Lib().ckpt_error_rank_count(error);
  for (uint64_t i = 0; i < n; ++i) {
    ckpt_rank_report r{};
    r.struct_size = sizeof r;
    EXPECT_EQ(Lib().ckpt_error_rank(error, i, &r), CKPT_OK);
    o.ranks.push_back({r.rank, r.condition, r.phase_step, Text(r.host), Text(r.phase),
                       Text(r.doing), Text(r.last_call)});
  }
  ckpt_error_cause cause{};
  cause.struct_size = sizeof cause;
  if (Lib().ckpt_error_get_cause(error, &cause) == CKPT_OK)
    o.cause = {cause.rank, cause.sys_errno, Text(cause.path), Text(cause.name), Text(cause.field)};
  Lib().ckpt_error_free(error);
  return o;
}

std::set<int> Outcome::RankSet() const {
  std::set<int> set;
  for (const RankReport& r : ranks) set.insert(r.rank);
  return set;
}

std::set<int> Outcome::RankSet(uint32_t condition) const {
  std::set<int> set;
  for (const RankReport& r : ranks)
    if (r.condition == condition) set.insert(r.rank);
  return set;
}

const RankReport* Outcome::Report(int rank) const {
  for (const RankReport& r : ranks)
    if (r.rank == rank) return &r;
  return nullptr;
}

std::string Outcome::Verdict() const {
  std::string text = StatusName(status);
  for (int r : RankSet()) text += " " + std::to_string(r);
  return text + ": " + message;
}

std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  out << StatusName(o.status) << " after " << o.seconds << " s: \"" << o.message << "\"";
  for (const RankReport& r : o.ranks)
    out << "\n  rank " << r.rank << " condition " << r.condition << " phase \"" << r.phase
        << "\" step " << r.phase_step << " doing \"" << r.doing << "\" last \"" << r.last_call
        << "\"";
  if (o.cause.rank >= 0 || !o.cause.path.empty() || !o.cause.name.empty() || !o.cause.field.empty())
    out << "\n  cause: rank " << o.cause.rank << " errno " << o.cause.sys_errno << " path \""
        << o.cause.path << "\" name \"" << o.cause.name << "\" field \"" << o.cause.field << "\"";
  return out;
}

const char* StatusName(ckpt_status status) {
  switch (status) {
#define X(name) \
  case name:    \
    return #name;
    // clang-format off: it does not settle on these
    X(CKPT_OK)
    X(CKPT_PENDING)
    X(CKPT_ERR_INVALID_ARGUMENT)
    X(CKPT_ERR_UNSUPPORTED)
    X(CKPT_ERR_STATE)
    X(CKPT_ERR_NOT_FOUND)
    X(CKPT_ERR_CORRUPT)
    X(CKPT_ERR_IO)
    X(CKPT_ERR_NO_SPACE)
    X(CKPT_ERR_NO_MEMORY)
    X(CKPT_ERR_DEVICE)
    X(CKPT_ERR_PARTICIPANTS)
    X(CKPT_ERR_MISMATCH)
    X(CKPT_ERR_PEER)
    X(CKPT_ERR_COMM)
    X(CKPT_ERR_CANCELLED)
    X(CKPT_ERR_FORKED)
    X(CKPT_ERR_EXISTS)
    X(CKPT_ERR_COVERAGE)
    X(CKPT_ERR_REPLICA)
    X(CKPT_ERR_SHAPE)
    X(CKPT_ERR_DTYPE)
    X(CKPT_ERR_NO_CHECKPOINT)
    X(CKPT_ERR_OWNED)
    X(CKPT_ERR_LIMIT)
    X(CKPT_ERR_OUTCOME_UNKNOWN)
    X(CKPT_ERR_INTERNAL)
    // clang-format on
#undef X
  }
  return "unknown status";
}

Ctx::Ctx(const CtxOptions& options) : on_event_(options.on_event) {
  ckpt_init_options o{};
  o.struct_size = sizeof o;
  o.flags = options.flags;
  o.comm = options.comm;
  o.name = OrNull(options.name);
  o.root = OrNull(options.root);
  o.config = OrNull(options.config);
  o.layout_note = OrNull(options.layout_note);
  o.contract_timeout_ms = options.timeout_ms;
  o.heartbeat_ms = options.heartbeat_ms;
  if (on_event_) {
    o.on_event = CallEvent;
    o.event_user = &on_event_;
  }
  init_ = Timed([&](ckpt_error** e) { return Lib().ckpt_init(CKPT_HEADER_ABI, &o, &ctx_, e); });
}

Ctx::~Ctx() { Free(); }

void Ctx::Free() {
  Lib().ckpt_ctx_free(ctx_);
  ctx_ = nullptr;
}

void Ctx::Phase(const std::string& phase, int64_t step) {
  Lib().ckpt_set_phase(ctx_, phase.c_str(), step);
}

Outcome Ctx::Finalize(uint64_t timeout_ms) {
  return Timed([&](ckpt_error** e) { return Lib().ckpt_finalize(ctx_, timeout_ms, e); });
}

Outcome Ctx::Latest(int64_t* step) {
  return Timed([&](ckpt_error** e) { return Lib().ckpt_latest(ctx_, step, e); });
}

State::State(Ctx& ctx) {
  const Outcome o =
      Timed([&](ckpt_error** e) { return Lib().ckpt_state_new(ctx.get(), &state_, e); });
  EXPECT_TRUE(o.ok()) << o;
}

State::~State() { Lib().ckpt_state_free(state_); }

Outcome State::TryAdd(const Tensor& t) {
  ckpt_tensor c{};
  c.struct_size = sizeof c;
  c.flags = t.flags;
  c.name = t.name.c_str();
  c.group = OrNull(t.group);
  c.dtype = t.dtype;
  c.ndim = static_cast<int32_t>(t.shape.size());
  c.shard_kind = t.kind;
  c.global_shape = t.shape.data();
  c.offset = t.kind == CKPT_SHARD_BOX ? t.offset.data() : nullptr;
  c.extent = t.kind == CKPT_SHARD_BOX ? t.extent.data() : nullptr;
  c.flat_offset = t.flat_offset;
  c.flat_count = t.flat_count;
  c.store_dtype = t.store_dtype;
  c.strides = t.strides.empty() ? nullptr : t.strides.data();
  c.data = t.data;
  const ckpt_tensor* list[] = {&c};
  return Timed(
      [&](ckpt_error** e) { return Lib().ckpt_state_add_tensors(state_, list, 1, nullptr, e); });
}

Outcome State::TryBlob(uint32_t scope, const std::string& name, void* data, uint64_t bytes,
                       uint32_t flags, uint64_t* actual, int writer_rank) {
  ckpt_blob b{};
  b.struct_size = sizeof b;
  b.flags = flags;
  b.scope = scope;
  b.writer_rank = writer_rank;
  b.name = name.c_str();
  b.data = data;
  b.bytes = bytes;
  b.actual = actual;
  return Timed([&](ckpt_error** e) { return Lib().ckpt_state_add_blob(state_, &b, nullptr, e); });
}

Outcome State::TryAlias(const std::string& alias, const std::string& of, const std::string& group) {
  return Timed([&](ckpt_error** e) {
    return Lib().ckpt_state_add_alias(state_, OrNull(group), alias.c_str(), of.c_str(), e);
  });
}

Outcome State::Rename(const std::string& from, const std::string& to) {
  return Timed(
      [&](ckpt_error** e) { return Lib().ckpt_state_rename(state_, from.c_str(), to.c_str(), e); });
}

Outcome State::Update(uint64_t id, void* data) {
  return Timed(
      [&](ckpt_error** e) { return Lib().ckpt_state_update(state_, id, data, nullptr, e); });
}

std::vector<std::string> State::Names(uint32_t which) const {
  std::vector<std::string> names;
  while (const char* name = Lib().ckpt_state_name(state_, which, names.size())) {
    names.emplace_back(name);
  }
  return names;
}

State& State::Add(const Tensor& t) {
  const Outcome o = TryAdd(t);
  EXPECT_TRUE(o.ok()) << t.name << ": " << o;
  return *this;
}

State& State::Whole(const std::string& name, const Dims& shape, std::vector<float>& data) {
  return Add({.name = name, .shape = shape, .data = data.data()});
}

State& State::Box(const std::string& name, const Dims& shape, const Dims& offset,
                  const Dims& extent, std::vector<float>& data) {
  return Add({.name = name,
              .shape = shape,
              .kind = CKPT_SHARD_BOX,
              .offset = offset,
              .extent = extent,
              .data = data.data()});
}

State& State::Flat(const std::string& name, const Dims& shape, int64_t offset,
                   std::vector<float>& data) {
  return Add({.name = name,
              .shape = shape,
              .kind = CKPT_SHARD_FLAT,
              .flat_offset = offset,
              .flat_count = static_cast<int64_t>(data.size()),
              .data = data.data()});
}

State& State::Blob(uint32_t scope, const std::string& name, std::vector<uint8_t>& data) {
  const Outcome o = TryBlob(scope, name, data.data(), data.size());
  EXPECT_TRUE(o.ok()) << name << ": " << o;
  return *this;
}

Outcome Save(Ctx& ctx, State& state, const SaveOptions& options) {
  ckpt_save_options o{};
  o.struct_size = sizeof o;
  o.step = options.step;
  o.tag = OrNull(options.tag);
  o.on_existing = options.on_existing;
  o.metadata = OrNull(options.metadata);
  o.contract_timeout_ms = options.timeout_ms;
  ckpt_result result{};
  result.struct_size = sizeof result;
  Outcome outcome = Timed([&](ckpt_error** e) {
    return Lib().ckpt_save_collective(ctx.get(), state.get(), &o, &result, nullptr, e);
  });
  outcome.result = result;
  return outcome;
}

Outcome Save(Ctx& ctx, State& state, int64_t step) {
  return Save(ctx, state, SaveOptions{.step = step});
}

Outcome Load(Ctx& ctx, State& state, const LoadOptions& options) {
  ckpt_load_options o{};
  o.struct_size = sizeof o;
  o.flags = options.flags;
  o.which = options.step < 0 ? CKPT_LOAD_LATEST : CKPT_LOAD_STEP;
  o.step = options.step < 0 ? 0 : options.step;
  o.uri = OrNull(options.uri);
  o.contract_timeout_ms = options.timeout_ms;
  ckpt_result result{};
  result.struct_size = sizeof result;
  Outcome outcome = Timed([&](ckpt_error** e) {
    return Lib().ckpt_load(ctx.get(), state.get(), &o, &result, nullptr, e);
  });
  outcome.result = result;
  return outcome;
}

}  // namespace ckpt_test
