// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Hundreds of ranks in one process, each with its own monitor and connections over the loopback.
#include <sys/resource.h>

#include "unit/comm/world.h"

namespace ckpt {
namespace {

using namespace testing;  // NOLINT

TEST(Scale256, EveryRankOf256JoinsAndGetsTheSameResults) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  ASSERT_GE(files.rlim_cur, 8192u) << "256 ranks need about 20 descriptors each";
  World w(256, [](int32_t, GroupOptions& o) {
    o.heartbeat = Millis(2000);
    o.contract_timeout = Millis(60000);
  });
  for (const Status& s : w.status) ASSERT_TRUE(s.ok()) << s.message();
  for (int64_t step = 1; step <= 2; ++step) {
    w.All([step](int32_t, Group& group) {
      std::string sum;
      const Status s = SumOfRanks(group, step, &sum);
      EXPECT_TRUE(s.ok()) << s.message();
      EXPECT_EQ(sum, std::to_string(255 * 256 / 2));
    });
  }
}

}  // namespace
}  // namespace ckpt
