// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The example of README.md: one sharded tensor, saved by any number of ranks, loaded by any other.
#include <ckpt.h>
#include <stdio.h>
#include <stdlib.h>

static void check(ckpt_status status, ckpt_error* err) {
  if (status == CKPT_OK) return;
  fprintf(stderr, "%s\n", ckpt_error_message(err));  // names the ranks and the first cause
  exit(1);
}

int main(void) {
  ckpt_error* err = NULL;
  ckpt_ctx* ctx = NULL;
  ckpt_state* state = NULL;
  ckpt_init_options init = {.struct_size = sizeof init, .root = "checkpoints"};
  check(ckpt_init(CKPT_HEADER_ABI, &init, &ctx, &err), err);  // ranks: torchrun's, mpirun's

  int rank = ckpt_rank(ctx), size = ckpt_size(ctx);
  int64_t shape[1] = {1000}, begin = 1000 * rank / size, end = 1000 * (rank + 1) / size;
  float* weights = calloc((size_t)(end - begin) + 1, sizeof *weights);
  ckpt_tensor w = {.struct_size = sizeof w,
                   .name = "weights",
                   .dtype = CKPT_F32,
                   .ndim = 1,
                   .global_shape = shape,
                   .shard_kind = CKPT_SHARD_FLAT,
                   .flat_offset = begin,
                   .flat_count = end - begin,
                   .data = weights};
  const ckpt_tensor* tensors[1] = {&w};
  check(ckpt_state_new(ctx, &state, &err), err);
  check(ckpt_state_add_tensors(state, tensors, 1, NULL, &err), err);

  ckpt_load_options load = {.struct_size = sizeof load, .which = CKPT_LOAD_LATEST};
  ckpt_result result = {.struct_size = sizeof result};
  ckpt_status status = ckpt_load(ctx, state, &load, &result, NULL, &err);
  int64_t step = status == CKPT_ERR_NO_CHECKPOINT ? 0 : result.step + 1;
  if (status != CKPT_ERR_NO_CHECKPOINT) check(status, err);
  for (int64_t i = 0; i < end - begin; ++i) weights[i] += 1.0f;  // training
  ckpt_save_options save = {.struct_size = sizeof save, .step = step};
  check(ckpt_save_collective(ctx, state, &save, &result, NULL, &err), err);
  printf("rank %d: step %lld is committed, weights[first] = %g\n", rank, (long long)step,
         weights[0]);

  ckpt_state_free(state);
  check(ckpt_finalize(ctx, 0, &err), err);
  ckpt_ctx_free(ctx);
  free(weights);
  return 0;
}
