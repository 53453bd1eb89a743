// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES K07: calls in the wrong order; each has its code, none hangs.
#include "suite.h"

static void k07_save_and_load_before_init(void) {
  const ckpt_save_options save = save_options(1);
  const ckpt_load_options load = load_options(1);
  ckpt_state* state = NULL;
  ckpt_error* error = NULL;
  int64_t step = 0;
  ckpt_status status = api.save_collective(NULL, NULL, &save, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "context");
  status = api.load(NULL, NULL, &load, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "context");
  status = api.state_new(NULL, &state, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "context");
  status = api.latest(NULL, &step, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "context");
  status = api.finalize(NULL, 0, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "context");
  status = api.poll(NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "context");
}

static void k07_wait_without_save(void) {
  ckpt_error* error = NULL;
  const ckpt_status status = api.wait(NULL, CKPT_AT_COMMITTED, 0, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "request");
}

static void k07_two_contexts_work_independently(void) {
  char root[256];
  ckpt_init_options options = default_init();
  options.name = "first";
  ckpt_ctx* first = init_with(&options);
  snprintf(root, sizeof root, "%s/second", scratch());
  options.name = "second";
  options.root = root;
  ckpt_ctx* second = init_with(&options);
  save_sample(first, 1);
  save_sample(second, 2);
  assert_int_equal(api.finalize(first, 0, NULL), CKPT_OK);
  save_sample(second, 3);
  int64_t step = 0;
  assert_int_equal(api.latest(second, &step, NULL), CKPT_OK);
  assert_int_equal(step, 3);
  api.ctx_free(first);
  save_sample(second, 4);
  api.ctx_free(second);
}

static void k07_use_after_finalize(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_state* state = new_state(ctx);
  ckpt_error* error = NULL;
  assert_int_equal(api.finalize(ctx, 0, NULL), CKPT_OK);
  const ckpt_save_options save = save_options(1);
  const ckpt_load_options load = load_options(1);
  ckpt_status status = api.save_collective(ctx, state, &save, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_STATE, "finalize");
  status = api.load(ctx, state, &load, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_STATE, "finalize");
  status = api.state_add_tensors(state, NULL, 0, NULL, &error);
  expect_failed(status, error, CKPT_ERR_STATE, "finalize");
  status = api.poll(ctx, &error);
  expect_failed(status, error, CKPT_ERR_STATE, "finalize");
  api.set_phase(ctx, "after the end", 1);
  api.state_free(state);
  api.ctx_free(ctx);
}

static void k07_finalize_twice(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_error* error = NULL;
  assert_int_equal(api.finalize(ctx, 1000, NULL), CKPT_OK);
  const ckpt_status status = api.finalize(ctx, 1000, &error);
  expect_failed(status, error, CKPT_ERR_STATE, "finalize");
  api.ctx_free(ctx);
}

static void finalize_refuses_to_wait_for_ever(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_error* error = NULL;
  const ckpt_status status = api.finalize(ctx, UINT64_MAX, &error);
  expect_blamed(status, error, CKPT_ERR_INVALID_ARGUMENT, "timeout_ms", "timeout_ms");
  save_sample(ctx, 1);  // it closed nothing
  assert_int_equal(api.finalize(ctx, 0, NULL), CKPT_OK);
  api.ctx_free(ctx);
}

static void state_outlives_its_context_only_to_be_freed(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_state* state = new_state(ctx);
  api.ctx_free(ctx);
  ckpt_error* error = NULL;
  const ckpt_status status = api.state_add_tensors(state, NULL, 0, NULL, &error);
  expect_failed(status, error, CKPT_ERR_STATE, "freed");
  api.state_free(state);
}

static void frees_accept_null(void) {
  api.ctx_free(NULL);
  api.state_free(NULL);
  api.request_free(NULL);
  api.reader_free(NULL);
  api.error_free(NULL);
  api.set_phase(NULL, "nowhere", 1);
  api.notify_signal(NULL, 15);
  assert_null(api.state_name(NULL, CKPT_NAMES_MISSING, 0));
}

static void set_phase_takes_anything(void) {
  ckpt_ctx* ctx = new_ctx();
  char long_phase[4096];
  memset(long_phase, 'x', sizeof long_phase - 1);
  long_phase[sizeof long_phase - 1] = '\0';
  api.set_phase(ctx, NULL, 0);
  api.set_phase(ctx, "", INT64_MIN);
  api.set_phase(ctx, long_phase, INT64_MAX);
  api.set_phase(ctx, "\xff\xfe", -1);
  save_sample(ctx, 1);
  api.ctx_free(ctx);
}

static const test_case kCases[] = {
    CASE(k07_save_and_load_before_init),
    CASE(k07_wait_without_save),
    CASE(k07_two_contexts_work_independently),
    CASE(k07_use_after_finalize),
    CASE(k07_finalize_twice),
    CASE(finalize_refuses_to_wait_for_ever),
    CASE(state_outlives_its_context_only_to_be_freed),
    CASE(frees_accept_null),
    CASE(set_phase_takes_anything),
};
AREA(order, kCases);
