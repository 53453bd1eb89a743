// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Callbacks as a C++ host may write them: they throw.  The library must not let it through.
// Test: callbacks.c
#include "throwing.h"

#include <stdexcept>

int32_t throw_on_event(void*, const ckpt_event*) { throw std::runtime_error("from the host"); }

void throw_on_log(void*, int32_t, const char*, const char*) { throw 42; }

uint64_t throw_on_describe(void*, char*, uint64_t) { throw std::runtime_error("from the host"); }
