// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// make_seeds FOLDER: writes every target's real messages to FOLDER/<target>/seed-<name>.  Run by
// hand after the wire format has changed; replay_test says when that is due.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fuzz/target.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_seeds FOLDER\n");
    return 2;
  }
  for (const auto& target : ckpt::fuzz::Targets()) {
    const auto folder = std::filesystem::path(argv[1]) / target.name;
    std::filesystem::create_directories(folder);
    for (const auto& [name, bytes] : target.seeds()) {
      std::ofstream(folder / ("seed-" + name), std::ios::binary) << bytes;
    }
  }
  return 0;
}
