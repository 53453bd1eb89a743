// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the gate costs when every rank calls, beside MPI_Barrier among the same processes.  An MPI
// program, one process per rank (tools/bench --gate-cost starts it under mpirun); blocks of both
// alternate, so that whatever else the machine does meets both.
//
// A collective's cost here is from the arrival of the last rank to the return of the last: waiting
// for the others is no cost of the gate.  What a rank itself spends in the call is told as well.
// Both have an untimed synchronisation before each round: MPI_Barrier a barrier, the gate the
// phase that ends its last round.
//
// MPI_Barrier polls and yields: where other programs want the cores it gets slower by hundreds of
// times, the gate, which sleeps, does not.  Figures of a busy machine therefore flatter the gate,
// and --limit refuses to judge there.
#include <mpi.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "comm/comm.h"

namespace {

using bench::Fail;
using bench::Now;

constexpr int kBlock = 100;  // rounds
constexpr int kWarmUp = 20;  // rounds that do not count
constexpr double kQuiet = 0.5;

struct Span {
  double start, end;
};

struct Cost {
  double median, p99;
};

Cost CostOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {bench::Summarize(values).median, values[values.size() * 99 / 100]};
}

class Ranks {
 public:
  Ranks() {
    ckpt::GroupOptions options;
    options.library_build = "bench";
    auto made = ckpt::Group::Create(std::move(options));
    if (!made.ok()) Fail("init: " + made.status().message());
    group_ = *made;
  }

  Span Gate() {
    // As many arguments to agree on as a save without options has.
    const ckpt::Call call{ckpt::Op::kAdvise, ++step_, 60000, {{"tag", ""}, {"metadata", ""}}};
    Span span{Now(), 0};
    auto round = group_->Arrive(call, ckpt::Status());
    span.end = Now();
    if (!round.ok()) Fail("gate: " + round.status().message());
    End(*round);
    return span;
  }

  Span Barrier() {
    MPI_Barrier(MPI_COMM_WORLD);
    Span span{Now(), 0};
    MPI_Barrier(MPI_COMM_WORLD);
    span.end = Now();
    return span;
  }

 private:
  void End(uint64_t round) {
    group_->Contribute(round, 1, ckpt::Status(), "", /*commit_vote=*/false);
    if (group_->rank() == 0) {
      if (auto all = group_->Collect(round, 1); !all.ok()) Fail(all.status().message());
      group_->Publish(round, 1, ckpt::Status(), {}, /*last=*/true);
    }
    if (auto end = group_->Await(round, 1); !end.ok()) Fail(end.status().message());
  }

  std::shared_ptr<ckpt::Group> group_;
  int64_t step_ = 0;
};

// On rank 0: prints the line and gives the median cost.
double Report(const char* name, int rank, int size, const std::vector<Span>& mine) {
  const int n = static_cast<int>(2 * mine.size());
  std::vector<Span> all(rank == 0 ? mine.size() * static_cast<size_t>(size) : 0);
  MPI_Gather(mine.data(), n, MPI_DOUBLE, all.data(), n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank != 0) return 0;
  std::vector<double> cost, in_call;
  for (size_t i = 0; i < mine.size(); ++i) {
    Span last = all[i];
    for (size_t r = 0; r < static_cast<size_t>(size); ++r) {
      const Span& span = all[r * mine.size() + i];
      last = {std::max(last.start, span.start), std::max(last.end, span.end)};
      in_call.push_back(span.end - span.start);
    }
    cost.push_back(last.end - last.start);
  }
  const Cost whole = CostOf(std::move(cost)), one = CostOf(std::move(in_call));
  std::printf("%5d  %-12s %8zu  %9.0f %9.0f  %9.0f %9.0f\n", size, name, mine.size(),
              whole.median * 1e6, whole.p99 * 1e6, one.median * 1e6, one.p99 * 1e6);
  return whole.median;
}

// Cores that other programs kept busy just before this one began, by the kernel's average of a
// minute.
double Load() {
  double load = 0;
  if (::getloadavg(&load, 1) != 1) Fail("getloadavg");
  return load;
}

int Run(int rounds, double limit) {
  const double load = Load();
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Ranks ranks;
  std::vector<Span> barriers, gates;
  for (int i = 0; i < kWarmUp; ++i) ranks.Barrier(), ranks.Gate();
  while (static_cast<int>(gates.size()) < rounds) {
    const int block = std::min(kBlock, rounds - static_cast<int>(gates.size()));
    for (int i = 0; i < block; ++i) barriers.push_back(ranks.Barrier());
    for (int i = 0; i < block; ++i) gates.push_back(ranks.Gate());
  }
  const double barrier = Report("MPI_Barrier", rank, size, barriers);
  const double gate = Report("gate", rank, size, gates);
  if (rank != 0) return 0;
  std::printf("%5d  p50 of the gate is %.1f x MPI_Barrier's; load average before: %.2f\n", size,
              gate / barrier, load);
  if (limit > 0 && load > kQuiet) {
    std::printf("%5d  not judged: the machine is busy\n", size);
    return 3;
  }
  if (limit <= 0 || gate <= limit * barrier) return 0;
  std::printf("%5d  more than %.1f x: too slow\n", size, limit);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rounds = 2000;
  double limit = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--rounds" && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (option == "--limit" && i + 1 < argc) {
      limit = std::atof(argv[++i]);
    } else {
      Fail("usage: mpirun -n N gate [--rounds N] [--limit TIMES]");
    }
  }
  if (rounds < 1) Fail("--rounds needs a number above 0");
  const int rc = Run(rounds, limit);
  MPI_Finalize();
  return rc;
}
