// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The build's name, in a source of its own: an array that no optimiser takes apart, so that
// `strings libckpt.so` shows it and a test can make another build of a copy.
// Test: tests/contract ("init: another build of the library")
#include "core/session.h"

namespace ckpt {

const char kLibraryBuild[] = CKPT_BUILD_ID;

}  // namespace ckpt
