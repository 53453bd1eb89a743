// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// launch -n N [--deadline S] [--env K=V]... -- CMD ARGS: runs CMD as N ranks. Prints each rank's
// output in rank order; exit 0 if all gave 0, 124 on a hang, else the first failed rank's code
// (128 + signal where it was killed). Covered by the Cli tests of launch_test.cc.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "launch/launch.h"

namespace {

int Usage() {
  std::fprintf(stderr, "usage: launch -n N [--deadline S] [--env K=V]... -- CMD ARGS\n");
  return 2;
}

int ExitCode(const launch::Result& r) {
  if (r.hang()) return launch::kHangCode;
  for (int i = 0; i < r.size(); ++i)
    if (!r.rank(i).good()) return r.rank(i).exited ? r.rank(i).exit_code : 128 + r.rank(i).signal;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  launch::Options options{.ranks = 0, .deadline_s = 60};
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; i += 2) {
    if (i + 1 >= argc) return Usage();
    const std::string option = argv[i], value = argv[i + 1];
    const size_t equals = value.find('=');
    if (option == "-n")
      options.ranks = std::atoi(value.c_str());
    else if (option == "--deadline")
      options.deadline_s = std::atof(value.c_str());
    else if (option == "--env" && equals != std::string::npos)
      options.env[value.substr(0, equals)] = value.substr(equals + 1);
    else
      return Usage();
  }
  if (options.ranks < 1 || options.deadline_s <= 0 || i + 1 >= argc) return Usage();

  const launch::Result r =
      launch::RunCommand(options, std::vector<std::string>(argv + i + 1, argv + argc));
  if (r.ok()) {
    for (int k = 0; k < r.size(); ++k) std::fputs(r.log(k).c_str(), stdout);
  } else {
    std::fputs(r.report().c_str(), stderr);
  }
  return ExitCode(r);
}
