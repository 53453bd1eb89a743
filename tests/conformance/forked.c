// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// R8: what a forked child may do with the parent's handles.
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

static ckpt_ctx* ctx;
static ckpt_state* state;
static ckpt_reader* source;

// The number of the first check that fails, 0 = all hold.  No cmocka here: this is not its process.
#define CHECK(condition) \
  if (!(condition)) return __LINE__

static int handles_are_refused(void) {
  const ckpt_save_options save = save_options(2);
  const ckpt_load_options load = load_options(1);
  ckpt_file_info file = {.struct_size = sizeof file};
  ckpt_state* none = NULL;
  ckpt_error* error = NULL;
  int64_t step = 0;
  CHECK(api.save_collective(ctx, state, &save, NULL, NULL, &error) == CKPT_ERR_FORKED);
  CHECK(api.error_status(error) == CKPT_ERR_FORKED && *api.error_message(error) != '\0');
  api.error_free(error);
  CHECK(api.load(ctx, state, &load, NULL, NULL, NULL) == CKPT_ERR_FORKED);
  CHECK(api.finalize(ctx, 0, NULL) == CKPT_ERR_FORKED);
  CHECK(api.latest(ctx, &step, NULL) == CKPT_ERR_FORKED);
  CHECK(api.poll(ctx, NULL) == CKPT_ERR_FORKED);
  CHECK(api.state_new(ctx, &none, NULL) == CKPT_ERR_FORKED);
  CHECK(api.state_add_tensors(state, NULL, 0, NULL, NULL) == CKPT_ERR_FORKED);
  CHECK(api.state_update(state, 0, NULL, NULL, NULL) == CKPT_ERR_FORKED);
  CHECK(api.advise(ctx, 1, NULL, NULL) == CKPT_ERR_FORKED);
  CHECK(api.reader_file(source, 0, &file) == CKPT_ERR_FORKED);
  CHECK(api.reader_verify(source, NULL, NULL, NULL) == CKPT_ERR_FORKED);
  CHECK(api.state_name(state, CKPT_NAMES_MISSING, 0) == NULL);
  api.set_phase(ctx, "child", 1);
  api.notify_signal(ctx, 15);
  api.state_free(state);
  api.reader_free(source);
  api.ctx_free(ctx);
  return 0;
}

static int own_context_works(void) {
  ckpt_init_options options = default_init();
  char root[256];
  snprintf(root, sizeof root, "%s/child", scratch());
  options.root = root;
  ckpt_ctx* own = NULL;
  ckpt_state* own_state = NULL;
  const ckpt_save_options save = save_options(1);
  CHECK(api.init(CKPT_HEADER_ABI, &options, &own, NULL) == CKPT_OK);
  CHECK(api.state_new(own, &own_state, NULL) == CKPT_OK);
  CHECK(api.save_collective(own, own_state, &save, NULL, NULL, NULL) == CKPT_OK);
  CHECK(api.save_collective(own, state, &save, NULL, NULL, NULL) == CKPT_ERR_INVALID_ARGUMENT);
  api.state_free(own_state);
  api.ctx_free(own);
  return 0;
}

// Line of the failed check in the child, 0 if all hold.
static int in_child(int (*checks)(void)) {
  int result[2], line = -1;
  assert_int_equal(pipe(result), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    line = checks();
    _exit(write(result[1], &line, sizeof line) == sizeof line ? 0 : 1);
  }
  close(result[1]);
  assert_int_equal(read(result[0], &line, sizeof line), sizeof line);
  close(result[0]);
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  return line;
}

static void with_handles(int (*checks)(void)) {
  ctx = new_ctx();
  state = new_state(ctx);
  save_sample(ctx, 1);
  source = open_reader(scratch());
  assert_int_equal(in_child(checks), 0);
  save_step(ctx, state, 3);  // the parent goes on
  assert_int_equal(api.reader_verify(source, NULL, NULL, NULL), CKPT_OK);
  api.reader_free(source);
  api.state_free(state);
  assert_int_equal(api.finalize(ctx, 0, NULL), CKPT_OK);
  api.ctx_free(ctx);
}

static void child_gets_forked_from_every_handle(void) { with_handles(handles_are_refused); }
static void child_may_make_a_context_of_its_own(void) { with_handles(own_context_works); }

static const test_case kCases[] = {
    CASE(child_gets_forked_from_every_handle),
    CASE(child_may_make_a_context_of_its_own),
};
AREA(forked, kCases);
