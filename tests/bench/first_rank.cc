// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank of the benchmark "first save"; see first_rank.h.
#include "bench/first_rank.h"

#include <ckpt.h>
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/bench.h"

namespace bench {
namespace {

constexpr int64_t kTensorElements = int64_t{2} << 20;  // 8 MiB of f32: a layer's matrix

struct Library {
  void* handle;
  decltype(&::ckpt_version_string) version;
  decltype(&::ckpt_error_message) message;
  decltype(&::ckpt_init) init;
  decltype(&::ckpt_finalize) finalize;
  decltype(&::ckpt_ctx_free) ctx_free;
  decltype(&::ckpt_state_new) state_new;
  decltype(&::ckpt_state_add_tensors) add_tensors;
  decltype(&::ckpt_state_free) state_free;
  decltype(&::ckpt_save_collective) save;
};

template <typename Function>
void Bind(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (*function == nullptr) Fail(std::string("no ") + name + " in the library");
}

Library Open(const std::string& path) {
  Library lib = {};
  lib.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (lib.handle == nullptr) Fail(::dlerror());
  Bind(lib.handle, "ckpt_version_string", &lib.version);
  Bind(lib.handle, "ckpt_error_message", &lib.message);
  Bind(lib.handle, "ckpt_init", &lib.init);
  Bind(lib.handle, "ckpt_finalize", &lib.finalize);
  Bind(lib.handle, "ckpt_ctx_free", &lib.ctx_free);
  Bind(lib.handle, "ckpt_state_new", &lib.state_new);
  Bind(lib.handle, "ckpt_state_add_tensors", &lib.add_tensors);
  Bind(lib.handle, "ckpt_state_free", &lib.state_free);
  Bind(lib.handle, "ckpt_save_collective", &lib.save);
  return lib;
}

class RankProcess {
 public:
  RankProcess(const Job& job, int rank, int socket)
      : job_(job), rank_(rank), socket_(socket), lib_(Open(job.library)) {}

  void Serve() {
    Describe();
    before_ = Memory("VmRSS");
    Start();
    Send(Answer{});
    for (Order order = Receive(); order.step >= 0; order = Receive()) Send(Save(order.step));
    Check(lib_.finalize(ctx_, 0, &error_), "ckpt_finalize");
    lib_.state_free(state_);
    lib_.ctx_free(ctx_);
  }

 private:
  void Check(ckpt_status status, const char* what) const {
    errno = 0;
    if (status == CKPT_OK) return;
    Fail("rank " + std::to_string(rank_) + ": " + what + " = " + std::to_string(status) + ": " +
         (error_ ? lib_.message(error_) : "no error object"));
  }

  // Tensors of the whole state with this rank's memory for them.  Memory is touched here, before
  // `before_` is taken.
  void Describe() {
    const auto elements = static_cast<int64_t>(job_.bytes / 4);
    const int64_t whole = job_.layout == Layout::kZero ? elements / 7 : 0;
    for (int64_t at = 0; at < whole; at += kTensorElements) {
      const int64_t n = std::min(kTensorElements, whole - at);
      Add("model", CKPT_SHARD_WHOLE, n, 0, n, at);
    }
    for (int64_t at = whole; at < elements; at += kTensorElements) {
      const int64_t n = std::min(kTensorElements, elements - at);
      const int64_t from = n * rank_ / job_.ranks;
      const int64_t to = n * (rank_ + 1) / job_.ranks;
      Add("optimizer", CKPT_SHARD_FLAT, n, from, to - from, at);
    }
  }

  void Add(const char* group, uint32_t kind, int64_t n, int64_t offset, int64_t count, int64_t at) {
    char name[32];
    std::snprintf(name, sizeof name, "layers.%04zu.weight", shards_.size());
    Shard& shard = shards_.emplace_back(Shard{name, n, {}});
    ckpt_tensor& t = shard.tensor;
    t.struct_size = sizeof t;
    t.group = group;
    t.dtype = CKPT_DTYPE(2, 32);
    t.ndim = 1;
    t.shard_kind = kind;
    if (kind == CKPT_SHARD_FLAT) t.flat_offset = offset, t.flat_count = count;
    t.data = WarmBytes(static_cast<uint64_t>(count) * 4, static_cast<uint64_t>(at + offset));
  }

  void Start() {
    ckpt_init_options options = {};
    options.struct_size = sizeof options;
    options.root = job_.root.c_str();
    options.config = job_.config.empty() ? nullptr : job_.config.c_str();
    Check(lib_.init(CKPT_HEADER_ABI, &options, &ctx_, &error_), "ckpt_init");
    Check(lib_.state_new(ctx_, &state_, &error_), "ckpt_state_new");
    for (Shard& shard : shards_) {  // the vector no longer moves: pointers into it may be taken
      shard.tensor.name = shard.name.c_str();
      shard.tensor.global_shape = &shard.elements;
      const ckpt_tensor* tensor = &shard.tensor;
      Check(lib_.add_tensors(state_, &tensor, 1, nullptr, &error_), "ckpt_state_add_tensors");
    }
  }

  Answer Save(int64_t step) {
    ckpt_save_options options = {};
    options.struct_size = sizeof options;
    options.step = step;
    ckpt_result result = {};
    result.struct_size = sizeof result;
    ResetPeak();
    Answer answer = {};
    answer.step = step;
    answer.start = Now();
    const ckpt_status status = lib_.save(ctx_, state_, &options, &result, nullptr, &error_);
    answer.end = Now();
    Check(status, "ckpt_save_collective");
    const uint64_t peak = Memory("VmHWM");
    answer.extra_bytes = peak > before_ ? peak - before_ : 0;
    answer.snapshot_ns = result.snapshot_ns;
    answer.io_ns = result.io_ns;
    answer.commit_ns = result.commit_ns;
    answer.exchanged = result.bytes_exchanged;
    return answer;
  }

  void Send(Answer answer) const {
    std::snprintf(answer.version, sizeof answer.version, "%s", lib_.version());
    if (::send(socket_, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) ::_exit(2);
  }

  Order Receive() const {
    Order order = {};
    if (::recv(socket_, &order, sizeof order, MSG_WAITALL) != sizeof order) ::_exit(2);
    return order;
  }

  struct Shard {
    std::string name;
    int64_t elements;
    ckpt_tensor tensor;
  };

  const Job& job_;
  const int rank_, socket_;
  const Library lib_;
  std::vector<Shard> shards_;
  uint64_t before_ = 0;
  ckpt_ctx* ctx_ = nullptr;
  ckpt_state* state_ = nullptr;
  mutable ckpt_error* error_ = nullptr;
};

void SetEnvironment(const Job& job, int rank) {
  const std::string own = std::to_string(rank), all = std::to_string(job.ranks);
  for (const char* name : {"RANK", "LOCAL_RANK"}) ::setenv(name, own.c_str(), 1);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) ::setenv(name, all.c_str(), 1);
  ::setenv("CKPT_JOB_ID", job.id.c_str(), 1);
}

}  // namespace

void ServeRank(const Job& job, int rank, int socket) {
  SetEnvironment(job, rank);
  RankProcess(job, rank, socket).Serve();
  ::_exit(0);
}

}  // namespace bench
