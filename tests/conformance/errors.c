// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Error objects and err pointers.
#include <pthread.h>

#include "suite.h"

static ckpt_error* make_error(ckpt_ctx* ctx) {
  ckpt_error* error = NULL;
  const ckpt_load_options options = load_options(-1);
  ckpt_state* state = new_state(ctx);
  api.load(ctx, state, &options, NULL, NULL, &error);
  api.state_free(state);
  assert_non_null(error);
  return error;
}

static void errors_outlive_context_and_finalize(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_error* error = make_error(ctx);
  assert_int_equal(api.finalize(ctx, 0, NULL), CKPT_OK);
  api.ctx_free(ctx);
  ckpt_error_cause cause = {.struct_size = sizeof cause};
  assert_int_equal(api.error_get_cause(error, &cause), CKPT_OK);
  expect_failed(CKPT_ERR_NO_CHECKPOINT, error, CKPT_ERR_NO_CHECKPOINT, NULL);
}

static void* read_error(void* error) {
  return (void*)(intptr_t)(api.error_status(error) != CKPT_ERR_NO_CHECKPOINT ||
                           *api.error_message(error) == '\0');
}

static void errors_are_read_by_another_thread(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_error* error = make_error(ctx);
  api.ctx_free(ctx);
  pthread_t thread;
  void* bad = NULL;
  assert_int_equal(pthread_create(&thread, NULL, read_error, error), 0);
  assert_int_equal(pthread_join(thread, &bad), 0);
  assert_null(bad);
  api.error_free(error);
}

static void null_errors_are_harmless(void) {
  ckpt_rank_report report = {.struct_size = sizeof report};
  ckpt_error_cause cause = {.struct_size = sizeof cause};
  assert_int_equal(api.error_status(NULL), CKPT_OK);
  assert_string_equal(api.error_message(NULL), "");
  assert_int_equal(api.error_rank_count(NULL), 0);
  assert_int_equal(api.error_rank(NULL, 0, &report), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.error_get_cause(NULL, &cause), CKPT_ERR_INVALID_ARGUMENT);
  api.error_free(NULL);
}

static void accessors_refuse_what_is_not_there(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_error* error = make_error(ctx);
  ckpt_rank_report report = {.struct_size = sizeof report};
  const uint64_t count = api.error_rank_count(error);
  assert_int_equal(api.error_rank(error, count, &report), CKPT_ERR_NOT_FOUND);
  assert_int_equal(api.error_rank(error, 0, NULL), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.error_get_cause(error, NULL), CKPT_ERR_INVALID_ARGUMENT);
  api.error_free(error);
  api.ctx_free(ctx);
}

static void success_resets_the_error_pointer(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_error* error = (ckpt_error*)&ctx;
  assert_int_equal(api.poll(ctx, &error), CKPT_OK);
  assert_null(error);
  api.ctx_free(ctx);
}

static void every_error_pointer_may_be_null(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_state* state = new_state(ctx);
  ckpt_ctx* no_ctx = NULL;
  ckpt_state* no_state = NULL;
  ckpt_reader* no_reader = NULL;
  assert_int_equal(api.init(0, NULL, &no_ctx, NULL), CKPT_ERR_UNSUPPORTED);
  assert_int_equal(api.init(CKPT_HEADER_ABI, NULL, &no_ctx, NULL), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.state_new(NULL, &no_state, NULL), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.save_collective(ctx, state, NULL, NULL, NULL, NULL),
                   CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.load(ctx, state, NULL, NULL, NULL, NULL), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.open(NULL, 0, 0, &no_reader, NULL), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.latest(ctx, NULL, NULL), CKPT_ERR_INVALID_ARGUMENT);
  api.state_free(state);
  api.ctx_free(ctx);
}

static const test_case kCases[] = {
    CASE(errors_outlive_context_and_finalize),
    CASE(errors_are_read_by_another_thread),
    CASE(null_errors_are_harmless),
    CASE(accessors_refuse_what_is_not_there),
    CASE(success_resets_the_error_pointer),
    CASE(every_error_pointer_may_be_null),
};
AREA(errors, kCases);
