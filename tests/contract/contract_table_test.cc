// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Every fault over the file bootstrap, a part of them over each other one: the verdict is the same
// on all ranks, names those concerned, comes in time, and the next round works. `tools/test
// --contract` prints the table.
#include <cstdio>

#include "contract/table.h"

namespace contract {
namespace {

constexpr int kAtOnce = 4;  // rows side by side: their ranks mostly wait

std::vector<Fault> FaultsOver(const Bootstrap& bootstrap) {
  std::vector<Fault> faults = Faults();
  if (!bootstrap.every_fault) std::erase_if(faults, [](const Fault& f) { return !f.everywhere; });
  return faults;
}

class ContractTable : public testing::TestWithParam<size_t> {};

TEST_P(ContractTable, EveryFaultHasItsVerdictInTimeOnAllRanksAndTheNextRoundWorks) {
  const Bootstrap bootstrap = Bootstraps().at(GetParam());
  const std::vector<Fault> faults = FaultsOver(bootstrap);
  ASSERT_GE(faults.size(), 10u);
  const std::vector<Row> rows = RunAll(bootstrap, faults, kAtOnce);
  std::printf("\n%s%zu of %zu faults over this bootstrap\n\n", Table(rows).c_str(), rows.size(),
              Faults().size());
  ASSERT_EQ(rows.size(), faults.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].fault, faults[i].name) << "a row is missing";
    for (const std::string& wrong : rows[i].wrong)
      ADD_FAILURE() << rows[i].fault << ": " << wrong << "\n"
                    << rows[i].code << " " << rows[i].text;
  }
}

std::string NameOf(const testing::TestParamInfo<size_t>& info) {
  std::string name = Bootstraps().at(info.param).name;
  std::erase_if(name, [](char c) { return !isalpha(static_cast<unsigned char>(c)); });
  return name;
}
INSTANTIATE_TEST_SUITE_P(Over, ContractTable, testing::Range(size_t{0}, Bootstraps().size()),
                         NameOf);

}  // namespace
}  // namespace contract
