// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What is declared but not built: UNSUPPORTED, with the name of the thing, and harmless.
#include "suite.h"

static void functions_that_are_not_built_say_so(void) {
  ckpt_ctx* ctx = new_ctx();
  save_sample(ctx, 1);
  ckpt_reader* reader = open_reader(scratch());
  ckpt_error* error = NULL;
  const void* view = &error;
  uint64_t bytes = 1;
  ckpt_status status = api.background(ctx, CKPT_BACKGROUND_TRIM, &error);
  expect_failed(status, error, CKPT_ERR_UNSUPPORTED, "ckpt_background");
  status = api.reader_read(reader, NULL, &error);
  expect_failed(status, error, CKPT_ERR_UNSUPPORTED, "ckpt_reader_read");
  status = api.reader_map(reader, "model", "w", &view, &bytes, &error);
  expect_failed(status, error, CKPT_ERR_UNSUPPORTED, "ckpt_reader_map");
  assert_null(view);
  api.reader_free(reader);
  save_sample(ctx, 2);
  api.ctx_free(ctx);
}

static void requests_do_not_exist_yet(void) {
  ckpt_result result = {.struct_size = sizeof result};
  ckpt_request_info info = {.struct_size = sizeof info};
  assert_int_equal(api.request_result(NULL, &result), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.request_status(NULL, &info), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.fence(NULL, "w", 0, NULL), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.wait(NULL, CKPT_AT_COMMITTED, 0, NULL), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.cancel(NULL), CKPT_ERR_INVALID_ARGUMENT);
  assert_int_equal(api.request_fd(NULL), -1);
}

static void asynchronous_calls_are_refused(void) {
  ckpt_ctx* ctx = new_ctx();
  ckpt_state* state = new_state(ctx);
  const ckpt_save_options save = save_options(1);
  const ckpt_load_options load = load_options(1);
  ckpt_request* request = (ckpt_request*)&save;
  ckpt_error* error = NULL;
  ckpt_status status = api.save_collective(ctx, state, &save, NULL, &request, &error);
  expect_failed(status, error, CKPT_ERR_UNSUPPORTED, "req");
  assert_null(request);
  request = (ckpt_request*)&save;
  status = api.load(ctx, state, &load, NULL, &request, &error);
  expect_failed(status, error, CKPT_ERR_UNSUPPORTED, "req");
  assert_null(request);
  api.state_free(state);
  api.ctx_free(ctx);
}

static const test_case kCases[] = {
    CASE(functions_that_are_not_built_say_so),
    CASE(requests_do_not_exist_yet),
    CASE(asynchronous_calls_are_refused),
};
AREA(later, kCases);
