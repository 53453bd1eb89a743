// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// R6: on which thread callbacks run, what they may call, and that they cannot break the library.
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "suite.h"
#include "throwing.h"

typedef struct seen {
  int calls, strangers, allowed;  // strangers: on another thread
  pthread_t caller;
  ckpt_ctx* ctx;
  ckpt_state* state;
  int32_t answer;
} seen;

static void try_everything(seen* s) {
  const ckpt_save_options save = save_options(9);
  const ckpt_load_options load = load_options(1);
  ckpt_init_options init = default_init();
  ckpt_ctx* ctx = NULL;
  ckpt_state* state = NULL;
  ckpt_reader* reader = NULL;
  ckpt_error* error = NULL;
  int64_t step = 0;
  const ckpt_status statuses[] = {
      api.init(CKPT_HEADER_ABI, &init, &ctx, NULL),
      api.finalize(s->ctx, 0, NULL),
      api.state_new(s->ctx, &state, NULL),
      api.state_add_tensors(s->state, NULL, 0, NULL, NULL),
      api.state_update(s->state, 0, NULL, NULL, NULL),
      api.save_collective(s->ctx, s->state, &save, NULL, NULL, NULL),
      api.load(s->ctx, s->state, &load, NULL, NULL, NULL),
      api.latest(s->ctx, &step, NULL),
      api.open(scratch(), 0, 0, &reader, NULL),
      api.advise(s->ctx, 0, NULL, NULL),
      api.poll(s->ctx, &error),
  };
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; ++i) {
    if (statuses[i] == CKPT_ERR_STATE) continue;
    fprintf(stderr, "call %zu inside a callback returned %d\n", i, statuses[i]);
    ++s->allowed;
  }
  // Marked [cb]:
  if (api.error_status(error) != CKPT_ERR_STATE || *api.error_message(error) == '\0') ++s->allowed;
  if (api.abi_version() != CKPT_HEADER_ABI) ++s->allowed;
  api.set_phase(s->ctx, "in a callback", 1);
  api.error_free(error);
  if (api.size(s->ctx) != (s->ctx == NULL ? -1 : 1) ||
      strcmp(api.status_name(CKPT_ERR_STATE), "STATE") != 0)
    ++s->allowed;
}

static int32_t on_event(void* user, const ckpt_event* event) {
  seen* s = user;
  if (s->calls++ == 0) try_everything(s);
  if (!pthread_equal(pthread_self(), s->caller)) ++s->strangers;
  if (event->struct_size < sizeof *event || event->text == NULL) ++s->allowed;
  return s->answer;
}

static void on_log(void* user, int32_t level, const char* component, const char* message) {
  seen* s = user;
  if (s->calls++ == 0) try_everything(s);
  if (!pthread_equal(pthread_self(), s->caller)) ++s->strangers;
  if (level < 1 || level > 4 || *component == '\0' || *message == '\0') ++s->allowed;
}

// Large enough for progress events.
enum { kElements = 4 << 20 };
static float* data;
static const int64_t n = kElements;

static ckpt_ctx* open_with(ckpt_init_options options, seen* s) {
  data = calloc(kElements, sizeof *data);
  s->caller = pthread_self();
  s->ctx = init_with(&options);
  s->state = new_state(s->ctx);
  add_f32(s->state, "w", &n, data);
  return s->ctx;
}

static void close_all(seen* s) {
  api.state_free(s->state);
  api.ctx_free(s->ctx);
  free(data);
}

static void event_callback_runs_on_the_caller_and_calls_nothing(void) {
  seen s = {0};
  ckpt_init_options options = default_init();
  options.on_event = on_event;
  options.event_user = &s;
  open_with(options, &s);
  save_step(s.ctx, s.state, 1);
  assert_true(s.calls > 0);
  assert_int_equal(s.strangers, 0);
  assert_int_equal(s.allowed, 0);
  close_all(&s);
}

static void log_callback_runs_on_the_caller_and_calls_nothing(void) {
  seen s = {0};
  ckpt_init_options options = default_init();
  options.log = on_log;
  options.log_user = &s;
  options.log_level = 4;
  s.caller = pthread_self();
  open_with(options, &s);
  save_step(s.ctx, s.state, 1);
  assert_int_equal(api.poll(s.ctx, NULL), CKPT_OK);
  assert_int_equal(s.strangers, 0);
  assert_int_equal(s.allowed, 0);
  close_all(&s);
}

static void nonzero_cancels_and_the_next_save_works(void) {
  seen s = {.answer = 1, .calls = 1};
  ckpt_init_options options = default_init();
  options.on_event = on_event;
  options.event_user = &s;
  open_with(options, &s);
  const ckpt_save_options save = save_options(1);
  ckpt_error* error = NULL;
  const ckpt_status status = api.save_collective(s.ctx, s.state, &save, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_CANCELLED, NULL);
  s.answer = 0;
  save_step(s.ctx, s.state, 2);
  close_all(&s);
}

static void what_callbacks_throw_stays_outside(void) {
  seen s = {0};
  ckpt_init_options options = default_init();
  options.on_event = throw_on_event;
  options.log = throw_on_log;
  options.log_level = 4;
  options.describe = throw_on_describe;
  open_with(options, &s);
  const ckpt_save_options save = save_options(1);
  ckpt_error* error = NULL;
  const ckpt_status status = api.save_collective(s.ctx, s.state, &save, NULL, NULL, &error);
  expect_failed(status, error, CKPT_ERR_CANCELLED, NULL);
  assert_int_equal(api.poll(s.ctx, NULL), CKPT_OK);
  close_all(&s);
}

static void verify_tells_progress_and_can_be_cancelled(void) {
  seen s = {0};
  open_with(default_init(), &s);
  save_step(s.ctx, s.state, 1);
  ckpt_reader* reader = open_reader(scratch());
  assert_int_equal(api.reader_verify(reader, on_event, &s, NULL), CKPT_OK);
  assert_true(s.calls > 0);
  assert_int_equal(s.strangers, 0);
  assert_int_equal(s.allowed, 0);
  s.answer = 1;
  ckpt_error* error = NULL;
  ckpt_status status = api.reader_verify(reader, on_event, &s, &error);
  expect_failed(status, error, CKPT_ERR_CANCELLED, NULL);
  status = api.reader_verify(reader, throw_on_event, NULL, &error);
  expect_failed(status, error, CKPT_ERR_CANCELLED, NULL);
  api.reader_free(reader);
  close_all(&s);
}

static int threads(void) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  while (readdir(tasks) != NULL) ++count;
  closedir(tasks);
  return count;
}

typedef struct to_free {
  ckpt_ctx* ctx;
  ckpt_state* state;
  ckpt_reader* reader;
  int during;  // threads, right after the frees
} to_free;

static int32_t free_them(void* user, const ckpt_event* event) {
  to_free* f = user;
  (void)event;
  if (f->ctx == NULL) return 0;
  api.state_free(f->state);
  api.reader_free(f->reader);
  api.ctx_free(f->ctx);  // its monitor thread shows whether it is there
  f->ctx = NULL;
  f->during = threads();
  return 0;
}

// As a garbage collector does that runs while the host is in a callback.
static void a_free_inside_a_callback_takes_effect_when_the_call_has_returned(void) {
  const int before = threads();
  ckpt_init_options other = default_init();
  other.name = "other";
  to_free f = {0};
  f.ctx = init_with(&other);
  const int with_it = threads();
  assert_true(with_it > before);
  save_sample(f.ctx, 1);
  f.state = new_state(f.ctx);
  f.reader = open_reader(scratch());
  assert_int_equal(api.reader_verify(f.reader, free_them, &f, NULL), CKPT_OK);
  assert_null(f.ctx);
  assert_true(f.during >= with_it);
  // A thread that has done its work is still listed until the kernel has taken it away.
  for (int looks = 0; threads() > before && looks < 2000; ++looks) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  assert_int_equal(threads(), before);
}

static const test_case kCases[] = {
    CASE(a_free_inside_a_callback_takes_effect_when_the_call_has_returned),
    CASE(event_callback_runs_on_the_caller_and_calls_nothing),
    CASE(log_callback_runs_on_the_caller_and_calls_nothing),
    CASE(nonzero_cancels_and_the_next_save_works),
    CASE(what_callbacks_throw_stays_outside),
    CASE(verify_tells_progress_and_can_be_cancelled),
};
AREA(callbacks, kCases);
