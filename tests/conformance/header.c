/* SPDX-FileCopyrightText: the ckpt authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The public header before anything else, by each C and C++ standard (CMakeLists.txt). */
#include "ckpt.h"

uint32_t dtype_of_this_header(void);
uint32_t dtype_of_this_header(void) { return CKPT_DTYPE(2, 32) + CKPT_HEADER_ABI; }
