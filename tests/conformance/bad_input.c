// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Bad input to states, saves and loads: each with its code and a sentence that names the thing.
#include <stdlib.h>
#include <unistd.h>

#include "suite.h"

static float data[64];
static const int64_t n = 4;
static const int64_t shape[] = {4, 8}, offset[] = {0, 0}, extent[] = {2, 8};
static ckpt_ctx* ctx;

static ckpt_tensor box_tensor(const char* name) {
  ckpt_tensor t = f32_tensor(name, shape, data);
  t.ndim = 2;
  t.shard_kind = CKPT_SHARD_BOX;
  t.offset = offset;
  t.extent = extent;
  return t;
}

// The add fails, and so does the next save of that state, with the same error; a fresh state saves.
static void refused(const ckpt_tensor* tensor, ckpt_status code, const char* words) {
  const ckpt_tensor* const list[] = {tensor};
  const ckpt_save_options save = save_options(1);
  ckpt_state* state = new_state(ctx);
  ckpt_error* error = NULL;
  ckpt_status status = api.state_add_tensors(state, list, 1, NULL, &error);
  // A name that is not UTF-8 is returned escaped.
  if (tensor->name != NULL && *tensor->name != '\0' && *tensor->name != '\xff') {
    expect_blamed(status, error, code, words, tensor->name);
  } else {
    expect_failed(status, error, code, words);
  }
  status = api.save_collective(ctx, state, &save, NULL, NULL, &error);
  expect_failed(status, error, code, words);
  api.state_free(state);
}

static void tensor_names(void) {
  ctx = new_ctx();
  ckpt_tensor t = f32_tensor(NULL, &n, data);
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "name");
  t.name = "";
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "empty");
  t.name = "__metadata__";
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "__metadata__");
  t.name = "\xff\xfe";
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "UTF-8");
  t.name = "w";
  static const char* const groups[] = {"", "blobs", "a/b", "\xff"};
  for (size_t i = 0; i < sizeof groups / sizeof *groups; ++i) {
    t.group = groups[i];
    refused(&t, CKPT_ERR_INVALID_ARGUMENT, "group");
  }
  api.ctx_free(ctx);
}

static void tensor_codes(void) {
  ctx = new_ctx();
  ckpt_tensor t = f32_tensor("w", &n, data);
  t.flags = 1u << 30;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "\"w\": unknown flag 0x40000000");
  t = f32_tensor("w", &n, data);
  t.dtype = CKPT_DTYPE(99, 32);
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "dtype");
  t.dtype = 0;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "dtype");
  t.dtype = CKPT_DTYPE(15, 6);
  refused(&t, CKPT_ERR_UNSUPPORTED, "F6_E2M3");
  t.dtype = CKPT_DTYPE(17, 4);  // 3 of them are a byte and a half
  const int64_t odd = 3;
  t.global_shape = &odd;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "F4 packs 2");
  t = f32_tensor("w", &n, data);
  t.store_dtype = CKPT_DTYPE(0, 32);
  refused(&t, CKPT_ERR_UNSUPPORTED, "F32 cannot be stored as I32");
  t.store_dtype = CKPT_DTYPE(99, 32);
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "code 99");
  t = f32_tensor("w", &n, data);
  t.shard_kind = 3;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "shard_kind 3");
  t = f32_tensor("w", &n, data);
  t.device_type = 2;
  refused(&t, CKPT_ERR_UNSUPPORTED, "device");
  t.device_type = -1;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "device_type");
  api.ctx_free(ctx);
}

static void tensor_shapes(void) {
  ctx = new_ctx();
  ckpt_tensor t = f32_tensor("w", NULL, data);
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "\"w\": global_shape is NULL");
  t.ndim = -1;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "ndim is -1");
  t.ndim = 65;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "ndim is 65");
  const int64_t negative = -4, huge = INT64_MAX;
  t = f32_tensor("w", &negative, data);
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "-4");
  t = f32_tensor("w", &huge, data);
  refused(&t, CKPT_ERR_LIMIT, NULL);
  const int64_t overflow[] = {INT64_MAX, INT64_MAX};
  t = f32_tensor("w", overflow, data);
  t.ndim = 2;
  refused(&t, CKPT_ERR_LIMIT, NULL);
  t = f32_tensor("w", &n, NULL);
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "NULL");
  api.ctx_free(ctx);
}

static void boxes(void) {
  ctx = new_ctx();
  ckpt_tensor t = box_tensor("w");
  t.offset = NULL;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "offset is NULL");
  t = box_tensor("w");
  t.extent = NULL;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "extent is NULL");
  const int64_t outside[] = {3, 0}, negative[] = {-1, 0}, huge[] = {INT64_MAX, 0};
  t = box_tensor("w");
  t.offset = outside;
  refused(&t, CKPT_ERR_SHAPE, NULL);
  t.offset = huge;
  refused(&t, CKPT_ERR_SHAPE, NULL);
  t.offset = negative;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, NULL);
  t = box_tensor("w");
  t.extent = negative;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, NULL);
  t = box_tensor("w");
  t.shard_kind = CKPT_SHARD_WHOLE;  // taking a part for the whole would read past its memory
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "CKPT_SHARD_BOX");
  const int64_t far[] = {INT64_MAX, 1}, compact[] = {8, 1};
  t = box_tensor("w");
  t.strides = far;
  refused(&t, CKPT_ERR_LIMIT, "stride");
  t.strides = compact;
  const ckpt_tensor* const list[] = {&t};
  ckpt_state* state = new_state(ctx);
  ckpt_error* error = NULL;
  const ckpt_status status = api.state_add_tensors(state, list, 1, NULL, &error);
  expect_ok(status, error);
  api.state_free(state);
  api.ctx_free(ctx);
}

static void flat_ranges(void) {
  ctx = new_ctx();
  ckpt_tensor t = f32_tensor("w", &n, data);
  t.flat_count = 2;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, "CKPT_SHARD_FLAT");
  t.shard_kind = CKPT_SHARD_FLAT;
  t.flat_offset = -1;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, NULL);
  t.flat_offset = 0;
  t.flat_count = -1;
  refused(&t, CKPT_ERR_INVALID_ARGUMENT, NULL);
  t.flat_offset = 3;
  t.flat_count = 2;
  refused(&t, CKPT_ERR_SHAPE, NULL);
  t.flat_offset = INT64_MAX;
  refused(&t, CKPT_ERR_SHAPE, NULL);
  api.ctx_free(ctx);
}

static void refused_blob(const ckpt_blob* blob, const char* words) {
  ckpt_state* state = new_state(ctx);
  ckpt_error* error = NULL;
  ckpt_status status = api.state_add_blob(state, blob, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, words);
  const ckpt_save_options save = save_options(1);
  status = api.save_collective(ctx, state, &save, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, words);
  api.state_free(state);
}

static void blobs(void) {
  ctx = new_ctx();
  const ckpt_blob good = {.struct_size = sizeof good, .name = "b", .data = data, .bytes = 4};
  ckpt_blob b = good;
  b.name = NULL;
  refused_blob(&b, "name");
  b.name = "";
  refused_blob(&b, "empty");
  b.name = "\xff";
  refused_blob(&b, "UTF-8");
  b = good;
  b.flags = 1u << 9;
  refused_blob(&b, "\"b\": unknown flag 0x200");
  b = good;
  b.scope = 3;
  refused_blob(&b, "unknown scope 3");
  b = good;
  b.data = NULL;
  refused_blob(&b, "data is NULL");
  b = good;
  b.writer_rank = -2;
  refused_blob(&b, "writer_rank is -2");
  b = good;
  b.scope = CKPT_BLOB_FILE;
  static const char* const files[] = {"a/b", "..", ".hidden", "ckpt.json", "x.safetensors"};
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    b.name = files[i];
    refused_blob(&b, files[i]);
  }
  api.ctx_free(ctx);
}

static void updates(void) {
  ctx = new_ctx();
  ckpt_state* state = new_state(ctx);
  ckpt_error* error = NULL;
  add_f32(state, "w", &n, data);
  assert_int_equal(api.state_update(state, 0, data + 4, NULL, NULL), CKPT_OK);
  ckpt_status status = api.state_update(state, 7, data, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "7");
  api.state_free(state);
  state = new_state(ctx);
  add_f32(state, "w", &n, data);
  status = api.state_update(state, 0, NULL, NULL, &error);
  expect_blamed(status, error, CKPT_ERR_INVALID_ARGUMENT, "NULL", "w");
  status = api.state_update_blob(state, 3, data, 4, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "3");
  status = api.state_add_tensors(state, NULL, 1, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "NULL");
  api.state_free(state);
  api.ctx_free(ctx);
}

static void refused_save(ckpt_save_options options, ckpt_status code, const char* words) {
  ckpt_state* state = new_state(ctx);
  ckpt_error* error = NULL;
  const ckpt_status status = api.save_collective(ctx, state, &options, NULL, NULL, &error);
  expect_failed(status, error, code, words);
  api.state_free(state);
}

static void save_arguments(void) {
  ctx = new_ctx();
  refused_save(save_options(-1), CKPT_ERR_INVALID_ARGUMENT, "step is -1");
  ckpt_save_options o = save_options(1);
  o.flags = 1u << 4;
  refused_save(o, CKPT_ERR_INVALID_ARGUMENT, "unknown flag 0x10");
  o.flags = CKPT_SAVE_LAZY;
  refused_save(o, CKPT_ERR_UNSUPPORTED, "CKPT_SAVE_LAZY");
  o = save_options(1);
  o.on_existing = 4;
  refused_save(o, CKPT_ERR_INVALID_ARGUMENT, "on_existing");
  o = save_options(1);
  o.on_busy = 2;
  refused_save(o, CKPT_ERR_INVALID_ARGUMENT, "on_busy");
  o = save_options(1);
  o.tag = "\xff";
  refused_save(o, CKPT_ERR_INVALID_ARGUMENT, "tag");
  o = save_options(1);
  o.metadata = "k=\xff";
  refused_save(o, CKPT_ERR_INVALID_ARGUMENT, "metadata");
  o = save_options(1);
  o.contract_timeout_ms = UINT64_MAX;
  refused_save(o, CKPT_ERR_INVALID_ARGUMENT, "contract_timeout_ms");
  save_sample(ctx, 1);  // the context is as good as before
  api.ctx_free(ctx);
}

static void refused_load(ckpt_load_options options, ckpt_status code, const char* words) {
  ckpt_state* state = new_state(ctx);
  ckpt_error* error = NULL;
  const ckpt_status status = api.load(ctx, state, &options, NULL, NULL, &error);
  expect_failed(status, error, code, words);
  api.state_free(state);
}

static void marks(void) {
  ctx = new_ctx();
  save_sample(ctx, 1);
  ckpt_error* error = NULL;
  ckpt_status status = api.pin(ctx, -1, 1, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "step is -1");
  status = api.pin(ctx, 1, 2, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "pinned is 2");
  status = api.pin(ctx, 7, 1, &error);
  expect_failed(status, error, CKPT_ERR_NOT_FOUND, "7");
  status = api.mark_bad(ctx, 7, &error);
  expect_failed(status, error, CKPT_ERR_NOT_FOUND, "7");
  status = api.pin(NULL, 1, 1, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "context");
  api.ctx_free(ctx);
}

static void load_arguments(void) {
  ctx = new_ctx();
  ckpt_load_options o = load_options(1);
  refused_load(load_options(-1), CKPT_ERR_NO_CHECKPOINT, NULL);
  save_sample(ctx, 1);
  refused_load(load_options(2), CKPT_ERR_NOT_FOUND, "2");
  o.flags = 1u << 7;
  refused_load(o, CKPT_ERR_INVALID_ARGUMENT, "unknown flag 0x80");
  o.flags = CKPT_LOAD_FALLBACK;  // with a step of its own
  refused_load(o, CKPT_ERR_INVALID_ARGUMENT, "CKPT_LOAD_FALLBACK");
  o = load_options(1);
  o.which = 2;
  refused_load(o, CKPT_ERR_INVALID_ARGUMENT, "which");
  o.which = CKPT_LOAD_LATEST;  // with a step that would be ignored
  refused_load(o, CKPT_ERR_INVALID_ARGUMENT, "CKPT_LOAD_STEP");
  o = load_options(1);
  o.step = -5;
  refused_load(o, CKPT_ERR_INVALID_ARGUMENT, "step is -5");
  o = load_options(1);
  o.reserved0 = 1;
  refused_load(o, CKPT_ERR_INVALID_ARGUMENT, "reserved0");
  o = load_options(1);
  o.uri = "";
  refused_load(o, CKPT_ERR_INVALID_ARGUMENT, "uri");
  api.ctx_free(ctx);
}

static void states_that_cannot_be_used(void) {
  ctx = new_ctx();
  ckpt_init_options options = default_init();
  options.name = "other";
  ckpt_ctx* other = init_with(&options);
  ckpt_state* foreign = new_state(other);
  const ckpt_save_options save = save_options(1);
  ckpt_result result = {.struct_size = sizeof result};
  ckpt_request* request = NULL;
  ckpt_error* error = NULL;
  ckpt_status status = api.save_collective(ctx, NULL, &save, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "state");
  status = api.save_collective(ctx, foreign, &save, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "another context");
  status = api.save_collective(other, foreign, &save, &result, &request, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "result and req");
  status = api.state_new(ctx, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "out");
  api.state_free(foreign);
  api.ctx_free(other);
  api.ctx_free(ctx);
}

static const test_case kCases[] = {
    CASE(tensor_names),
    CASE(tensor_codes),
    CASE(tensor_shapes),
    CASE(boxes),
    CASE(flat_ranges),
    CASE(blobs),
    CASE(updates),
    CASE(save_arguments),
    CASE(load_arguments),
    CASE(marks),
    CASE(states_that_cannot_be_used),
};
AREA(bad_input, kCases);
