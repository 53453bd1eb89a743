// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What tools/quickstart asks of c_gpt beyond training: values of the tensors, to compare with what
// other readers find in the files; and faults: a job that dies in a save, ranks that do not make
// the same call.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>

#include "train.h"

int32_t quickstart_on_event(void* user, const ckpt_event* event) {
  trainer* t = user;
  if (event->kind == CKPT_EVENT_WARNING) fprintf(stderr, "c_gpt: warning: %s\n", event->text);
  if (event->kind != CKPT_EVENT_PROGRESS || t->position[0] != t->kill_in_save) return 0;
  if (event->bytes_done == 0 || event->bytes_done >= event->bytes_total) return 0;
  printf("rank %d kills all ranks, %" PRIu64 " of %" PRIu64 " bytes into the save of step %d\n",
         t->rank, event->bytes_done, event->bytes_total, t->kill_in_save);
  for (int i = 1; i <= t->ranks; i++) kill(t->pids[(t->rank + i) % t->ranks], SIGKILL);
  return 0;
}

void quickstart_print(trainer* t) {
  for (int i = 0; i < kTensors * t->print_tensors; i++) {
    const gpt_tensor* p = &t->model.tensors[i % kTensors];
    int index = (int)(p->count * (i / kTensors) / t->print_tensors);
    int64_t at = p->offset + index, mine = at - t->first_param[t->rank];
    if (t->rank == 0) {
      printf("value model %s %d %a\n", p->name, index, t->model.params[at]);
      printf("value model_bf16 %s %d 0x%04x\n", p->name, index, t->bf16[at]);
    }
    if (mine < 0 || mine >= t->slices[t->rank]) continue;
    printf("value optimizer %s.master %d %a\n", p->name, index, t->master[mine]);
    printf("value optimizer %s.exp_avg %d %a\n", p->name, index, t->m[mine]);
    printf("value optimizer %s.exp_avg_sq %d %a\n", p->name, index, t->v[mine]);
  }
}

// The outcome of a save that is meant to fail.
static void Report(trainer* t, ckpt_status status, double seconds) {
  ckpt_error_cause cause = {.struct_size = sizeof cause};
  t->api.error_get_cause(t->err, &cause);
  printf("save %" PRId64 " rank %d: gave %d after %.2f s, cause: field \"%s\" of rank %d: %s\n",
         t->position[0], t->rank, status, seconds, cause.field == NULL ? "" : cause.field,
         cause.rank, t->api.error_message(t->err));
  for (uint64_t i = 0; i < t->api.error_rank_count(t->err); i++) {
    ckpt_rank_report r = {.struct_size = sizeof r};
    t->api.error_rank(t->err, i, &r);
    printf("save %" PRId64 " rank %d: of rank %d: condition %u, phase \"%s\" step %" PRId64
           ", doing \"%s\", last call \"%s\"\n",
           t->position[0], t->rank, r.rank, r.condition, r.phase, r.phase_step, r.doing,
           r.last_call);
  }
  t->api.error_free(t->err);
}

// Alone: the classic mistake, `if (rank == 0) save();`. The others train on, each in a phase of its
// own, until they wait for rank 0 in a collective. Otherwise: one rank has another tag.
int quickstart_fault(trainer* t) {
  static const char* const kPhases[] = {"optimizer", "forward", "backward", "exchange gradients"};
  int alone = t->position[0] == t->rank0_alone, odd = t->ranks > 2 ? 2 : t->ranks - 1;
  if (!alone && t->position[0] != t->other_tag) return 0;
  if (alone && t->rank != 0) {
    const char* phase = kPhases[t->rank % 4];
    trainer_phase(t, phase);
    printf("save %" PRId64 " rank %d: goes on, phase \"%s\" step %" PRId64 "\n", t->position[0],
           t->rank, phase, t->position[0] + 1);
  } else {
    const char* tag = !alone && t->rank == odd ? "other" : "train";
    double start = MPI_Wtime();
    ckpt_status status = checkpoint_save(t, tag, alone ? 2000 : 0);
    Report(t, status, MPI_Wtime() - start);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return 1;
}
