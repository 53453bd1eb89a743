// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CASES K09, its one-rank part: what one process saves it loads, bit for bit.
#include <stdlib.h>
#include <unistd.h>

#include "suite.h"

typedef struct dtype {
  uint32_t code, bits;
} dtype;
// All that safetensors can name, dlpack.h v1.1 codes.
static const dtype kDtypes[] = {{6, 8},  {1, 8},  {0, 8},  {12, 8}, {10, 8}, {14, 8},
                                {0, 16}, {1, 16}, {2, 16}, {4, 16}, {0, 32}, {1, 32},
                                {2, 32}, {5, 64}, {2, 64}, {0, 64}, {1, 64}};
enum { kTypes = sizeof kDtypes / sizeof *kDtypes, kCount = 37 };

// Every bit pattern has to survive, NaNs too.
static void fill(unsigned char* p, size_t n, unsigned seed) {
  for (size_t i = 0; i < n; ++i) {
    seed = seed * 1103515245u + 12345u;
    p[i] = (unsigned char)(seed >> 16);
  }
}

static void load_latest(ckpt_ctx* ctx, ckpt_state* state, ckpt_result* result) {
  const ckpt_load_options load = load_options(-1);
  ckpt_error* error = NULL;
  const ckpt_status status = api.load(ctx, state, &load, result, NULL, &error);
  expect_ok(status, error);
}

static void k09_every_dtype_comes_back_bit_for_bit(void) {
  static unsigned char saved[kTypes][kCount * 8], loaded[kTypes][kCount * 8];
  static const int64_t n = kCount;
  char name[kTypes][32];
  ckpt_ctx* ctx = new_ctx();
  ckpt_state* out = new_state(ctx);
  ckpt_state* in = new_state(ctx);
  uint64_t bytes = 0;
  for (int i = 0; i < kTypes; ++i) {
    snprintf(name[i], sizeof name[i], "t%d", i);
    fill(saved[i], sizeof saved[i], (unsigned)i);
    ckpt_tensor t = f32_tensor(name[i], &n, saved[i]);
    const ckpt_tensor* const list[] = {&t};
    t.dtype = CKPT_DTYPE(kDtypes[i].code, kDtypes[i].bits);
    assert_int_equal(api.state_add_tensors(out, list, 1, NULL, NULL), CKPT_OK);
    t.data = loaded[i];
    assert_int_equal(api.state_add_tensors(in, list, 1, NULL, NULL), CKPT_OK);
    bytes += kCount * kDtypes[i].bits / 8;
  }
  save_step(ctx, out, 1);
  ckpt_result result = {.struct_size = sizeof result};
  load_latest(ctx, in, &result);
  assert_int_equal(result.step, 1);
  assert_int_equal(result.tensors, kTypes);
  assert_int_equal(result.bytes, bytes);
  for (int i = 0; i < kTypes; ++i) {
    assert_memory_equal(saved[i], loaded[i], kCount * kDtypes[i].bits / 8);
  }
  api.state_free(in);
  api.state_free(out);
  api.ctx_free(ctx);
}

static void k09_shards_of_every_kind_come_back(void) {
  static float rows[2][8], back[16], scalar = 3.5f, scalar_back;
  static const int64_t shape[] = {2, 8}, extent[] = {1, 8}, offsets[2][2] = {{0, 0}, {1, 0}},
                       zero = 0;
  for (int i = 0; i < 16; ++i) rows[i / 8][i % 8] = (float)i;
  ckpt_ctx* ctx = new_ctx();
  ckpt_state* out = new_state(ctx);
  ckpt_state* in = new_state(ctx);
  for (int i = 0; i < 2; ++i) {
    ckpt_tensor t = f32_tensor("boxes", shape, rows[i]);
    const ckpt_tensor* const list[] = {&t};
    t.ndim = 2;
    t.shard_kind = CKPT_SHARD_BOX;
    t.offset = offsets[i];
    t.extent = extent;
    assert_int_equal(api.state_add_tensors(out, list, 1, NULL, NULL), CKPT_OK);
    t.shard_kind = CKPT_SHARD_FLAT;
    t.offset = t.extent = NULL;
    t.flat_offset = i == 0 ? 0 : 5;
    t.flat_count = i == 0 ? 5 : 11;
    t.data = back + t.flat_offset;
    assert_int_equal(api.state_add_tensors(in, list, 1, NULL, NULL), CKPT_OK);
  }
  ckpt_tensor s = f32_tensor("scalar", NULL, &scalar), e = f32_tensor("empty", &zero, NULL);
  const ckpt_tensor* const list[] = {&s, &e};
  uint64_t first = 0;
  s.ndim = 0;
  assert_int_equal(api.state_add_tensors(out, list, 2, &first, NULL), CKPT_OK);
  assert_int_equal(first, 2);
  s.data = &scalar_back;
  assert_int_equal(api.state_add_tensors(in, list, 2, NULL, NULL), CKPT_OK);
  save_step(ctx, out, 0);
  load_latest(ctx, in, NULL);
  assert_memory_equal(rows, back, sizeof back);
  assert_true(scalar_back == scalar);
  api.state_free(in);
  api.state_free(out);
  api.ctx_free(ctx);
}

static void k09_blobs_of_every_scope_come_back(void) {
  static const char* const contents[] = {"rng of this rank", "position", "{\"a\": 1}"};
  char back[3][32];
  uint64_t actual[4];
  ckpt_ctx* ctx = new_ctx();
  ckpt_state* out = new_state(ctx);
  ckpt_state* in = new_state(ctx);
  for (uint32_t scope = 0; scope < 3; ++scope) {
    ckpt_blob b = {.struct_size = sizeof b, .scope = scope, .writer_rank = -1};
    b.name = scope == CKPT_BLOB_FILE ? "config.json" : "x";
    b.data = (void*)contents[scope];
    b.bytes = strlen(contents[scope]);
    assert_int_equal(api.state_add_blob(out, &b, NULL, NULL), CKPT_OK);
    b.data = back[scope];
    b.bytes = sizeof back[scope];
    b.actual = &actual[scope];
    assert_int_equal(api.state_add_blob(in, &b, NULL, NULL), CKPT_OK);
  }
  const ckpt_blob absent = {.struct_size = sizeof absent,
                            .flags = CKPT_BLOB_OPTIONAL,
                            .scope = CKPT_BLOB_SHARED,
                            .name = "absent",
                            .actual = &actual[3]};
  assert_int_equal(api.state_add_blob(in, &absent, NULL, NULL), CKPT_OK);
  save_step(ctx, out, 1);
  load_latest(ctx, in, NULL);
  for (int i = 0; i < 3; ++i) {
    assert_int_equal(actual[i], strlen(contents[i]));
    assert_memory_equal(back[i], contents[i], actual[i]);
  }
  assert_true(actual[3] == UINT64_MAX);
  api.state_free(in);
  api.state_free(out);
  api.ctx_free(ctx);
}

static void names_that_were_missed_are_listed(void) {
  static float w[4] = {9, 9, 9, 9};
  static const int64_t n = 4;
  ckpt_ctx* ctx = new_ctx();
  save_sample(ctx, 1);
  ckpt_state* state = new_state(ctx);
  add_f32(state, "other", &n, w);
  ckpt_load_options load = load_options(1);
  ckpt_error* error = NULL;
  ckpt_status status = api.load(ctx, state, &load, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_NOT_FOUND, "other");
  assert_true(w[0] == 9);
  add_f32(state, "w", &n, w);
  load.flags = CKPT_LOAD_ALLOW_MISSING;
  ckpt_result result = {.struct_size = sizeof result};
  status = api.load(ctx, state, &load, &result, NULL, &error);
  expect_ok(status, error);
  assert_int_equal(result.missing, 1);
  assert_non_null(api.state_name(state, CKPT_NAMES_MISSING, 0));
  assert_non_null(strstr(api.state_name(state, CKPT_NAMES_MISSING, 0), "other"));
  assert_null(api.state_name(state, CKPT_NAMES_MISSING, 1));
  assert_null(api.state_name(state, 99, 0));
  api.state_free(state);
  api.ctx_free(ctx);
}

static void wrong_dtype_or_shape_changes_nothing(void) {
  static float w[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  static const int64_t n = 4, m = 8;
  ckpt_ctx* ctx = new_ctx();
  save_sample(ctx, 1);
  const ckpt_load_options load = load_options(1);
  ckpt_error* error = NULL;
  ckpt_state* state = new_state(ctx);
  add_f32(state, "w", &m, w);
  ckpt_status status = api.load(ctx, state, &load, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_SHAPE, "w");
  api.state_free(state);
  ckpt_tensor t = f32_tensor("w", &n, w);
  const ckpt_tensor* const list[] = {&t};
  t.dtype = CKPT_DTYPE(0, 32);
  state = new_state(ctx);
  assert_int_equal(api.state_add_tensors(state, list, 1, NULL, NULL), CKPT_OK);
  status = api.load(ctx, state, &load, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_DTYPE, "w");
  for (int i = 0; i < 8; ++i) assert_true(w[i] == 9);
  api.state_free(state);
  api.ctx_free(ctx);
}

static void gaps_and_overlaps_are_refused(void) {
  static float w[4];
  static const int64_t n = 4;
  ckpt_ctx* ctx = new_ctx();
  const ckpt_save_options save = save_options(1);
  ckpt_tensor t = f32_tensor("w", &n, w);
  const ckpt_tensor* const list[] = {&t};
  t.shard_kind = CKPT_SHARD_FLAT;
  t.flat_count = 2;
  ckpt_state* state = new_state(ctx);
  ckpt_error* error = NULL;
  assert_int_equal(api.state_add_tensors(state, list, 1, NULL, NULL), CKPT_OK);
  ckpt_status status = api.save_collective(ctx, state, &save, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_COVERAGE, "w");
  t.flat_offset = 1;
  t.flat_count = 3;
  assert_int_equal(api.state_add_tensors(state, list, 1, NULL, NULL), CKPT_OK);
  status = api.save_collective(ctx, state, &save, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_COVERAGE, "w");
  api.state_free(state);
  api.ctx_free(ctx);
}

static void root_that_cannot_be_written(void) {
  ckpt_init_options options = default_init();
  options.root = "/proc/no-such-place/root";
  ckpt_ctx* ctx = init_with(&options);
  ckpt_state* state = new_state(ctx);
  const ckpt_save_options save = save_options(1);
  ckpt_error* error = NULL;
  const ckpt_status status = api.save_collective(ctx, state, &save, NULL, NULL, &error);
  assert_true(status == CKPT_ERR_IO || status == CKPT_ERR_NOT_FOUND);
  assert_non_null(strstr(api.error_message(error), "/proc/no-such-place"));
  api.error_free(error);
  api.state_free(state);
  api.ctx_free(ctx);
}

static const test_case kCases[] = {
    CASE(k09_every_dtype_comes_back_bit_for_bit),
    CASE(k09_shards_of_every_kind_come_back),
    CASE(k09_blobs_of_every_scope_come_back),
    CASE(names_that_were_missed_are_listed),
    CASE(wrong_dtype_or_shape_changes_nothing),
    CASE(gaps_and_overlaps_are_refused),
    CASE(root_that_cannot_be_written),
};
AREA(round_trip, kCases);
