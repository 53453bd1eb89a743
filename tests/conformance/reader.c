// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Inspection: what the reader lists, and how damage shows.
#include <stdlib.h>
#include <sys/stat.h>

#include "suite.h"

static void refused(const char* uri, uint32_t which, int64_t step, ckpt_status code,
                    const char* words) {
  ckpt_reader* reader = (ckpt_reader*)&step;
  ckpt_error* error = NULL;
  const ckpt_status status = api.open(uri, which, step, &reader, &error);
  assert_null(reader);
  expect_failed(status, error, code, words);
}

static void open_refuses_what_is_not_there(void) {
  char nowhere[256];
  snprintf(nowhere, sizeof nowhere, "%s/nowhere", scratch());
  refused(NULL, 0, 0, CKPT_ERR_INVALID_ARGUMENT, "uri");
  refused("", 0, 0, CKPT_ERR_INVALID_ARGUMENT, "uri");
  refused("\xff", 0, 0, CKPT_ERR_INVALID_ARGUMENT, "UTF-8");
  refused(scratch(), 9, 0, CKPT_ERR_INVALID_ARGUMENT, "which");
  refused(scratch(), CKPT_LOAD_STEP, -1, CKPT_ERR_INVALID_ARGUMENT, "step is -1");
  refused(scratch(), CKPT_LOAD_LATEST, 5, CKPT_ERR_INVALID_ARGUMENT, "CKPT_LOAD_STEP");
  refused(scratch(), CKPT_LOAD_LATEST, 0, CKPT_ERR_NO_CHECKPOINT, NULL);
  refused(nowhere, CKPT_LOAD_LATEST, 0, CKPT_ERR_NO_CHECKPOINT, NULL);
  ckpt_ctx* ctx = new_ctx();
  save_sample(ctx, 1);
  refused(scratch(), CKPT_LOAD_STEP, 2, CKPT_ERR_NOT_FOUND, "2");
  ckpt_error* error = NULL;
  const ckpt_status status = api.open(scratch(), 0, 0, NULL, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "out");
  api.ctx_free(ctx);
}

static ckpt_reader* save_three_and_open(void) {
  static float w[6] = {0, 1, 2, 3, 4, 5};
  static const int64_t shape[] = {2, 3};
  ckpt_init_options options = default_init();
  options.layout_note = "tp=1";
  ckpt_ctx* ctx = init_with(&options);
  ckpt_state* state = new_state(ctx);
  ckpt_tensor t = f32_tensor("w/ \"\xe2\x82\xac\"", shape, w);
  const ckpt_tensor* const list[] = {&t};
  t.ndim = 2;
  t.group = "optimizer";
  assert_int_equal(api.state_add_tensors(state, list, 1, NULL, NULL), CKPT_OK);
  static const struct {
    uint32_t scope;
    const char *name, *content;
  } blobs[] = {{CKPT_BLOB_PER_RANK, "rng", "seed"},
               {CKPT_BLOB_SHARED, "pos", "12"},
               {CKPT_BLOB_FILE, "config.json", "{}"}};
  for (int i = 0; i < 3; ++i) {
    const ckpt_blob b = {.struct_size = sizeof b,
                         .scope = blobs[i].scope,
                         .name = blobs[i].name,
                         .data = (void*)blobs[i].content,
                         .bytes = strlen(blobs[i].content)};
    assert_int_equal(api.state_add_blob(state, &b, NULL, NULL), CKPT_OK);
  }
  save_step(ctx, state, 10);
  save_step(ctx, state, 20);
  ckpt_save_options save = save_options(15);  // newer, whatever its number
  save.tag = "rolled back";
  assert_int_equal(api.save_collective(ctx, state, &save, NULL, NULL, NULL), CKPT_OK);
  api.state_free(state);
  api.ctx_free(ctx);
  return open_reader(scratch());
}

static void steps_are_listed_oldest_first(void) {
  ckpt_reader* reader = save_three_and_open();
  static const int64_t steps[] = {10, 20, 15};
  ckpt_checkpoint_info info = {.struct_size = sizeof info};
  for (uint64_t i = 0; i < 3; ++i) {
    assert_int_equal(api.reader_checkpoint(reader, i, &info), CKPT_OK);
    assert_int_equal(info.step, steps[i]);
    assert_string_equal(info.layout_note, "tp=1");
    assert_int_equal(info.world_size, 1);
    assert_true(info.bytes > 24 && info.created_unix_ns > 0);
    struct stat st;
    assert_int_equal(stat(info.path, &st), 0);
  }
  assert_string_equal(info.tag, "rolled back");
  assert_int_equal(info.tensors, 1);
  assert_int_equal(api.reader_checkpoint(reader, 3, &info), CKPT_ERR_NOT_FOUND);
  ckpt_reader* folder = open_reader(info.path);
  assert_int_equal(api.reader_checkpoint(folder, 0, &info), CKPT_OK);
  assert_int_equal(info.step, 15);
  assert_int_equal(api.reader_checkpoint(folder, 1, &info), CKPT_ERR_NOT_FOUND);
  api.reader_free(folder);
  api.reader_free(reader);
}

static void tensors_and_files_are_listed(void) {
  ckpt_reader* reader = save_three_and_open();
  ckpt_tensor_info t = {.struct_size = sizeof t};
  assert_int_equal(api.reader_tensor(reader, 0, &t), CKPT_OK);
  assert_string_equal(t.name, "w/ \"\xe2\x82\xac\"");
  assert_string_equal(t.group, "optimizer");
  assert_string_equal(t.file, "optimizer.safetensors");
  assert_string_equal(t.alias_of, "");
  assert_int_equal(t.dtype, CKPT_DTYPE(2, 32));
  assert_int_equal(t.ndim, 2);
  assert_int_equal(t.global_shape[0], 2);
  assert_int_equal(t.global_shape[1], 3);
  assert_int_equal(t.bytes, 24);
  assert_int_equal(t.file_offset % 4096, 0);
  assert_int_equal(api.reader_tensor(reader, 1, &t), CKPT_ERR_NOT_FOUND);
  ckpt_file_info f = {.struct_size = sizeof f};
  int found = 0;
  uint64_t i = 0;
  for (; api.reader_file(reader, i, &f) == CKPT_OK; ++i) {
    found += strcmp(f.name, "optimizer.safetensors") == 0;
    found += strcmp(f.name, "optimizer.safetensors.index.json") == 0;
    found += strcmp(f.name, "blobs.safetensors") == 0 || strcmp(f.name, "config.json") == 0;
    int32_t rank = -1;
    uint64_t bytes = 0, k = 0;
    while (api.reader_file_writer(reader, i, k, &rank, &bytes) == CKPT_OK) ++k;
    assert_int_equal(k, f.writers);
  }
  assert_int_equal(found, 4);
  assert_int_equal(api.reader_file(reader, UINT64_MAX, &f), CKPT_ERR_NOT_FOUND);
  assert_int_equal(api.reader_file_writer(reader, 0, 0, NULL, NULL), CKPT_ERR_INVALID_ARGUMENT);
  api.reader_free(reader);
}

static void blobs_are_listed_and_read(void) {
  ckpt_reader* reader = save_three_and_open();
  ckpt_blob_info info = {.struct_size = sizeof info};
  uint64_t count = 0;
  for (; api.reader_blob(reader, count, &info) == CKPT_OK; ++count) {
    char content[16];
    uint64_t actual = 0;
    ckpt_blob dst = {.struct_size = sizeof dst,
                     .scope = info.scope,
                     .writer_rank = info.rank,
                     .name = info.name,
                     .data = content,
                     .bytes = sizeof content,
                     .actual = &actual};
    assert_int_equal(api.reader_read_blob(reader, &dst, NULL), CKPT_OK);
    assert_int_equal(actual, info.bytes);
    dst.bytes = 1;
    assert_int_equal(api.reader_read_blob(reader, &dst, NULL), CKPT_ERR_LIMIT);
  }
  assert_int_equal(count, 3);
  uint64_t actual = 0;
  ckpt_blob absent = {
      .struct_size = sizeof absent, .scope = CKPT_BLOB_SHARED, .name = "absent", .actual = &actual};
  ckpt_error* error = NULL;
  ckpt_status status = api.reader_read_blob(reader, &absent, &error);
  expect_failed(status, error, CKPT_ERR_NOT_FOUND, "absent");
  absent.flags = CKPT_BLOB_OPTIONAL;
  assert_int_equal(api.reader_read_blob(reader, &absent, NULL), CKPT_OK);
  assert_true(actual == UINT64_MAX);
  absent.scope = CKPT_BLOB_PER_RANK;
  absent.writer_rank = -1;
  status = api.reader_read_blob(reader, &absent, &error);
  expect_failed(status, error, CKPT_ERR_INVALID_ARGUMENT, "writer_rank");
  api.reader_free(reader);
}

static void damage_names_file_and_tensor(void) {
  ckpt_reader* reader = save_three_and_open();
  ckpt_tensor_info t = {.struct_size = sizeof t};
  ckpt_checkpoint_info step = {.struct_size = sizeof step};
  char path[1024];
  assert_int_equal(api.reader_verify(reader, NULL, NULL, NULL), CKPT_OK);
  assert_int_equal(api.reader_tensor(reader, 0, &t), CKPT_OK);
  assert_int_equal(api.reader_checkpoint(reader, 2, &step), CKPT_OK);
  snprintf(path, sizeof path, "%s/%s", step.path, t.file);
  FILE* file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, (long)t.file_offset, SEEK_SET);
  fputc(0x55, file);
  fclose(file);
  ckpt_error* error = NULL;
  const ckpt_status status = api.reader_verify(reader, NULL, NULL, &error);
  ckpt_error_cause cause = {.struct_size = sizeof cause};
  assert_int_equal(api.error_get_cause(error, &cause), CKPT_OK);
  assert_non_null(cause.path);
  assert_non_null(strstr(cause.path, t.file));
  expect_blamed(status, error, CKPT_ERR_CORRUPT, t.file, t.name);
  api.reader_free(reader);
}

static const test_case kCases[] = {
    CASE(open_refuses_what_is_not_there), CASE(steps_are_listed_oldest_first),
    CASE(tensors_and_files_are_listed),   CASE(blobs_are_listed_and_read),
    CASE(damage_names_file_and_tensor),
};
AREA(reader, kCases);
