// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// One rank of the training job: data-parallel, with the optimizer cut over the ranks (ZeRO-1).
#ifndef C_GPT_TRAIN_H_
#define C_GPT_TRAIN_H_
#include "ckpt.h"
#include "gpt.h"

enum { kBatch = 12 };  // sequences of a step, of all ranks together; at most so many ranks

// The functions of libckpt.so that are used here: `api.load` is ckpt_load, found by dlsym.
// clang-format off
#define CKPT_FUNCTIONS(X)                                                                     \
  X(init) X(finalize) X(ctx_free) X(set_phase)                                                \
  X(state_new) X(state_add_tensors) X(state_add_blob) X(state_free) X(save_collective) X(load) \
  X(notify_signal) X(advise)                                                                  \
  X(error_message) X(error_rank_count) X(error_rank) X(error_get_cause) X(error_free)
// clang-format on
#define CKPT_MEMBER(name) __typeof__(ckpt_##name)* name;
typedef struct {
  CKPT_FUNCTIONS(CKPT_MEMBER)
} ckpt_api;

typedef struct {
  const char *root, *text_file, *lib;  // from the command line, as are these:
  int steps, save_every, resume, drop_moments, print_tensors;
  int kill_in_save, rank0_alone, other_tag;  // faults on request
  int rank, ranks, pids[kBatch];
  int sequences[kBatch], first_sequence[kBatch];  // of each rank
  int slices[kBatch], first_param[kBatch];        // of each rank, of the flat parameter vector
  uint8_t text[1 << 20];
  int64_t text_size;
  gpt model;                                      // the parameters, on every rank
  uint16_t bf16[kParams];                         // a copy of them in half the bytes
  float master[kParams], m[kParams], v[kParams];  // of this rank's slice: weights, Adam's moments
  float grads[kBatch][kParams];                   // one for each sequence of this rank
  int64_t position[2];  // steps done; where in the text the next batch begins
  uint64_t rng;         // this rank's own, draws its samples
  uint64_t rng_bytes;   // of the rng that a load found; UINT64_MAX: none
  char config_json[256];
  ckpt_api api;
  ckpt_ctx* ctx;
  ckpt_state* state;
  ckpt_error* err;  // of the last call that failed
} trainer;

int trainer_init(trainer* t);                       // -1: the text cannot be read
float trainer_step(trainer* t);                     // the mean loss of the global batch
void trainer_sample(trainer* t);                    // prints some text
void trainer_phase(trainer* t, const char* phase);  // what to tell peers that ask

// Collective, all of them.
void checkpoint_open(trainer* t);
void checkpoint_load(trainer* t);  // the newest one, if there is any
ckpt_status checkpoint_save(trainer* t, const char* tag, uint64_t timeout_ms);
int checkpoint_must_end(trainer* t);  // true: a rank, any of them, was sent SIGTERM
void checkpoint_close(trainer* t);

// In ../c_gpt_quickstart.c: nothing that training needs.
void quickstart_print(trainer* t);  // some values of each tensor, by who holds them
int quickstart_fault(trainer* t);   // true: it took the place of this step's save
int32_t quickstart_on_event(void* user, const ckpt_event* event);

#endif  // C_GPT_TRAIN_H_
