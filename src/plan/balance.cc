// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Water filling: a set's bytes raise its least loaded ranks to a common level.  Sets that overlap
// influence each other, so after a first pass from the least to the most freedom each set is taken
// out and filled in again until nothing moves: block coordinate descent on the sum of squared
// loads. Test: tests/unit/plan/balance_test.cc
#include "plan/balance.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ckpt {
namespace {

constexpr int kMaxPasses = 16;
constexpr uint64_t kMaxSteps = 50'000'000;  // set members visited in all passes together

using Load = std::vector<uint64_t>;

// Adds `bytes` to the loads of `ranks`; returns what each got.
std::vector<uint64_t> Fill(const std::vector<int32_t>& ranks, uint64_t bytes, uint64_t min_run,
                           Load* load) {
  std::vector<uint64_t> quota(ranks.size(), 0);
  std::vector<uint32_t> by_load(ranks.size());
  std::iota(by_load.begin(), by_load.end(), 0u);
  const auto of = [&](uint32_t i) -> uint64_t& { return (*load)[static_cast<size_t>(ranks[i])]; };
  std::stable_sort(by_load.begin(), by_load.end(),
                   [&](uint32_t a, uint32_t b) { return of(a) < of(b); });
  const uint64_t most = std::clamp<uint64_t>(bytes / std::max<uint64_t>(min_run, 1), 1,
                                             static_cast<uint64_t>(ranks.size()));
  // The fewest ranks whose common level does not reach the next one's load.
  uint64_t sum = bytes + of(by_load[0]);
  size_t used = 1;
  while (used < most && of(by_load[used]) < sum / used) sum += of(by_load[used++]);
  const uint64_t level = sum / used;
  uint64_t rest = sum % used;
  for (size_t i = 0; i < used; ++i) {
    const uint64_t target = level + (rest > 0 ? 1 : 0);
    if (rest > 0) --rest;
    quota[by_load[i]] = target - of(by_load[i]);
    of(by_load[i]) = target;
  }
  return quota;
}

void TakeOut(const std::vector<int32_t>& ranks, const std::vector<uint64_t>& quota, Load* load) {
  for (size_t i = 0; i < ranks.size(); ++i) (*load)[static_cast<size_t>(ranks[i])] -= quota[i];
}

}  // namespace

Quotas Balance(const RankSets& sets, const std::vector<uint64_t>& bytes, size_t world_size,
               uint64_t min_run) {
  Load load(world_size, 0);
  Quotas quotas(sets.size());
  std::vector<uint32_t> order(sets.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return sets[a].size() < sets[b].size(); });
  uint64_t members = 0;
  for (uint32_t set : order) {
    quotas[set] = Fill(sets[set], bytes[set], min_run, &load);
    if (sets[set].size() > 1) members += sets[set].size();
  }
  bool moved = true;
  for (int pass = 1; pass < kMaxPasses && moved && pass * members < kMaxSteps; ++pass) {
    moved = false;
    for (uint32_t set : order) {
      if (sets[set].size() == 1 || bytes[set] == 0) continue;
      TakeOut(sets[set], quotas[set], &load);
      std::vector<uint64_t> quota = Fill(sets[set], bytes[set], min_run, &load);
      moved = moved || quota != quotas[set];
      quotas[set] = std::move(quota);
    }
  }
  return quotas;
}

}  // namespace ckpt
