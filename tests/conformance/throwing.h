// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Callbacks that throw, for C.
#ifndef CKPT_TESTS_CONFORMANCE_THROWING_H_
#define CKPT_TESTS_CONFORMANCE_THROWING_H_

#include "ckpt.h"

#ifdef __cplusplus
extern "C" {
#endif
int32_t throw_on_event(void* user, const ckpt_event* event);
void throw_on_log(void* user, int32_t level, const char* component, const char* message);
uint64_t throw_on_describe(void* user, char* buf, uint64_t cap);
#ifdef __cplusplus
}
#endif

#endif  // CKPT_TESTS_CONFORMANCE_THROWING_H_
