// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the areas named on the command line (all without), each case in a process of its own.
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "suite.h"

extern const test_area bad_init, bad_input, callbacks, errors, forked, guest, later, order, reader,
    round_trip, structs, symbols, version;
static const test_area* const kAreas[] = {&bad_init, &bad_input, &callbacks, &errors, &forked,
                                          &guest,    &later,     &order,     &reader, &round_trip,
                                          &structs,  &symbols,   &version};

enum { kDeadlineSeconds = 30 };

static const test_case* current;

static void run_current(void** state) {
  (void)state;
  current->run();
}

static void child(const test_case* c) {
  setpgid(0, 0);
  current = c;
  const struct CMUnitTest test = {c->name, run_current, NULL, NULL, NULL};
  load_api();
  exit(_cmocka_run_group_tests(c->name, &test, 1, NULL, NULL) == 0 ? 0 : 1);
}

static int remove_one(const char* path, const struct stat* st, int type, struct FTW* ftw) {
  (void)st, (void)type, (void)ftw;
  return remove(path);
}

// The child's wait status, or -1 when it was still running at the deadline.
static int wait_for(pid_t pid) {
  int status = 0;
  for (int tenths = 0; tenths < 10 * kDeadlineSeconds * 2; ++tenths) {
    if (waitpid(pid, &status, WNOHANG) == pid) return status;
    const struct timespec pause = {0, 50 * 1000 * 1000};
    nanosleep(&pause, NULL);
  }
  kill(-pid, SIGKILL);
  waitpid(pid, &status, 0);
  return -1;
}

static int run(const test_case* c) {
  char folder[] = "/tmp/ckpt-conformance-XXXXXX";
  if (mkdtemp(folder) == NULL) return 1;
  setenv("CKPT_TEST_SCRATCH", folder, 1);
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) child(c);
  const int status = wait_for(pid);
  kill(-pid, SIGKILL);  // whatever the case itself forked
  nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  if (status == 0) return 0;
  if (status == -1) {
    fprintf(stderr, "FAILED %s: still running after %d s\n", c->name, kDeadlineSeconds);
  } else if (WIFSIGNALED(status)) {
    fprintf(stderr, "FAILED %s: killed by signal %d\n", c->name, WTERMSIG(status));
  } else {
    fprintf(stderr, "FAILED %s\n", c->name);
  }
  return 1;
}

static int wanted(const char* area, const char* name, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], area) == 0 || strcmp(argv[i], name) == 0) return 1;
  }
  return argc == 1;
}

int main(int argc, char** argv) {
  int failed = 0, ran = 0;
  for (size_t a = 0; a < sizeof kAreas / sizeof *kAreas; ++a) {
    for (size_t i = 0; i < kAreas[a]->count; ++i) {
      const test_case* c = &kAreas[a]->cases[i];
      if (!wanted(kAreas[a]->name, c->name, argc, argv)) continue;
      ++ran;
      failed += run(c);
    }
  }
  fprintf(stderr, "%d cases, %d failed\n", ran, failed);
  return failed == 0 && ran > 0 ? 0 : 1;
}
