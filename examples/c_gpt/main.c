// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// c_gpt: trains a character-level GPT with MPI and checkpoints it with libckpt.so. Read
// checkpoint.c for the use of the library, train.c for the job, gpt.c for the model.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train.h"

static const char kUsage[] =
    "usage: mpirun -n RANKS c_gpt [--root DIR] [--lib PATH] [--resume] [--text FILE] [--steps N]\n"
    "  [--save-every K] [--print-tensors N] [--drop-moments] [--kill-in-save STEP]\n"
    "  [--rank0-alone STEP] [--other-tag STEP]        (at most 12 ranks)\n";

// What follows `name`, or is "" where nothing does.
static const char* Value(char** argv, const char* name, const char* otherwise) {
  for (; *argv != NULL; argv++)
    if (strcmp(*argv, name) == 0) return argv[1] != NULL ? argv[1] : "";
  return otherwise;
}

static int Parse(trainer* t, char** argv) {
  const char* lib = getenv("CKPT_LIB");
  t->lib = Value(argv, "--lib", lib != NULL ? lib : "libckpt.so");
  t->root = Value(argv, "--root", "c_gpt.ckpt");
  t->text_file = Value(argv, "--text", "/usr/share/common-licenses/GPL-3");
  t->steps = atoi(Value(argv, "--steps", "60"));
  t->save_every = atoi(Value(argv, "--save-every", "10"));
  t->resume = Value(argv, "--resume", NULL) != NULL;
  t->drop_moments = Value(argv, "--drop-moments", NULL) != NULL;
  t->print_tensors = atoi(Value(argv, "--print-tensors", "0"));
  t->kill_in_save = atoi(Value(argv, "--kill-in-save", "-1"));
  t->rank0_alone = atoi(Value(argv, "--rank0-alone", "-1"));
  t->other_tag = atoi(Value(argv, "--other-tag", "-1"));
  int good = t->save_every > 0 && t->ranks <= kBatch;
  while (*++argv != NULL) {
    const char* known = strstr(kUsage, *argv);
    if (**argv == '-') good = good && known != NULL && strchr(" ]", known[strlen(*argv)]) != NULL;
  }
  if (!good && t->rank == 0) fputs(kUsage, stderr);
  return good ? 0 : 2;
}

// False: the checkpoint was not written.
static int Save(trainer* t) {
  trainer_sample(t);  // first, so that the rng in the checkpoint is the one to go on with
  if (quickstart_fault(t)) return 0;
  const int saved = checkpoint_save(t, "train", 0) == CKPT_OK;
  if (!saved) {  // train on: the next save may succeed
    printf("rank %d: save failed: %s\n", t->rank, t->api.error_message(t->err));
    t->api.error_free(t->err);
  } else if (t->rank == 0) {
    printf("saved step %" PRId64 "\n", t->position[0]);
  }
  if (t->position[0] == t->steps) quickstart_print(t);
  return saved;
}

int main(int argc, char** argv) {
  static trainer t;
  setvbuf(stdout, NULL, _IOLBF, 0);  // mpirun reads through a pipe, and we may be killed
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
  int rc = Parse(&t, argv);
  if (rc == 0 && trainer_init(&t) != 0) {
    fprintf(stderr, "c_gpt: %s cannot be read or is too short\n", t.text_file);
    rc = 2;
  }
  if (rc == 0) {
    int pid = (int)getpid();
    MPI_Allgather(&pid, 1, MPI_INT, t.pids, 1, MPI_INT, MPI_COMM_WORLD);
    checkpoint_open(&t);
    if (t.resume) checkpoint_load(&t);
  }
  while (rc == 0 && t.position[0] < t.steps) {
    float loss = trainer_step(&t);
    if (t.rank == 0) printf("step %" PRId64 " loss %.6f bits %a\n", t.position[0], loss, loss);
    const int must_end = checkpoint_must_end(&t);
    const int saved = (must_end || t.position[0] % t.save_every == 0) && Save(&t);
    if (t.position[0] == t.kill_in_save) rc = 3;  // no event came in the middle of that save
    if (must_end && t.rank == 0) printf("SIGTERM: ends after step %" PRId64 "\n", t.position[0]);
    if (must_end && !saved && rc == 0) rc = 4;  // the steps since the last save are lost
    if (must_end) break;
  }
  if (rc == 3) fprintf(stderr, "c_gpt: rank %d met no progress event to die at\n", t.rank);
  if (t.ctx != NULL) checkpoint_close(&t);
  MPI_Finalize();
  return rc;
}
