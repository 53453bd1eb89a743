// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// All that a trainer has to tell the checkpoint library: what it holds, once; then save and load.
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "train.h"

static const uint32_t kF32 = CKPT_DTYPE(2, 32), kBf16 = CKPT_DTYPE(4, 16);

static void Die(trainer* t, const char* what, const char* why) {
  fprintf(stderr, "c_gpt: rank %d: %s: %s\n", t->rank, what, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void Check(trainer* t, ckpt_status status, const char* what) {
  if (status != CKPT_OK) Die(t, what, t->api.error_message(t->err));
}

static void Find(trainer* t, void* library, const char* name, void* function) {
  void* symbol = library == NULL ? NULL : dlsym(library, name);
  if (symbol == NULL) Die(t, "cannot load the library", dlerror());
  memcpy(function, &symbol, sizeof symbol);  // ISO C has no cast from void* to a function pointer
}

static void AddTensor(trainer* t, ckpt_tensor tensor, const gpt_tensor* of, const char* suffix) {
  char name[64];
  snprintf(name, sizeof name, "%s%s", of->name, suffix);
  tensor.struct_size = sizeof tensor;
  tensor.name = name;
  tensor.ndim = of->ndim;
  tensor.global_shape = of->shape;
  const ckpt_tensor* one = &tensor;
  Check(t, t->api.state_add_tensors(t->state, &one, 1, NULL, &t->err), name);
}

// Every rank holds all parameters. Of the optimizer it holds a slice, and its cut falls where it
// falls: a rank has all of a tensor, a range of its elements, or nothing.
static void AddTensors(trainer* t, const gpt_tensor* p) {
  ckpt_tensor whole = {.group = "model", .dtype = kF32, .data = t->model.params + p->offset};
  AddTensor(t, whole, p, "");
  whole = (ckpt_tensor){.group = "model_bf16", .dtype = kBf16, .data = t->bf16 + p->offset};
  AddTensor(t, whole, p, "");

  ckpt_tensor flat = {.group = "optimizer", .dtype = kF32, .shard_kind = CKPT_SHARD_FLAT};
  int64_t begin = t->first_param[t->rank], end = begin + t->slices[t->rank];
  int64_t first = p->offset > begin ? p->offset : begin;
  int64_t last = p->offset + p->count < end ? p->offset + p->count : end;
  float* const slices[] = {t->master, t->m, t->v};
  const char* const suffixes[] = {".master", ".exp_avg", ".exp_avg_sq"};
  for (int i = 0; i < 3; i++) {
    if (first < last) {
      flat.flat_offset = first - p->offset;
      flat.flat_count = last - first;
      flat.data = slices[i] + (first - begin);
    }
    AddTensor(t, flat, p, suffixes[i]);
  }
}

static void AddBlob(trainer* t, uint32_t scope, const char* name, void* data, uint64_t bytes) {
  ckpt_blob blob = {.struct_size = sizeof blob, .scope = scope, .name = name};
  blob.data = data;
  blob.bytes = bytes;
  blob.writer_rank = -1;              // load this rank's own,
  if (scope == CKPT_BLOB_PER_RANK) {  // if there was such a rank
    blob.flags = CKPT_BLOB_OPTIONAL;
    blob.actual = &t->rng_bytes;
  }
  Check(t, t->api.state_add_blob(t->state, &blob, NULL, &t->err), name);
}

static trainer* job;  // whose SIGTERM it is

static void OnSignal(int number) { job->api.notify_signal(job->ctx, number); }

static void HandleSigterm(trainer* t) {
  struct sigaction action = {.sa_handler = OnSignal, .sa_flags = SA_RESTART};
  job = t;
  sigaction(SIGTERM, &action, NULL);
}

void checkpoint_open(trainer* t) {
  void* library = dlopen(t->lib, RTLD_NOW | RTLD_LOCAL);
#define CKPT_FIND(name) Find(t, library, "ckpt_" #name, &t->api.name);
  CKPT_FUNCTIONS(CKPT_FIND)
  ckpt_init_options init = {.struct_size = sizeof init, .root = t->root};
  init.config = "max_file_bytes=200000";
  init.on_event = quickstart_on_event;
  init.event_user = t;
  Check(t, t->api.init(CKPT_HEADER_ABI, &init, &t->ctx, &t->err), "ckpt_init");
  Check(t, t->api.state_new(t->ctx, &t->state, &t->err), "ckpt_state_new");
  for (int i = 0; i < kTensors; i++) AddTensors(t, &t->model.tensors[i]);
  AddBlob(t, CKPT_BLOB_SHARED, "data_position", t->position, sizeof t->position);
  AddBlob(t, CKPT_BLOB_PER_RANK, "rng", &t->rng, sizeof t->rng);
  int n = snprintf(t->config_json, sizeof t->config_json,
                   "{\"model_type\": \"c_gpt\", \"vocab_size\": %d, \"n_positions\": %d, "
                   "\"n_embd\": %d, \"n_head\": %d, \"n_layer\": %d}\n",
                   kVocab, kContext, kWidth, kHeads, kLayers);
  if (t->rank == 0) AddBlob(t, CKPT_BLOB_FILE, "config.json", t->config_json, (uint64_t)n);
  HandleSigterm(t);
}

void checkpoint_load(trainer* t) {
  ckpt_load_options load = {.struct_size = sizeof load, .which = CKPT_LOAD_LATEST};
  trainer_phase(t, "load");
  ckpt_status status = t->api.load(t->ctx, t->state, &load, NULL, NULL, &t->err);
  if (status == CKPT_ERR_NO_CHECKPOINT) {
    if (t->rank == 0) printf("no checkpoint yet: starting afresh\n");
    t->api.error_free(t->err);
    return;
  }
  Check(t, status, "ckpt_load");
  if (t->rank == 0) printf("resumed after step %" PRId64 "\n", t->position[0]);
  if (t->rng_bytes == UINT64_MAX) {  // fewer ranks saved
    t->rng = (uint64_t)t->position[0] * 1000 + (uint64_t)t->rank;
    printf("rank %d: no rng of its own in the checkpoint, reseeded\n", t->rank);
  }
  if (!t->drop_moments) return;
  memset(t->m, 0, sizeof t->m);
  memset(t->v, 0, sizeof t->v);
}

// Round to nearest, ties to even. (The model has no NaN.)
static uint16_t ToBf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

ckpt_status checkpoint_save(trainer* t, const char* tag, uint64_t timeout_ms) {
  for (int i = 0; i < kParams; i++) t->bf16[i] = ToBf16(t->model.params[i]);
  ckpt_save_options save = {.struct_size = sizeof save, .step = t->position[0], .tag = tag};
  save.contract_timeout_ms = timeout_ms;
  trainer_phase(t, "save");
  return t->api.save_collective(t->ctx, t->state, &save, NULL, NULL, &t->err);
}

int checkpoint_must_end(trainer* t) {
  ckpt_advice advice = {.struct_size = sizeof advice};
  if (t->api.advise(t->ctx, t->position[0], &advice, &t->err) != CKPT_OK) {
    printf("rank %d: advise failed: %s\n", t->rank, t->api.error_message(t->err));
    t->api.error_free(t->err);
  }
  return (advice.flags & CKPT_ADVICE_EXIT_SOON) != 0;
}

void checkpoint_close(trainer* t) {
  Check(t, t->api.finalize(t->ctx, 60000, &t->err), "ckpt_finalize");
  signal(SIGTERM, SIG_DFL);  // the handler uses the context
  t->api.state_free(t->state);
  t->api.ctx_free(t->ctx);
}
