// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
#include "util/status.h"

#include <cerrno>
#include <cstring>

#include "util/text.h"

namespace ckpt {
namespace {
const std::string kEmpty;
const Cause kNoCause;
const std::vector<RankReport> kNoRanks;
}  // namespace

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kUnsupported:
      return "UNSUPPORTED";
    case Code::kState:
      return "STATE";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kCorrupt:
      return "CORRUPT";
    case Code::kIo:
      return "IO";
    case Code::kNoSpace:
      return "NO_SPACE";
    case Code::kNoMemory:
      return "NO_MEMORY";
    case Code::kDevice:
      return "DEVICE";
    case Code::kParticipants:
      return "PARTICIPANTS";
    case Code::kMismatch:
      return "MISMATCH";
    case Code::kComm:
      return "COMM";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kForked:
      return "FORKED";
    case Code::kExists:
      return "EXISTS";
    case Code::kCoverage:
      return "COVERAGE";
    case Code::kReplica:
      return "REPLICA";
    case Code::kShape:
      return "SHAPE";
    case Code::kDtype:
      return "DTYPE";
    case Code::kNoCheckpoint:
      return "NO_CHECKPOINT";
    case Code::kOwned:
      return "OWNED";
    case Code::kLimit:
      return "LIMIT";
    case Code::kOutcomeUnknown:
      return "OUTCOME_UNKNOWN";
    case Code::kInternal:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

Status::Status(Code code, std::string message, Cause cause) {
  if (code == Code::kOk) return;
  detail_ = std::make_shared<Detail>(Detail{code, std::move(message), std::move(cause), {}});
}

const std::string& Status::message() const { return detail_ ? detail_->message : kEmpty; }
const Cause& Status::cause() const { return detail_ ? detail_->cause : kNoCause; }
const std::vector<RankReport>& Status::ranks() const { return detail_ ? detail_->ranks : kNoRanks; }

Status Status::WithRank(int32_t rank) const {
  if (ok() || detail_->cause.rank >= 0) return *this;
  auto detail = std::make_shared<Detail>(*detail_);
  detail->cause.rank = rank;
  Status s;
  s.detail_ = std::move(detail);
  return s;
}

Status Status::WithRanks(std::vector<RankReport> ranks) const {
  if (ok()) return *this;
  auto detail = std::make_shared<Detail>(*detail_);
  detail->ranks = std::move(ranks);
  Status s;
  s.detail_ = std::move(detail);
  return s;
}

Status Status::WithMessage(std::string message) const {
  if (ok()) return *this;
  auto detail = std::make_shared<Detail>(*detail_);
  detail->message = std::move(message);
  Status s;
  s.detail_ = std::move(detail);
  return s;
}

Status ErrnoStatus(int err, std::string_view what, std::string_view path) {
  Code code = Code::kIo;
  if (err == ENOSPC || err == EDQUOT) code = Code::kNoSpace;
  if (err == ENOMEM) code = Code::kNoMemory;
  Cause cause;
  cause.sys_errno = err;
  cause.path = std::string(path);
  return Status(code, Cat(what, " ", path, ": ", ErrnoText(err)), std::move(cause));
}

}  // namespace ckpt
