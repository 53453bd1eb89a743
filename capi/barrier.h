// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The one exception barrier of the C edge, and the rule about callbacks (R5, R6): every exported
// function runs inside Enter (or EnterAny, if it is marked [cb]).
// Test: tests/conformance/callbacks.c, errors.c
#ifndef CKPT_CAPI_BARRIER_H_
#define CKPT_CAPI_BARRIER_H_

#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <utility>

#include "ckpt.h"
#include "util/status.h"

namespace ckpt::capi {

// Alive while a callback of the host runs on this thread.
class CallbackScope {
 public:
  CallbackScope() { ++depth_; }
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  static bool Active() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};

// Alive while a function of the library runs on this thread.
class EntryScope {
 public:
  EntryScope() { ++depth_; }
  ~EntryScope();
  EntryScope(const EntryScope&) = delete;
  EntryScope& operator=(const EntryScope&) = delete;
  static bool Active() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};

// What a *_free does: inside a callback it is put off until the call that runs the callback has
// ended on this thread, since that call may use the object.  A garbage collector frees whenever it
// likes.
void FreeWhenUnused(std::function<void()> free) noexcept;

// STATE, with words, inside a callback.
Status CheckNotInCallback();

// The status as a code, and as a new error object if `err` wants one.
ckpt_status Report(const Status& status, ckpt_error** err);
// The same where memory may be short: no object then, only the code.
ckpt_status ReportPlain(Code code, const char* message, ckpt_error** err) noexcept;

// `fn` returns Status.  Its exceptions become codes here and go no further.
template <typename Fn>
ckpt_status EnterAny(ckpt_error** err, Fn&& fn) noexcept {
  if (err != nullptr) *err = nullptr;
  EntryScope scope;
  try {
    return Report(std::forward<Fn>(fn)(), err);
  } catch (const std::bad_alloc&) {
    return ReportPlain(Code::kNoMemory, "out of host memory", err);
  } catch (const std::exception& e) {
    return ReportPlain(Code::kInternal, e.what(), err);
  } catch (...) {
    return ReportPlain(Code::kInternal, "an exception of unknown type", err);
  }
}

template <typename Fn>
ckpt_status Enter(ckpt_error** err, Fn&& fn) noexcept {
  return EnterAny(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckNotInCallback());
    return std::forward<Fn>(fn)();
  });
}

// For work before a collective: an exception becomes a Status, which can still be sent to the
// peers.
template <typename Fn>
Status Contain(Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (const std::bad_alloc&) {
    return Status(Code::kNoMemory, "out of host memory");
  } catch (const std::exception& e) {
    return Status(Code::kInternal, e.what());
  }
}

}  // namespace ckpt::capi

#endif  // CKPT_CAPI_BARRIER_H_
