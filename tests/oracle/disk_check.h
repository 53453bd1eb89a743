// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a step folder with what the reference wants there, byte for byte; of the commit record,
// what follows from the state: all but identity and times.
#pragma once

#include <string>
#include <vector>

#include "oracle/draw.h"

namespace oracle {

struct DiskWant {
  const SaveCase& saved;
  const Step& step;
  const JobOptions& options;
  int64_t number = 0;  // of the step
  std::string layout_note;
};

// Differences, in words; none: all is as it should be.
std::vector<std::string> CheckFolder(const std::string& folder, const DiskWant& want);

}  // namespace oracle
