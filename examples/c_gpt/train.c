// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A step: each rank computes the gradients of its sequences; the owner of a slice of the parameters
// sums that slice in the order of the sequences, whichever rank they come from; AdamW; gather.
#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static const float kRate = 4e-3f, kBeta1 = 0.9f, kBeta2 = 0.99f, kDecay = 0.01f;

static int ReadText(trainer* t) {
  FILE* f = fopen(t->text_file, "rb");
  if (f == NULL) return -1;
  t->text_size = (int64_t)fread(t->text, 1, sizeof t->text, f);
  fclose(f);
  for (int64_t i = 0; i < t->text_size; i++) t->text[i] %= kVocab;
  return t->text_size < kBatch * 2 * kContext ? -1 : 0;
}

// An even cut over the ranks.
static void Cut(const trainer* t, int64_t total, int* first, int* count) {
  for (int r = 0; r < t->ranks; r++) {
    first[r] = (int)(total * r / t->ranks);
    count[r] = (int)(total * (r + 1) / t->ranks) - first[r];
  }
}

int trainer_init(trainer* t) {
  gpt_init(&t->model);
  Cut(t, kBatch, t->first_sequence, t->sequences);
  Cut(t, kParams, t->first_param, t->slices);
  for (int k = 0; k < t->slices[t->rank]; k++)
    t->master[k] = t->model.params[t->first_param[t->rank] + k];
  t->rng = (uint64_t)t->rank + 1000;
  return ReadText(t);
}

void trainer_phase(trainer* t, const char* phase) {
  t->api.set_phase(t->ctx, phase, t->position[0] + 1);
}

// The text is cut into kBatch stripes; each sequence of a batch walks through its own.
static const uint8_t* Sequence(const trainer* t, int i) {
  int64_t stripe = t->text_size / kBatch;
  return t->text + i * stripe + t->position[1] % (stripe - kContext);
}

static void SumGradients(const trainer* t, float* sum) {
  static float piece[kParams];
  int own = t->slices[t->rank], root = 0;
  memset(sum, 0, kParams * sizeof *sum);
  for (int i = 0; i < kBatch; i++) {
    while (i >= t->first_sequence[root] + t->sequences[root]) root++;
    const float* grad = root == t->rank ? t->grads[i - t->first_sequence[root]] : NULL;
    MPI_Scatterv(grad, t->slices, t->first_param, MPI_FLOAT, piece, own, MPI_FLOAT, root,
                 MPI_COMM_WORLD);
    for (int k = 0; k < own; k++) sum[k] += piece[k] / kBatch;
  }
}

static void AdamW(trainer* t, const float* grad) {
  float step = (float)t->position[0] + 1;
  float unbias1 = 1 - powf(kBeta1, step), unbias2 = 1 - powf(kBeta2, step);
  for (int k = 0; k < t->slices[t->rank]; k++) {
    t->m[k] = kBeta1 * t->m[k] + (1 - kBeta1) * grad[k];
    t->v[k] = kBeta2 * t->v[k] + (1 - kBeta2) * grad[k] * grad[k];
    float update = t->m[k] / unbias1 / (sqrtf(t->v[k] / unbias2) + 1e-8f);
    t->master[k] -= kRate * (update + kDecay * t->master[k]);
  }
}

float trainer_step(trainer* t) {
  static float sum[kParams];
  float own[kBatch], losses[kBatch], loss = 0;
  int many = t->sequences[t->rank];
  for (int i = 0; i < many; i++) {
    const uint8_t* tokens = Sequence(t, t->first_sequence[t->rank] + i);
    trainer_phase(t, "forward");
    own[i] = gpt_loss(&t->model, tokens);
    trainer_phase(t, "backward");
    gpt_gradient(&t->model, tokens, t->grads[i]);
  }
  trainer_phase(t, "exchange gradients");
  SumGradients(t, sum);
  MPI_Allgatherv(own, many, MPI_FLOAT, losses, t->sequences, t->first_sequence, MPI_FLOAT,
                 MPI_COMM_WORLD);
  for (int i = 0; i < kBatch; i++) loss += losses[i] / kBatch;
  trainer_phase(t, "optimizer");
  AdamW(t, sum);
  MPI_Allgatherv(t->master, t->slices[t->rank], MPI_FLOAT, t->model.params, t->slices,
                 t->first_param, MPI_FLOAT, MPI_COMM_WORLD);
  t->position[0] += 1;
  t->position[1] += kContext;
  return loss;
}

void trainer_sample(trainer* t) {
  char text[kContext + 1] = {0};
  uint8_t token = 'T';
  for (int i = 0; i < kContext; i++) {
    text[i] = token < ' ' || token > '~' ? '|' : (char)token;  // line breaks, mostly
    token = gpt_next(&t->model, token, i, random_uniform(&t->rng));
  }
  printf("sample step %" PRId64 " rank %d: \"%s\"\n", t->position[0], t->rank, text);
}
