// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One result type for the whole library: Status (a code the caller can act on, a sentence, the
// first cause, the ranks concerned) and Result<T>.  Returned by value, never thrown.  The codes are
// the ABI's (ckpt.h, CKPT_ERR_*); capi checks that the two lists agree. Thread-safe for concurrent
// reads; a Status is plain memory and outlives what made it. Test: tests/unit/util/status_test.cc
#ifndef CKPT_UTIL_STATUS_H_
#define CKPT_UTIL_STATUS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ckpt {

enum class Code : int32_t {
  kOk = 0,
  kInvalidArgument = -1,
  kUnsupported = -2,
  kState = -3,
  kNotFound = -4,
  kCorrupt = -5,
  kIo = -6,
  kNoSpace = -7,
  kNoMemory = -8,
  kDevice = -9,
  kParticipants = -10,
  kMismatch = -11,
  kComm = -13,
  kCancelled = -14,
  kForked = -15,
  kExists = -16,
  kCoverage = -17,
  kReplica = -18,
  kShape = -19,
  kDtype = -20,
  kNoCheckpoint = -21,
  kOwned = -22,
  kLimit = -23,
  kOutcomeUnknown = -24,
  kInternal = -127,
};

// "CORRUPT", "PARTICIPANTS", ...: the ABI name without its prefix.
std::string_view CodeName(Code code);

// What first went wrong, structured.  Empty string / -1 / 0 = not known.
struct Cause {
  int32_t rank = -1;
  int32_t sys_errno = 0;
  std::string path;   // file
  std::string name;   // tensor, blob or option
  std::string field;  // what disagrees: "tag", "dtype", ...
};

// Condition of a rank in a verdict; the values are the ABI's CKPT_RANK_*.
enum class Condition : uint32_t {
  kAliveElsewhere = 1,
  kUnresponsive = 2,
  kDead = 3,
  kDisagrees = 4,
  kFailed = 5,
  kUnknown = 6,
  kLeft = 7,
};

// What is known of one rank that a verdict names.
struct RankReport {
  int32_t rank = -1;
  Condition condition = Condition::kUnknown;
  uint64_t heartbeat_age_ns = 0;
  int64_t phase_step = -1;
  std::string host, phase, doing, last_call;
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(Code code, std::string message) : Status(code, std::move(message), Cause{}) {}
  Status(Code code, std::string message, Cause cause);

  bool ok() const { return detail_ == nullptr; }
  Code code() const { return detail_ ? detail_->code : Code::kOk; }
  const std::string& message() const;
  const Cause& cause() const;
  const std::vector<RankReport>& ranks() const;

  // Copies with one thing changed; no effect on OK.
  Status WithRank(int32_t rank) const;  // sets cause.rank if none is set yet
  Status WithRanks(std::vector<RankReport> ranks) const;
  Status WithMessage(std::string message) const;

 private:
  struct Detail {
    Code code;
    std::string message;
    Cause cause;
    std::vector<RankReport> ranks;
  };
  std::shared_ptr<const Detail> detail_;  // shared: immutable, and a verdict goes to many waiters
};

// errno -> NO_SPACE (ENOSPC, EDQUOT), NO_MEMORY (ENOMEM) or IO;
// message "`what` `path`: <strerror>".
Status ErrnoStatus(int err, std::string_view what, std::string_view path);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<1>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Status status) : v_(std::in_place_index<0>, std::move(status)) {}  // NOLINT; not OK

  bool ok() const { return v_.index() == 1; }
  Status status() const { return ok() ? Status() : std::get<0>(v_); }
  T& value() & { return std::get<1>(v_); }
  const T& value() const& { return std::get<1>(v_); }
  T&& value() && { return std::get<1>(std::move(v_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  std::variant<Status, T> v_;
};

}  // namespace ckpt

// The only two macros that return.
#define CKPT_CONCAT_INNER(a, b) a##b
#define CKPT_CONCAT(a, b) CKPT_CONCAT_INNER(a, b)
#define CKPT_RETURN_IF_ERROR(expr)               \
  do {                                           \
    ::ckpt::Status ckpt_status_ = (expr);        \
    if (!ckpt_status_.ok()) return ckpt_status_; \
  } while (0)
#define CKPT_ASSIGN_OR_RETURN(lhs, expr) \
  CKPT_ASSIGN_OR_RETURN_INNER(CKPT_CONCAT(ckpt_result_, __LINE__), lhs, expr)
#define CKPT_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return tmp.status();               \
  lhs = std::move(tmp).value()

#endif  // CKPT_UTIL_STATUS_H_
