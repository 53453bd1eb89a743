// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// ckpt_init itself: too few ranks, one rank twice, an earlier launch's worker, another
// configuration, another build.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "contract/table.h"

namespace contract {
namespace {

using ckpt_test::Ctx;

Outcome Init(const CtxOptions& options) { return Ctx(options).init(); }

void TooFew(Player& p) {
  if (p.is(2)) return p.WaitForVerdicts();
  p.Witness([&] { return Init(p.Options()); });
}

// One of the processes 2 and 3 gets the rank and hears who is missing, the other one is refused.
void TwoClaimOneRank(Player& p) {
  if (p.is(0) || p.is(1)) return void(p.Witness([&] { return Init(p.Options()); }));
  const Outcome o = Init(p.Options());
  const bool refused =
      o.status == CKPT_ERR_INVALID_ARGUMENT && o.Says("rank 2 is taken by process");
  EXPECT_TRUE(refused || o.status == CKPT_ERR_PARTICIPANTS) << o;
  if (refused) p.rank.Notify("refused");
  p.rank.WaitFor("refused");
}

// The process with the number 4 is a worker of an earlier launch: it must not get in, nor disturb.
void StaleWorker(Player& p) {
  if (p.is(4)) {
    CtxOptions options = p.Options();
    options.timeout_ms = 1000;
    const Outcome refused = Init(options);
    EXPECT_EQ(refused.status, CKPT_ERR_PARTICIPANTS) << refused;
    EXPECT_EQ(refused.RankSet(), std::set<int>{0}) << refused;
    p.rank.Notify("refused");
    return;
  }
  // The others come while it tries, and are complete only once it has given up.
  if (p.is(3)) p.rank.WaitFor("refused");
  p.Witness([&] {
    Ctx ctx(p.Options());
    std::vector<float> data(16, 1.0f);
    if (!ctx.init().ok()) return ctx.init();
    ckpt_test::State state(ctx);
    state.Whole("x", {16}, data);
    return Save(ctx, state, kStep);
  });
}

void OtherConfig(Player& p) {
  CtxOptions options = p.Options();
  options.config += p.is(3) ? "\nkeep_last=3" : "\nkeep_last=2";
  p.Witness([&] { return Init(options); });
}

// Rank 3 opens a copy of the library in which the build's name is another.
void OtherBuild(Player& p) {
  if (p.is(3)) {
    const char* library = std::getenv("CKPT_LIB");
    std::string bytes(std::filesystem::file_size(library), '\0');
    std::ifstream(library, std::ios::binary).read(bytes.data(), std::ssize(bytes));
    size_t changed = 0;
    const std::string build = std::string("ckpt ") + CKPT_TEST_VERSION;
    for (size_t at = 0; (at = bytes.find(build, at)) != std::string::npos; at += build.size()) {
      bytes[at + build.size() - 1] = 'Z';
      ++changed;
    }
    ASSERT_GT(changed, 0u) << "the library does not hold \"" << build << "\"";
    const std::string copy = p.rank.folder() + "/libckpt-other.so";
    std::ofstream(copy, std::ios::binary) << bytes;
    setenv("CKPT_LIB", copy.c_str(), 1);
  }
  p.rank.Barrier("the copy is made");  // 100 MB under the sanitizers: not part of init's deadline
  p.Witness([&] { return Init(p.Options()); });
}

}  // namespace

std::vector<Fault> InitFaults() {
  return {
      {.name = "init: a rank does not come",
       .body = TooFew,
       .ends = Ends::kByDeadline,
       .code = CKPT_ERR_PARTICIPANTS,
       .named = {2},
       .get = {0, 1, 3},
       .deadline_ms = 1500,
       .everywhere = true,
       .joined = false},
      {.name = "init: rank 0 does not come",
       .body =
           [](Player& p) {
             if (p.is(0)) return p.WaitForVerdicts();
             p.Witness([&] { return Init(p.Options()); });
           },
       .ends = Ends::kByDeadline,
       .code = CKPT_ERR_PARTICIPANTS,
       .named = {0},
       .get = {1, 2, 3},
       .deadline_ms = 1500,
       .everywhere = true,
       .joined = false},
      {.name = "init: two processes claim one rank",
       .body = TwoClaimOneRank,
       .ends = Ends::kByDeadline,
       .code = CKPT_ERR_PARTICIPANTS,
       .named = {3},
       .get = {0, 1},
       .next = Next::kNewJob,
       .deadline_ms = 1500,
       .everywhere = true,
       .joined = false,
       .claims = {{0}, {1}, {2}, {2}}},
      {.name = "init: a worker of an earlier launch",
       .body = StaleWorker,
       .ends = Ends::kByDeadline,
       .next = Next::kNewJob,
       .joined = false,
       .claims = {{0}, {1}, {2}, {3}, {3, 0}}},
      {.name = "init: another job-wide setting",
       .body = OtherConfig,
       .code = CKPT_ERR_MISMATCH,
       .named = {0, 1, 2, 3},
       .says = "\"3\" on rank 3",
       .everywhere = true,
       .joined = false},
      {.name = "init: another build of the library",
       .body = OtherBuild,
       .code = CKPT_ERR_MISMATCH,
       .named = {0, 1, 2, 3},
       .says = "library build",
       .next = Next::kNewJob,
       .joined = false},
  };
}

}  // namespace contract
