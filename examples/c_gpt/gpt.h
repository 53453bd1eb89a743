// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A character-level GPT, small enough to read in one sitting: token and position embeddings, blocks
// of causal attention and MLP with layer norm, forward and backward of one sequence at a time. A
// token is a byte below 128. Nothing here knows of ranks or checkpoints.
#ifndef C_GPT_GPT_H_
#define C_GPT_GPT_H_
#include <stdint.h>

enum { kVocab = 128, kContext = 64, kWidth = 64, kHeads = 4, kHidden = 4 * kWidth, kLayers = 2 };
enum { kTensors = 4 + 6 * kLayers };
enum { kBlockSize = (12 * kWidth + 2) * kWidth };
enum { kParams = (2 * kVocab + kContext + 1) * kWidth + kLayers * kBlockSize };

// One named parameter: `count` floats of the flat parameter vector, from `offset` on.
typedef struct {
  char name[32];
  int ndim;
  int64_t shape[2], offset, count;
} gpt_tensor;

typedef struct {
  gpt_tensor tensors[kTensors];
  float params[kParams];  // all tensors, one after another
} gpt;

// Lays the tensors out and fills them with the same random numbers on every rank.
void gpt_init(gpt* g);
// Mean loss of predicting tokens[1..kContext] from those before them.
float gpt_loss(gpt* g, const uint8_t* tokens);
// Overwrites `grad` with the gradient of that loss. REQUIRES: gpt_loss with the same tokens before.
void gpt_gradient(gpt* g, const uint8_t* tokens, float* grad);
// The token after `token` at position t, drawn with `u` out of [0, 1). REQUIRES: the same calls for
// the tokens at 0..t-1 before.
uint8_t gpt_next(gpt* g, uint8_t token, int t, float u);
// A random number in [0, 1). All of the generator's state is one integer: easy to save.
float random_uniform(uint64_t* state);

#endif  // C_GPT_GPT_H_
