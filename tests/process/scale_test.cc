// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// As many real processes as a small machine bears.
#include <fstream>

#include "process/process.h"

namespace ckpt_test {
namespace {

TEST(Scale, Of256ProcessesEveryOneSavesAndFinalises) {
  Scratch scratch;
  const std::string root = scratch / "root";
  const Result r = launch::Run({.ranks = 256, .deadline_s = 100}, [&](Rank& rank) {
    Trainer t(rank, {.root = root, .timeout_ms = 60'000});
    EXPECT_OK(t.Save(1));
    EXPECT_OK(t.ctx.Finalize());
    std::ofstream(scratch / ("done-" + std::to_string(rank.id())));
  });
  EXPECT_TRUE(r.ok()) << r.report();
  EXPECT_EQ(ListOf(scratch / "", "done-").size(), 256u);
  EXPECT_EQ(ListOf(root, "step-"), std::set{StepName(1)});
}

}  // namespace
}  // namespace ckpt_test
