// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// R5 and CASES C08: a guest in a foreign process changes nothing of the host's.
#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "suite.h"

typedef struct snapshot {
  // Of each signal; the kernel's 8 bytes of the mask, for glibc leaves the rest of it to chance.
  struct {
    void (*handler)(int);
    int flags;
    unsigned char mask[8];
  } actions[65];
  sigset_t mask;
  char cwd[4096], locale[256];
  mode_t umask;
} snapshot;

static void take(snapshot* s) {
  memset(s, 0, sizeof *s);
  for (int i = 1; i < 65; ++i) {
    struct sigaction action = {0};
    (void)sigaction(i, NULL, &action);
    s->actions[i].handler = action.sa_handler;
    s->actions[i].flags = action.sa_flags;
    memcpy(s->actions[i].mask, &action.sa_mask, sizeof s->actions[i].mask);
  }
  assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &s->mask), 0);
  assert_non_null(getcwd(s->cwd, sizeof s->cwd));
  snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
  s->umask = umask(0);
  umask(s->umask);
}

static void run_a_life(void) {
  ckpt_ctx* ctx = new_ctx();
  save_sample(ctx, 1);
  ckpt_state* state = new_state(ctx);
  static float w[4];
  static const int64_t n = 4;
  add_f32(state, "w", &n, w);
  const ckpt_load_options load = load_options(-1);
  assert_int_equal(api.load(ctx, state, &load, NULL, NULL, NULL), CKPT_OK);
  const ckpt_load_options missing = load_options(55);
  assert_int_equal(api.load(ctx, state, &missing, NULL, NULL, NULL), CKPT_ERR_NOT_FOUND);
  api.state_free(state);
  ckpt_reader* reader = open_reader(scratch());
  assert_int_equal(api.reader_verify(reader, NULL, NULL, NULL), CKPT_OK);
  api.reader_free(reader);
  assert_int_equal(api.finalize(ctx, 0, NULL), CKPT_OK);
  api.ctx_free(ctx);
}

static void c08_signals_cwd_locale_and_umask_stay_the_hosts(void) {
  static snapshot before, during, after;
  take(&before);
  ckpt_ctx* ctx = new_ctx();
  take(&during);
  api.ctx_free(ctx);
  run_a_life();
  take(&after);
  assert_memory_equal(&before, &during, sizeof before);
  assert_memory_equal(&before, &after, sizeof before);
}

static void nothing_is_written_to_stdout_or_stderr(void) {
  unsetenv("CKPT_LOG");
  FILE* capture = tmpfile();
  assert_non_null(capture);
  fflush(NULL);
  const int out = dup(1), err = dup(2);
  dup2(fileno(capture), 1);
  dup2(fileno(capture), 2);
  run_a_life();
  fflush(NULL);
  dup2(out, 1);
  dup2(err, 2);
  struct stat st;
  assert_int_equal(fstat(fileno(capture), &st), 0);
  assert_int_equal(st.st_size, 0);
  fclose(capture);
}

static int count(const char* folder) {
  DIR* dir = opendir(folder);
  assert_non_null(dir);
  int entries = 0;
  while (readdir(dir) != NULL) ++entries;
  closedir(dir);
  return entries;
}

static void no_thread_before_init_none_after_free(void) {
  const int before = count("/proc/self/task");
  assert_int_equal(before, 3);  // ".", ".." and this one
  run_a_life();
  const struct timespec pause = {0, 10 * 1000 * 1000};
  for (int i = 0; i < 300 && count("/proc/self/task") > before; ++i) nanosleep(&pause, NULL);
  assert_int_equal(count("/proc/self/task"), before);
}

static void descriptors_are_closed_on_exec_and_given_back(void) {
  enum { kLast = 256 };
  int before[kLast];
  for (int fd = 0; fd < kLast; ++fd) before[fd] = fcntl(fd, F_GETFD);
  ckpt_ctx* ctx = new_ctx();
  save_sample(ctx, 1);
  ckpt_reader* reader = open_reader(scratch());
  for (int fd = 0; fd < kLast; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (before[fd] >= 0 || flags < 0) continue;
    if ((flags & FD_CLOEXEC) == 0) print_error("descriptor %d would be inherited\n", fd);
    assert_true((flags & FD_CLOEXEC) != 0);
  }
  api.reader_free(reader);
  api.ctx_free(ctx);
  for (int fd = 0; fd < kLast; ++fd) assert_int_equal(fcntl(fd, F_GETFD), before[fd]);
}

static const test_case kCases[] = {
    CASE(c08_signals_cwd_locale_and_umask_stay_the_hosts),
    CASE(nothing_is_written_to_stdout_or_stderr),
    CASE(no_thread_before_init_none_after_free),
    CASE(descriptors_are_closed_on_exec_and_given_back),
};
AREA(guest, kCases);
