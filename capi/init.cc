// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// ckpt_init: the caller's options checked and copied into core's.
// Test: tests/conformance/order.c, bad_input.c, structs.c
#include <unistd.h>

#include "capi/barrier.h"
#include "capi/callbacks.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "capi/values.h"
#include "util/text.h"

namespace ckpt::capi {
namespace {

constexpr size_t kMaxName = 255, kMaxPath = 4096, kMaxNote = 4096, kMaxConfig = 1 << 20;
constexpr uint64_t kDefaultContractMs = 60'000, kDefaultHeartbeatMs = 1'000;
constexpr uint64_t kMaxHeartbeatMs = 60'000;
constexpr int32_t kMaxIoThreads = 256;

std::string AbiText(uint32_t abi) { return Cat(abi >> 16, ".", abi & 0xffff); }

Status CheckAbi(uint32_t header_abi) {
  const uint32_t major = header_abi >> 16, minor = header_abi & 0xffff;
  if (major == CKPT_ABI_MAJOR && minor <= CKPT_ABI_MINOR) return Status();
  return Unsupported(
      "header_abi", Cat("the caller was compiled for ABI ", AbiText(header_abi), ", this library (",
                        ckpt_version_string(), ") has ABI ", AbiText(CKPT_HEADER_ABI)));
}

// Sets options->self.
Status ConvertComm(const ckpt_comm* in, SessionOptions* options) {
  if (in == nullptr) return Status();
  ckpt_comm comm;
  CKPT_RETURN_IF_ERROR(ReadStruct(in, &comm));
  CKPT_RETURN_IF_ERROR(CheckEnum(comm.kind, CKPT_COMM_VTABLE, "comm.kind"));
  if (comm.kind > CKPT_COMM_SELF) {
    static constexpr const char* kKinds[] = {"TCP", "MPI", "NCCL", "VTABLE"};
    return Unsupported("comm.kind", Cat("comm.kind CKPT_COMM_", kKinds[comm.kind - CKPT_COMM_TCP],
                                        " is not in this version: AUTO and SELF are"));
  }
  CKPT_RETURN_IF_ERROR(CheckFlags(comm.flags, 0, "comm.flags"));
  if (comm.port != 0 || comm.handle != nullptr || comm.handle_size != 0 ||
      comm.adapter != nullptr || comm.rank != 0 || comm.size != 0 || comm.addr != nullptr ||
      comm.token != nullptr || comm.stream != nullptr) {
    return Invalid("comm", "comm: for kind AUTO or SELF all fields after flags must be zero");
  }
  options->self = comm.kind == CKPT_COMM_SELF;
  return Status();
}

Status ConvertNames(const ckpt_init_options& o, SessionOptions* options) {
  if (o.root == nullptr || *o.root == '\0') return Invalid("root", "root is NULL or empty");
  if (o.name != nullptr && *o.name == '\0') return Invalid("name", "name is empty");
  CKPT_ASSIGN_OR_RETURN(options->root, CopyText(o.root, "root", kMaxPath));
  CKPT_ASSIGN_OR_RETURN(options->layout_note, CopyText(o.layout_note, "layout_note", kMaxNote));
  if (o.name != nullptr) {
    CKPT_ASSIGN_OR_RETURN(options->name, CopyText(o.name, "name", kMaxName));
  }
  return Status();
}

Status ConvertConfig(const ckpt_init_options& o, SessionOptions* options) {
  CKPT_ASSIGN_OR_RETURN(const std::string text, CopyText(o.config, "config", kMaxConfig));
  CKPT_ASSIGN_OR_RETURN(options->config, ParseConfig(text));
  if (o.io_threads < 0 || o.io_threads > kMaxIoThreads) {
    return Invalid("io_threads",
                   Cat("io_threads is ", o.io_threads, ": must be 0 to ", kMaxIoThreads));
  }
  if (o.io_threads > 0) options->config.io_threads = static_cast<uint32_t>(o.io_threads);
  CKPT_ASSIGN_OR_RETURN(
      options->contract_timeout_ms,
      CheckMillis(o.contract_timeout_ms, kDefaultContractMs, kMaxMillis, "contract_timeout_ms"));
  CKPT_ASSIGN_OR_RETURN(options->heartbeat_ms, CheckMillis(o.heartbeat_ms, kDefaultHeartbeatMs,
                                                           kMaxHeartbeatMs, "heartbeat_ms"));
  return Status();
}

Status ConvertCallbacks(const ckpt_init_options& o, SessionOptions* options) {
  constexpr auto kLast = static_cast<int32_t>(LogLevel::kDebug);
  if (o.log_level < 0 || o.log_level > kLast) {
    return Invalid("log_level", Cat("log_level is ", o.log_level, ": must be 0 to ", kLast));
  }
  const LogLevel level = o.log_level == 0 ? LogLevel::kWarn : LogLevel{o.log_level};
  options->log = std::make_shared<Log>(LogSink(o.log, o.log_user), level);
  options->on_event = EventSink(o.on_event, o.event_user);
  options->describe = DescribeSink(o.describe, o.describe_user);
  return Status();
}

Result<SessionOptions> ConvertInit(const ckpt_init_options* in) {
  ckpt_init_options o;
  CKPT_RETURN_IF_ERROR(ReadStruct(in, &o));
  CKPT_RETURN_IF_ERROR(CheckFlags(o.flags, CKPT_INIT_CALLBACKS_ANY_THREAD | CKPT_INIT_NO_WRITE,
                                  "ckpt_init_options.flags"));
  SessionOptions options;
  options.no_write = (o.flags & CKPT_INIT_NO_WRITE) != 0;
  CKPT_RETURN_IF_ERROR(ConvertComm(o.comm, &options));
  CKPT_RETURN_IF_ERROR(ConvertNames(o, &options));
  CKPT_RETURN_IF_ERROR(ConvertConfig(o, &options));
  CKPT_RETURN_IF_ERROR(ConvertCallbacks(o, &options));
  return options;
}

}  // namespace
}  // namespace ckpt::capi

ckpt_status ckpt_init(uint32_t header_abi, const ckpt_init_options* o, ckpt_ctx** out,
                      ckpt_error** err) noexcept {
  using namespace ckpt::capi;  // NOLINT
  if (out != nullptr) *out = nullptr;
  return Enter(err, [&]() -> ckpt::Status {
    CKPT_RETURN_IF_ERROR(CheckAbi(header_abi));
    if (out == nullptr) return Invalid("out", "ckpt_init: out is NULL");
    CKPT_ASSIGN_OR_RETURN(ckpt::SessionOptions options, ConvertInit(o));
    auto ctx = std::make_unique<ckpt_ctx>();
    ctx->pid = ::getpid();
    CKPT_ASSIGN_OR_RETURN(ctx->session, ckpt::Session::Create(std::move(options)));
    *out = ctx.release();
    return ckpt::Status();
  });
}
