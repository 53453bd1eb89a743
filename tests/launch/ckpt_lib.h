// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The library as a test sees it: opened with dlopen from $CKPT_LIB, every function of ckpt.h in
// one table, and thin owners (Ctx, State) whose calls return an Outcome: status, message, rank
// reports and cause in plain C++. Used by tests/process.
#pragma once

#include <functional>
#include <iosfwd>
#include <set>
#include <string>
#include <vector>

#include "ckpt.h"

namespace ckpt_test {

// clang-format off: it does not settle on this macro
#define CKPT_TEST_FUNCTIONS(X) \
  X(ckpt_abi_version)          \
  X(ckpt_rank)                 \
  X(ckpt_size)                 \
  X(ckpt_status_name)          \
  X(ckpt_version_string)       \
  X(ckpt_has_feature)          \
  X(ckpt_error_status)         \
  X(ckpt_error_message)        \
  X(ckpt_error_rank_count)     \
  X(ckpt_error_rank)           \
  X(ckpt_error_get_cause)      \
  X(ckpt_error_free)           \
  X(ckpt_init)                 \
  X(ckpt_finalize)             \
  X(ckpt_ctx_free)             \
  X(ckpt_set_phase)            \
  X(ckpt_notify_signal)        \
  X(ckpt_advise)               \
  X(ckpt_state_new)            \
  X(ckpt_state_add_tensors)    \
  X(ckpt_state_add_alias)      \
  X(ckpt_state_update)         \
  X(ckpt_state_add_blob)       \
  X(ckpt_state_update_blob)    \
  X(ckpt_state_rename)         \
  X(ckpt_state_free)           \
  X(ckpt_save_collective)      \
  X(ckpt_load)                 \
  X(ckpt_request_result)       \
  X(ckpt_state_name)           \
  X(ckpt_latest)               \
  X(ckpt_fence)                \
  X(ckpt_wait)                 \
  X(ckpt_poll)                 \
  X(ckpt_request_status)       \
  X(ckpt_background)           \
  X(ckpt_request_fd)           \
  X(ckpt_cancel)               \
  X(ckpt_request_free)         \
  X(ckpt_pin)                  \
  X(ckpt_mark_bad)             \
  X(ckpt_open)                 \
  X(ckpt_reader_checkpoint)    \
  X(ckpt_reader_tensor)        \
  X(ckpt_reader_file)          \
  X(ckpt_reader_file_writer)   \
  X(ckpt_reader_blob)          \
  X(ckpt_reader_read_blob)     \
  X(ckpt_reader_read)          \
  X(ckpt_reader_map)           \
  X(ckpt_reader_verify)        \
  X(ckpt_reader_free)
// clang-format on

struct Api {
#define X(name) decltype(&::name) name = nullptr;
  CKPT_TEST_FUNCTIONS(X)
#undef X
};

// Opened at the first call of this process. Throws std::runtime_error when $CKPT_LIB is unset,
// cannot be opened, or lacks a function.
const Api& Lib();

inline constexpr uint32_t kF32 = CKPT_DTYPE(2, 32);
inline constexpr uint32_t kBf16 = CKPT_DTYPE(4, 16);
inline constexpr uint32_t kU8 = CKPT_DTYPE(1, 8);
inline constexpr uint32_t kI64 = CKPT_DTYPE(0, 64);

struct RankReport {
  int rank = -1;
  uint32_t condition = 0;
  int64_t phase_step = 0;
  std::string host, phase, doing, last_call;
};

struct Outcome {
  ckpt_status status = CKPT_OK;
  std::string message;
  std::vector<RankReport> ranks;
  struct {
    int rank = -1;
    int sys_errno = 0;
    std::string path, name, field;
  } cause;
  ckpt_result result{};
  double seconds = 0;

  bool ok() const { return status == CKPT_OK; }
  bool Says(const std::string& part) const { return message.find(part) != std::string::npos; }
  std::set<int> RankSet() const;
  std::set<int> RankSet(uint32_t condition) const;
  const RankReport* Report(int rank) const;  // nullptr: not named
  // Status, rank set and text: what every rank of a round must get alike.
  std::string Verdict() const;
};
std::ostream& operator<<(std::ostream& out, const Outcome& o);
const char* StatusName(ckpt_status status);

// Frees `error` and keeps what it says.
Outcome Take(ckpt_status status, ckpt_error* error);

struct CtxOptions {
  std::string root = {};
  std::string config = {};
  std::string name = {};
  uint64_t timeout_ms = 3000;
  uint64_t heartbeat_ms = 200;
  uint32_t flags = 0;
  const ckpt_comm* comm = nullptr;
  std::string layout_note = {};
  std::function<int(const ckpt_event&)> on_event = {};
};

class Ctx {
 public:
  explicit Ctx(const CtxOptions& options);  // see init() for how it went
  ~Ctx();
  Ctx(const Ctx&) = delete;
  Ctx& operator=(const Ctx&) = delete;

  const Outcome& init() const { return init_; }
  ckpt_ctx* get() const { return ctx_; }
  void Phase(const std::string& phase, int64_t step);
  Outcome Finalize(uint64_t timeout_ms = 5000);
  Outcome Latest(int64_t* step);
  void Free();  // as ckpt_ctx_free; the destructor does it too

 private:
  std::function<int(const ckpt_event&)> on_event_;
  ckpt_ctx* ctx_ = nullptr;
  Outcome init_;
};

using Dims = std::vector<int64_t>;

// One shard. Whole, Box and Flat below make them; the caller's memory must outlive the state.
struct Tensor {
  std::string name;
  Dims shape;
  uint32_t dtype = kF32;
  uint32_t kind = CKPT_SHARD_WHOLE;
  Dims offset = {}, extent = {};
  int64_t flat_offset = 0, flat_count = 0;
  void* data = nullptr;
  std::string group = {};  // empty: the default
  uint32_t flags = 0;
  Dims strides = {};         // empty: compact
  uint32_t store_dtype = 0;  // 0: as dtype
};

class State {
 public:
  explicit State(Ctx& ctx);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ckpt_state* get() const { return state_; }

  Outcome TryAdd(const Tensor& t);
  Outcome TryBlob(uint32_t scope, const std::string& name, void* data, uint64_t bytes,
                  uint32_t flags = 0, uint64_t* actual = nullptr, int writer_rank = -1);

  Outcome TryAlias(const std::string& alias, const std::string& of, const std::string& group = {});
  Outcome Rename(const std::string& from, const std::string& to);
  Outcome Update(uint64_t id, void* data);
  // Of the last load: what it did not find, and what nobody asked for.
  std::vector<std::string> Missing() const { return Names(CKPT_NAMES_MISSING); }
  std::vector<std::string> Unused() const { return Names(CKPT_NAMES_UNUSED); }

  // These fail the test when the library refuses.
  State& Add(const Tensor& t);
  State& Whole(const std::string& name, const Dims& shape, std::vector<float>& data);
  State& Box(const std::string& name, const Dims& shape, const Dims& offset, const Dims& extent,
             std::vector<float>& data);
  State& Flat(const std::string& name, const Dims& shape, int64_t offset, std::vector<float>& data);
  State& Blob(uint32_t scope, const std::string& name, std::vector<uint8_t>& data);

 private:
  std::vector<std::string> Names(uint32_t which) const;

  ckpt_state* state_ = nullptr;
};

struct SaveOptions {
  int64_t step = 0;
  std::string tag = {};
  uint32_t on_existing = CKPT_EXISTING_AUTO;
  std::string metadata = {};
  uint64_t timeout_ms = 0;
};
Outcome Save(Ctx& ctx, State& state, const SaveOptions& options);
Outcome Save(Ctx& ctx, State& state, int64_t step);

struct LoadOptions {
  int64_t step = -1;  // -1: the newest
  uint32_t flags = 0;
  std::string uri = {};
  uint64_t timeout_ms = 0;
};
Outcome Load(Ctx& ctx, State& state, const LoadOptions& options = {});

}  // namespace ckpt_test
