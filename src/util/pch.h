// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What nearly every source includes, precompiled (cmake/options.cmake).  A build without it is the
// same.
#ifndef CKPT_UTIL_PCH_H_
#define CKPT_UTIL_PCH_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "util/status.h"
#include "util/sync.h"
#include "util/text.h"
#include "util/wire.h"

#endif  // CKPT_UTIL_PCH_H_
