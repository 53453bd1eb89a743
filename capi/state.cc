// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// States: what this rank holds.  Any failed change poisons the state: it no longer says what the
// caller meant, and a save of it must fail on all ranks.
// Test: tests/conformance/bad_input.c, round_trip.c
#include <unistd.h>

#include "capi/barrier.h"
#include "capi/handles.h"
#include "capi/tensor.h"
#include "capi/values.h"

namespace ckpt::capi {
namespace {

// One change of a state, between the checks and the poison.
template <typename Fn>
ckpt_status Change(ckpt_state* s, ckpt_error** err, Fn change) noexcept {
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckState(s));
    const Status status = Contain(change);
    if (!status.ok()) s->state.Poison(status);
    return status;
  });
}

Status AddTensors(State& state, const ckpt_tensor* const* t, uint64_t n, uint64_t* first_id) {
  if (t == nullptr && n > 0) return Invalid("t", "the array of tensors is NULL");
  if (first_id != nullptr) *first_id = state.tensors().size();
  for (uint64_t i = 0; i < n; ++i) {
    CKPT_ASSIGN_OR_RETURN(const TensorSpec spec, ConvertTensor(t[i], i));
    CKPT_RETURN_IF_ERROR(state.AddTensor(spec).status());
  }
  return Status();
}

Status AddBlob(State& state, const ckpt_blob* b, uint64_t* id) {
  CKPT_ASSIGN_OR_RETURN(const BlobSpec spec, ConvertBlob(b));
  CKPT_ASSIGN_OR_RETURN(const uint64_t added, state.AddBlob(spec));
  if (id != nullptr) *id = added;
  return Status();
}

}  // namespace
}  // namespace ckpt::capi

using namespace ckpt::capi;  // NOLINT: the entries below are C
using ckpt::Status;

ckpt_status ckpt_state_new(ckpt_ctx* c, ckpt_state** out, ckpt_error** err) noexcept {
  if (out != nullptr) *out = nullptr;
  return Enter(err, [&]() -> Status {
    CKPT_RETURN_IF_ERROR(CheckCtx(c));
    if (out == nullptr) return Invalid("out", "ckpt_state_new: out is NULL");
    auto state = std::make_unique<ckpt_state>();
    state->pid = ::getpid();
    state->session = c->session;
    *out = state.release();
    return Status();
  });
}

ckpt_status ckpt_state_add_tensors(ckpt_state* s, const ckpt_tensor* const* t, uint64_t n,
                                   uint64_t* first_id, ckpt_error** err) noexcept {
  return Change(s, err, [&] { return AddTensors(s->state, t, n, first_id); });
}

ckpt_status ckpt_state_update(ckpt_state* s, uint64_t id, void* data, void* stream,
                              ckpt_error** err) noexcept {
  static_cast<void>(stream);  // host memory needs no ordering
  return Change(s, err, [&] { return s->state.UpdateTensor(id, data); });
}

ckpt_status ckpt_state_add_blob(ckpt_state* s, const ckpt_blob* b, uint64_t* id,
                                ckpt_error** err) noexcept {
  return Change(s, err, [&] { return AddBlob(s->state, b, id); });
}

ckpt_status ckpt_state_update_blob(ckpt_state* s, uint64_t id, void* data, uint64_t bytes,
                                   ckpt_error** err) noexcept {
  return Change(s, err, [&] { return s->state.UpdateBlob(id, data, bytes); });
}

ckpt_status ckpt_state_add_alias(ckpt_state* s, const char* group, const char* alias,
                                 const char* of, ckpt_error** err) noexcept {
  return Change(s, err, [&]() -> Status {
    if (alias == nullptr || of == nullptr) return Invalid("alias", "alias or of is NULL");
    return s->state.AddAlias(group == nullptr ? "model" : group, alias, of);
  });
}

ckpt_status ckpt_state_rename(ckpt_state* s, const char* from_prefix, const char* to_prefix,
                              ckpt_error** err) noexcept {
  return Change(s, err, [&]() -> Status {
    if (from_prefix == nullptr || to_prefix == nullptr) {
      return Invalid("from_prefix", "from_prefix or to_prefix is NULL");
    }
    return s->state.AddRename(from_prefix, to_prefix);
  });
}

const char* ckpt_state_name(const ckpt_state* s, uint32_t which, uint64_t i) noexcept {
  if (s == nullptr || IsForked(s->pid) || CallbackScope::Active()) return nullptr;
  if (which != CKPT_NAMES_MISSING && which != CKPT_NAMES_UNUSED) return nullptr;
  const auto& names = which == CKPT_NAMES_MISSING ? s->state.missing : s->state.unused;
  return i < names.size() ? names[i].c_str() : nullptr;
}

void ckpt_state_free(ckpt_state* s) noexcept {
  FreeWhenUnused([s] { delete s; });
}
