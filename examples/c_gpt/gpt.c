// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The model's arithmetic. Matrices are [inputs][outputs], so that the inner loops run along memory;
// every sum has a fixed order, so that equal parameters give equal losses, bit for bit.
#include "gpt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Numbers of the tensors; those of a block count from its first one.
enum { kTok, kPos, kBlocks, kNormF = kBlocks + 6 * kLayers, kHead };
enum { kNorm1, kQkv, kProj, kNorm2, kFc, kOut, kPerBlock };
enum { kHeadWidth = kWidth / kHeads, kLanes = 8 };

typedef float row[kWidth];
typedef struct {
  row hat, out;  // normalized; then scaled
  float scale;   // 1 / standard deviation
} norm;
typedef struct {  // one position of one block
  row mixed, mid;
  norm norm1, norm2;
  float qkv[3 * kWidth], att[kHeads][kContext], fc[kHidden], act[kHidden];
} position;

// What the forward pass leaves for the backward pass.
static struct {
  row x[kLayers + 1][kContext];  // what goes into each block, and out of the last
  position blocks[kLayers][kContext];
  norm last[kContext];
  float probs[kContext][kVocab];
} acts;

float random_uniform(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)(*state >> 40) / (1 << 24);
}

// Matrices start random, the gains of the layer norms (no columns) at one.
static void AddTensor(gpt* g, int i, const char* name, int block, int64_t rows, int64_t columns) {
  static uint64_t seed = 1;
  gpt_tensor* t = &g->tensors[i];
  *t = (gpt_tensor){.ndim = columns == 0 ? 1 : 2, .shape = {rows, columns}};
  snprintf(t->name, sizeof t->name, name, block);
  t->count = columns == 0 ? rows : rows * columns;
  t->offset = i == 0 ? 0 : t[-1].offset + t[-1].count;
  for (int64_t k = t->offset; k < t->offset + t->count; k++)
    g->params[k] = columns == 0 ? 1 : 0.2f * (random_uniform(&seed) - 0.5f);
}

void gpt_init(gpt* g) {
  AddTensor(g, kTok, "tok_emb.weight", 0, kVocab, kWidth);
  AddTensor(g, kPos, "pos_emb.weight", 0, kContext, kWidth);
  for (int l = 0; l < kLayers; l++) {
    int first = kBlocks + l * kPerBlock;
    AddTensor(g, first + kNorm1, "blocks.%d.norm1.weight", l, kWidth, 0);
    AddTensor(g, first + kQkv, "blocks.%d.attn.qkv.weight", l, kWidth, 3 * kWidth);
    AddTensor(g, first + kProj, "blocks.%d.attn.proj.weight", l, kWidth, kWidth);
    AddTensor(g, first + kNorm2, "blocks.%d.norm2.weight", l, kWidth, 0);
    AddTensor(g, first + kFc, "blocks.%d.mlp.fc.weight", l, kWidth, kHidden);
    AddTensor(g, first + kOut, "blocks.%d.mlp.out.weight", l, kHidden, kWidth);
  }
  AddTensor(g, kNormF, "norm.weight", 0, kWidth, 0);
  AddTensor(g, kHead, "head.weight", 0, kWidth, kVocab);
}

static float* Of(gpt* g, float* flat, int tensor) { return flat + g->tensors[tensor].offset; }

// Sums in kLanes lanes: an order that is fixed, and that the compiler can turn into vectors.
static float Dot(const float* restrict a, const float* restrict b, int n) {
  float lanes[kLanes] = {0}, sum = 0;
  for (int i = 0; i < n; i += kLanes)
    for (int k = 0; k < kLanes; k++) lanes[k] += a[i + k] * b[i + k];
  for (int k = 0; k < kLanes; k++) sum += lanes[k];
  return sum;
}

static void AddScaled(float* restrict y, const float* restrict x, float a, int n) {
  for (int i = 0; i < n; i++) y[i] += a * x[i];
}

static void Linear(gpt* g, int w, const float* in, float* out) {
  int ni = (int)g->tensors[w].shape[0], no = (int)g->tensors[w].shape[1];
  const float* weight = Of(g, g->params, w);
  memset(out, 0, (size_t)no * sizeof *out);
  for (int i = 0; i < ni; i++) AddScaled(out, weight + i * no, in[i], no);
}

static void LinearBack(gpt* g, float* grad, int w, const float* in, const float* dout, float* din) {
  int ni = (int)g->tensors[w].shape[0], no = (int)g->tensors[w].shape[1];
  const float* weight = Of(g, g->params, w);
  float* dweight = Of(g, grad, w);
  for (int i = 0; i < ni; i++) {
    din[i] = Dot(weight + i * no, dout, no);
    AddScaled(dweight + i * no, dout, in[i], no);
  }
}

static void Norm(gpt* g, int w, const float* x, norm* n) {
  const float* gain = Of(g, g->params, w);
  float mean = 0, variance = 0;
  for (int i = 0; i < kWidth; i++) mean += x[i] / kWidth;
  for (int i = 0; i < kWidth; i++) variance += (x[i] - mean) * (x[i] - mean) / kWidth;
  n->scale = 1 / sqrtf(variance + 1e-5f);
  for (int i = 0; i < kWidth; i++) {
    n->hat[i] = (x[i] - mean) * n->scale;
    n->out[i] = n->hat[i] * gain[i];
  }
}

// Adds to `dx`, for every norm here sits beside a residual connection.
static void NormBack(gpt* g, float* grad, int w, const norm* n, const float* dout, float* dx) {
  const float* gain = Of(g, g->params, w);
  float *dgain = Of(g, grad, w), mean = 0, along = 0;
  for (int i = 0; i < kWidth; i++) {
    dgain[i] += dout[i] * n->hat[i];
    mean += dout[i] * gain[i] / kWidth;
    along += dout[i] * gain[i] * n->hat[i] / kWidth;
  }
  for (int i = 0; i < kWidth; i++)
    dx[i] += (dout[i] * gain[i] - mean - n->hat[i] * along) * n->scale;
}

static void Softmax(float* x, int n) {
  float max = x[0], sum = 0;
  for (int i = 1; i < n; i++) max = fmaxf(max, x[i]);
  for (int i = 0; i < n; i++) sum += x[i] = expf(x[i] - max);
  for (int i = 0; i < n; i++) x[i] /= sum;
}

static void Attention(position* p, int t) {
  memset(p[t].mixed, 0, sizeof p[t].mixed);
  for (int h = 0; h < kHeads; h++) {
    int q = h * kHeadWidth, k = kWidth + q, v = kWidth + k;
    for (int s = 0; s <= t; s++)
      p[t].att[h][s] = Dot(p[t].qkv + q, p[s].qkv + k, kHeadWidth) / sqrtf(kHeadWidth);
    Softmax(p[t].att[h], t + 1);
    for (int s = 0; s <= t; s++)
      AddScaled(p[t].mixed + q, p[s].qkv + v, p[t].att[h][s], kHeadWidth);
  }
}

static void AttentionBack(const position* p, int t, const float* dmixed,
                          float (*dqkv)[3 * kWidth]) {
  for (int h = 0; h < kHeads; h++) {
    int q = h * kHeadWidth, k = kWidth + q, v = kWidth + k;
    const float* att = p[t].att[h];
    float datt[kContext], mean = 0;
    for (int s = 0; s <= t; s++) {
      datt[s] = Dot(dmixed + q, p[s].qkv + v, kHeadWidth);
      mean += att[s] * datt[s];
      AddScaled(dqkv[s] + v, dmixed + q, att[s], kHeadWidth);
    }
    for (int s = 0; s <= t; s++) {
      float dscore = att[s] * (datt[s] - mean) / sqrtf(kHeadWidth);
      AddScaled(dqkv[t] + q, p[s].qkv + k, dscore, kHeadWidth);
      AddScaled(dqkv[s] + k, p[t].qkv + q, dscore, kHeadWidth);
    }
  }
}

static float Sigmoid(float x) { return 1 / (1 + expf(-x)); }
static float Gelu(float x) { return x * Sigmoid(1.702f * x); }
static float GeluSlope(float x) {
  float s = Sigmoid(1.702f * x);
  return s + 1.702f * x * s * (1 - s);
}

// Position t of block l: out = x + attention(norm1(x)), and then out += mlp(norm2(out)).
static void Block(gpt* g, int l, int t) {
  int first = kBlocks + l * kPerBlock;
  float *x = acts.x[l][t], *out = acts.x[l + 1][t];
  position* p = &acts.blocks[l][t];
  Norm(g, first + kNorm1, x, &p->norm1);
  Linear(g, first + kQkv, p->norm1.out, p->qkv);
  Attention(acts.blocks[l], t);
  Linear(g, first + kProj, p->mixed, p->mid);
  AddScaled(p->mid, x, 1, kWidth);
  Norm(g, first + kNorm2, p->mid, &p->norm2);
  Linear(g, first + kFc, p->norm2.out, p->fc);
  for (int i = 0; i < kHidden; i++) p->act[i] = Gelu(p->fc[i]);
  Linear(g, first + kOut, p->act, out);
  AddScaled(out, p->mid, 1, kWidth);
}

// Turns the gradient of the block's output into that of its input, in place.
static void BlockBack(gpt* g, float* grad, int first, const position* p, row* dx) {
  static float dqkv[kContext][3 * kWidth];
  float dact[kHidden], din[kWidth];
  memset(dqkv, 0, sizeof dqkv);
  for (int t = 0; t < kContext; t++) {
    LinearBack(g, grad, first + kOut, p[t].act, dx[t], dact);
    for (int i = 0; i < kHidden; i++) dact[i] *= GeluSlope(p[t].fc[i]);
    LinearBack(g, grad, first + kFc, p[t].norm2.out, dact, din);
    NormBack(g, grad, first + kNorm2, &p[t].norm2, din, dx[t]);
    LinearBack(g, grad, first + kProj, p[t].mixed, dx[t], din);
    AttentionBack(p, t, din, dqkv);
  }
  for (int t = 0; t < kContext; t++) {
    LinearBack(g, grad, first + kQkv, p[t].norm1.out, dqkv[t], din);
    NormBack(g, grad, first + kNorm1, &p[t].norm1, din, dx[t]);
  }
}

// A position needs what the blocks made of those before it, and nothing else.
static float* Forward(gpt* g, uint8_t token, int t) {
  memcpy(acts.x[0][t], Of(g, g->params, kTok) + token * kWidth, sizeof(row));
  AddScaled(acts.x[0][t], Of(g, g->params, kPos) + t * kWidth, 1, kWidth);
  for (int l = 0; l < kLayers; l++) Block(g, l, t);
  Norm(g, kNormF, acts.x[kLayers][t], &acts.last[t]);
  Linear(g, kHead, acts.last[t].out, acts.probs[t]);
  Softmax(acts.probs[t], kVocab);
  return acts.probs[t];
}

float gpt_loss(gpt* g, const uint8_t* tokens) {
  float loss = 0;
  for (int t = 0; t < kContext; t++)
    loss -= logf(Forward(g, tokens[t], t)[tokens[t + 1]]) / kContext;
  return loss;
}

void gpt_gradient(gpt* g, const uint8_t* tokens, float* grad) {
  row dx[kContext] = {{0}}, din;
  memset(grad, 0, kParams * sizeof *grad);
  for (int t = 0; t < kContext; t++) {
    float* dlogits = acts.probs[t];  // is of no more use as what it was
    dlogits[tokens[t + 1]] -= 1;
    for (int i = 0; i < kVocab; i++) dlogits[i] /= kContext;
    LinearBack(g, grad, kHead, acts.last[t].out, dlogits, din);
    NormBack(g, grad, kNormF, &acts.last[t], din, dx[t]);
  }
  for (int l = kLayers - 1; l >= 0; l--)
    BlockBack(g, grad, kBlocks + l * kPerBlock, acts.blocks[l], dx);
  for (int t = 0; t < kContext; t++) {
    AddScaled(Of(g, grad, kTok) + tokens[t] * kWidth, dx[t], 1, kWidth);
    AddScaled(Of(g, grad, kPos) + t * kWidth, dx[t], 1, kWidth);
  }
}

uint8_t gpt_next(gpt* g, uint8_t token, int t, float u) {
  const float* probs = Forward(g, token, t);
  uint8_t next = 0;
  while (next < kVocab - 1 && (u -= probs[next]) >= 0) next++;
  return next;
}
