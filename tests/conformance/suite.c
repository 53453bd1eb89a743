// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What cases share.
#include "suite.h"

#include <stdlib.h>
#include <unistd.h>

const char* scratch(void) { return getenv("CKPT_TEST_SCRATCH"); }

ckpt_init_options default_init(void) {
  static const ckpt_comm self = {.struct_size = sizeof self, .kind = CKPT_COMM_SELF};
  const ckpt_init_options options = {.struct_size = sizeof options,
                                     .comm = &self,
                                     .root = scratch(),
                                     .contract_timeout_ms = 5000,
                                     .heartbeat_ms = 100};
  return options;
}

ckpt_ctx* init_with(const ckpt_init_options* options) {
  ckpt_ctx* ctx = NULL;
  ckpt_error* error = NULL;
  const ckpt_status status = api.init(CKPT_HEADER_ABI, options, &ctx, &error);
  expect_ok(status, error);
  assert_non_null(ctx);
  return ctx;
}

ckpt_ctx* new_ctx(void) {
  const ckpt_init_options options = default_init();
  return init_with(&options);
}

ckpt_state* new_state(ckpt_ctx* ctx) {
  ckpt_state* state = NULL;
  ckpt_error* error = NULL;
  const ckpt_status status = api.state_new(ctx, &state, &error);
  expect_ok(status, error);
  assert_non_null(state);
  return state;
}

ckpt_tensor f32_tensor(const char* name, const int64_t* n, void* data) {
  const ckpt_tensor tensor = {.struct_size = sizeof tensor,
                              .name = name,
                              .dtype = CKPT_DTYPE(2, 32),
                              .ndim = 1,
                              .global_shape = n,
                              .data = data};
  return tensor;
}

void add_f32(ckpt_state* state, const char* name, const int64_t* n, float* data) {
  const ckpt_tensor tensor = f32_tensor(name, n, data);
  const ckpt_tensor* const list[] = {&tensor};
  ckpt_error* error = NULL;
  const ckpt_status status = api.state_add_tensors(state, list, 1, NULL, &error);
  expect_ok(status, error);
}

ckpt_save_options save_options(int64_t step) {
  const ckpt_save_options options = {.struct_size = sizeof options, .step = step};
  return options;
}

ckpt_load_options load_options(int64_t step) {
  const ckpt_load_options options = {.struct_size = sizeof options,
                                     .which = step < 0 ? CKPT_LOAD_LATEST : CKPT_LOAD_STEP,
                                     .step = step < 0 ? 0 : step};
  return options;
}

void save_step(ckpt_ctx* ctx, ckpt_state* state, int64_t step) {
  const ckpt_save_options options = save_options(step);
  ckpt_error* error = NULL;
  const ckpt_status status = api.save_collective(ctx, state, &options, NULL, NULL, &error);
  expect_ok(status, error);
}

void save_sample(ckpt_ctx* ctx, int64_t step) {
  static float w[] = {0, 1, 2, 3};
  static const int64_t n = 4;
  ckpt_state* state = new_state(ctx);
  add_f32(state, "w", &n, w);
  save_step(ctx, state, step);
  api.state_free(state);
}

ckpt_reader* open_reader(const char* path) {
  ckpt_reader* reader = NULL;
  ckpt_error* error = NULL;
  const ckpt_status status = api.open(path, CKPT_LOAD_LATEST, 0, &reader, &error);
  expect_ok(status, error);
  assert_non_null(reader);
  return reader;
}

void expect_ok(ckpt_status status, ckpt_error* error) {
  if (status != CKPT_OK) print_error("status %d: %s\n", status, api.error_message(error));
  assert_int_equal(status, CKPT_OK);
  assert_null(error);
}

static void check_failed(ckpt_status status, const ckpt_error* error, ckpt_status code,
                         const char* words) {
  const char* message = api.error_message(error);
  if (status != code) print_error("status %d: %s\n", status, message);
  assert_int_equal(status, code);
  assert_non_null(error);
  assert_int_equal(api.error_status(error), code);
  assert_true(*message != '\0');
  if (words != NULL && strstr(message, words) == NULL) {
    print_error("the message \"%s\" does not hold \"%s\"\n", message, words);
    fail();
  }
}

void expect_failed(ckpt_status status, ckpt_error* error, ckpt_status code, const char* words) {
  check_failed(status, error, code, words);
  api.error_free(error);
}

void expect_blamed(ckpt_status status, ckpt_error* error, ckpt_status code, const char* words,
                   const char* name) {
  check_failed(status, error, code, words);
  ckpt_error_cause cause = {.struct_size = sizeof cause};
  assert_int_equal(api.error_get_cause(error, &cause), CKPT_OK);
  assert_non_null(cause.name);
  assert_string_equal(cause.name, name);
  api.error_free(error);
}
