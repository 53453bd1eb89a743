// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// R1: structs that grow.  Each input struct meets the same sizes and tails; outputs are cut.
#include <stdlib.h>

#include "suite.h"

// Room for a struct of a later release.
typedef union buffer {
  uint32_t struct_size;
  uint64_t align;
  unsigned char bytes[8192];
} buffer;

static float data[4];
static const int64_t n = 4;
static ckpt_ctx* ctx;
static ckpt_state* state;

// One call per input struct; `in` holds a good one, but for its size and tail.
static ckpt_status call_init(const void* in, ckpt_error** error) {
  ckpt_ctx* out = NULL;
  const ckpt_status status = api.init(CKPT_HEADER_ABI, in, &out, error);
  api.ctx_free(out);
  return status;
}
static ckpt_status call_comm(const void* in, ckpt_error** error) {
  ckpt_init_options options = default_init();
  options.comm = in;
  return call_init(&options, error);
}
static ckpt_status call_tensor(const void* in, ckpt_error** error) {
  const ckpt_tensor* const list[] = {in};
  ckpt_state* fresh = new_state(ctx);
  const ckpt_status status = api.state_add_tensors(fresh, list, 1, NULL, error);
  api.state_free(fresh);
  return status;
}
static ckpt_status call_blob(const void* in, ckpt_error** error) {
  ckpt_state* fresh = new_state(ctx);
  const ckpt_status status = api.state_add_blob(fresh, in, NULL, error);
  api.state_free(fresh);
  return status;
}
static ckpt_status call_save(const void* in, ckpt_error** error) {
  return api.save_collective(ctx, state, in, NULL, NULL, error);
}
static ckpt_status call_load(const void* in, ckpt_error** error) {
  return api.load(ctx, state, in, NULL, NULL, error);
}

static void expect_code(ckpt_status (*call)(const void*, ckpt_error**), const buffer* in,
                        ckpt_status code, const char* name) {
  ckpt_error* error = NULL;
  const ckpt_status status = call(in, &error);
  if (code == CKPT_OK) {
    expect_ok(status, error);
  } else {
    expect_blamed(status, error, code, name, name);
  }
}

static void check_sizes(const char* name, const void* good, uint32_t size,
                        ckpt_status (*call)(const void*, ckpt_error**)) {
  static buffer in;
  memset(&in, 0, sizeof in);
  memcpy(&in, good, size);
  static const uint32_t bad[] = {0, 3, 4, 8, 4097, 1u << 20, UINT32_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    in.struct_size = bad[i];
    expect_code(call, &in, CKPT_ERR_INVALID_ARGUMENT, name);
  }
  in.struct_size = size - 1;
  expect_code(call, &in, CKPT_ERR_INVALID_ARGUMENT, name);
  in.struct_size = size;
  expect_code(call, &in, CKPT_OK, name);
  in.struct_size = size + 64;
  expect_code(call, &in, CKPT_OK, name);
  in.bytes[size + 63] = 1;
  expect_code(call, &in, CKPT_ERR_UNSUPPORTED, name);
  in.struct_size = size + 63;  // the byte set lies outside: nobody's business
  expect_code(call, &in, CKPT_OK, name);
  in.bytes[size] = 1;
  expect_code(call, &in, CKPT_ERR_UNSUPPORTED, name);
}

static void open_context(void) {
  ctx = new_ctx();
  state = new_state(ctx);
  add_f32(state, "w", &n, data);
}

static void close_context(void) {
  api.state_free(state);
  api.ctx_free(ctx);
}

static void init_options_sizes(void) {
  const ckpt_init_options good = default_init();
  check_sizes("ckpt_init_options", &good, sizeof good, call_init);
}

static void comm_sizes(void) {
  const ckpt_comm good = {.struct_size = sizeof good, .kind = CKPT_COMM_SELF};
  check_sizes("ckpt_comm", &good, sizeof good, call_comm);
}

static void tensor_sizes(void) {
  open_context();
  const ckpt_tensor good = f32_tensor("t", &n, data);
  check_sizes("ckpt_tensor", &good, sizeof good, call_tensor);
  close_context();
}

static void blob_sizes(void) {
  open_context();
  const ckpt_blob good = {.struct_size = sizeof good, .name = "b", .data = data, .bytes = 4};
  check_sizes("ckpt_blob", &good, sizeof good, call_blob);
  close_context();
}

static void save_options_sizes(void) {
  open_context();
  const ckpt_save_options good = save_options(1);
  check_sizes("ckpt_save_options", &good, sizeof good, call_save);
  close_context();
}

static void load_options_sizes(void) {
  open_context();
  save_step(ctx, state, 1);
  const ckpt_load_options good = load_options(1);
  check_sizes("ckpt_load_options", &good, sizeof good, call_load);
  close_context();
}

// An output of `size` bytes: cut to what the caller has room for, nothing beyond touched.
typedef ckpt_status (*output_fn)(void* out);
static ckpt_reader* source;
static ckpt_error* failure;

static ckpt_status get_checkpoint(void* out) { return api.reader_checkpoint(source, 0, out); }
static ckpt_status get_tensor(void* out) { return api.reader_tensor(source, 0, out); }
static ckpt_status get_file(void* out) { return api.reader_file(source, 0, out); }
static ckpt_status get_blob(void* out) { return api.reader_blob(source, 0, out); }
static ckpt_status get_cause(void* out) { return api.error_get_cause(failure, out); }
static ckpt_status get_result(void* out) {
  const ckpt_load_options options = load_options(1);
  return api.load(ctx, state, &options, out, NULL, NULL);
}

static void check_output(output_fn get, uint32_t size) {
  static buffer out;
  static const uint32_t bad[] = {0, 3, 7, 4097, UINT32_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    out.struct_size = bad[i];
    assert_int_equal(get(&out), CKPT_ERR_INVALID_ARGUMENT);
    assert_int_equal(out.struct_size, bad[i]);
  }
  const uint32_t sizes[] = {8, size - 8, size, size + 64};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const uint32_t written = sizes[i] < size ? sizes[i] : size;
    memset(&out, 0xAA, sizeof out);
    out.struct_size = sizes[i];
    assert_int_equal(get(&out), CKPT_OK);
    assert_int_equal(out.struct_size, written);
    for (size_t b = written; b < sizeof out; ++b) assert_int_equal(out.bytes[b], 0xAA);
  }
}

static void outputs_are_cut_to_what_the_caller_has(void) {
  open_context();
  const ckpt_blob blob = {.struct_size = sizeof blob, .name = "b", .data = data, .bytes = 4};
  assert_int_equal(api.state_add_blob(state, &blob, NULL, NULL), CKPT_OK);
  save_step(ctx, state, 1);
  source = open_reader(scratch());
  ckpt_state* none = NULL;
  assert_int_equal(api.state_new(NULL, &none, &failure), CKPT_ERR_INVALID_ARGUMENT);
  check_output(get_checkpoint, sizeof(ckpt_checkpoint_info));
  check_output(get_tensor, sizeof(ckpt_tensor_info));
  check_output(get_file, sizeof(ckpt_file_info));
  check_output(get_blob, sizeof(ckpt_blob_info));
  check_output(get_cause, sizeof(ckpt_error_cause));
  api.error_free(failure);
  api.reader_free(source);
  close_context();
}

static void result_is_cut_to_what_the_caller_has(void) {
  open_context();
  save_step(ctx, state, 1);
  check_output(get_result, sizeof(ckpt_result));
  close_context();
}

static const test_case kCases[] = {
    CASE(init_options_sizes),
    CASE(comm_sizes),
    CASE(tensor_sizes),
    CASE(blob_sizes),
    CASE(save_options_sizes),
    CASE(load_options_sizes),
    CASE(outputs_are_cut_to_what_the_caller_has),
    CASE(result_is_cut_to_what_the_caller_has),
};
AREA(structs, kCases);
