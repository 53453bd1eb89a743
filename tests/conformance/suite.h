// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The small language of the suite.  Each case runs in a process of its own with a deadline: a crash
// or a hang is a failure of that case, by name.  Inside a case cmocka's assertions are used.
#ifndef CKPT_TESTS_CONFORMANCE_SUITE_H_
#define CKPT_TESTS_CONFORMANCE_SUITE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "api.h"

typedef struct test_case {
  const char* name;
  void (*run)(void);
} test_case;
#define CASE(function) \
  { #function, function }

typedef struct test_area {
  const char* name;
  const test_case* cases;
  size_t count;
} test_area;
#define AREA(area, cases) const test_area area = {#area, cases, sizeof cases / sizeof cases[0]}

// A folder of this case's own; removed afterwards.
const char* scratch(void);

// --- calls that are expected to work

// A context of one rank with root = scratch().
ckpt_ctx* new_ctx(void);
// The same options, for a case that changes one.
ckpt_init_options default_init(void);
ckpt_ctx* init_with(const ckpt_init_options* options);
ckpt_state* new_state(ckpt_ctx* ctx);
// A WHOLE f32 tensor of n elements.
ckpt_tensor f32_tensor(const char* name, const int64_t* n, void* data);
void add_f32(ckpt_state* state, const char* name, const int64_t* n, float* data);
void save_step(ckpt_ctx* ctx, ckpt_state* state, int64_t step);
// Saves one f32 tensor "w" {0,1,2,3} as `step`.
void save_sample(ckpt_ctx* ctx, int64_t step);
ckpt_save_options save_options(int64_t step);
ckpt_load_options load_options(int64_t step);  // -1 = latest
ckpt_reader* open_reader(const char* path);

// --- calls that are expected to fail

// `status` and the error must be `code`; the message must hold `words` (NULL: any).  Frees the
// error.
void expect_failed(ckpt_status status, ckpt_error* error, ckpt_status code, const char* words);
// As above, and cause.name must be `name`.
void expect_blamed(ckpt_status status, ckpt_error* error, ckpt_status code, const char* words,
                   const char* name);
void expect_ok(ckpt_status status, ckpt_error* error);

#endif  // CKPT_TESTS_CONFORMANCE_SUITE_H_
