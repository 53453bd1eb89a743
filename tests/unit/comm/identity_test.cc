// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Who this process is, for a table of environments.
#include <gtest/gtest.h>

#include <map>

#include "comm/comm.h"

namespace ckpt {
namespace {

using Env = std::map<std::string, std::string>;

Result<JobIdentity> Identify(const Env& env) {
  return IdentityFromEnvironment([&env](const char* name) -> const char* {
    const auto it = env.find(name);
    return it == env.end() ? nullptr : it->second.c_str();
  });
}

JobIdentity Good(const Env& env) {
  auto id = Identify(env);
  EXPECT_TRUE(id.ok()) << id.status().message();
  return id.ok() ? *id : JobIdentity{};
}

// The variable that the error names.
std::string Blamed(const Env& env) {
  const auto id = Identify(env);
  if (id.ok()) return "(accepted)";
  EXPECT_EQ(id.status().code(), Code::kInvalidArgument);
  const std::string name = id.status().cause().name;
  EXPECT_NE(id.status().message().find(name), std::string::npos) << id.status().message();
  return name;
}

Env With(Env env, const Env& more) {
  for (const auto& [k, v] : more) env[k] = v;
  return env;
}

const Env kTorch = {{"RANK", "1"}, {"WORLD_SIZE", "4"}};
const Env kSeveral = {{"RANK", "1"},          {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"},
                      {"CKPT_PORT", "4711"},  {"CKPT_TOKEN", "s"}, {"MASTER_ADDR", "h"},
                      {"CKPT_JOB_ID", "mine"}};

Env Without(Env env, const std::string& name) {
  env.erase(name);
  return env;
}

TEST(Identity, NothingSetIsOneProcess) {
  const JobIdentity id = Good({});
  EXPECT_EQ(id.rank, 0);
  EXPECT_EQ(id.size, 1);
  EXPECT_EQ(id.source, "none: one process");
}

TEST(Identity, EachLauncherIsRecognised) {
  const std::pair<const char*, const char*> pairs[] = {
      {"RANK", "WORLD_SIZE"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank, size] : pairs) {
    const JobIdentity id = Good({{rank, "3"}, {size, "8"}});
    EXPECT_EQ(id.rank, 3) << rank;
    EXPECT_EQ(id.size, 8) << rank;
    EXPECT_EQ(id.source, std::string(rank) + " + " + size);
    EXPECT_TRUE(id.one_host);
  }
}

TEST(Identity, TheFirstCompletePairWins) {
  EXPECT_EQ(Good(With(kTorch, {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})).size, 4);
}

TEST(Identity, HalfAPairNamesTheMissingHalf) {
  EXPECT_EQ(Blamed({{"RANK", "1"}}), "WORLD_SIZE");
  EXPECT_EQ(Blamed({{"WORLD_SIZE", "4"}}), "RANK");
  EXPECT_EQ(Blamed({{"OMPI_COMM_WORLD_SIZE", "4"}}), "OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(Blamed({{"SLURM_STEP_NUM_TASKS", "4"}}), "SLURM_PROCID");
}

TEST(Identity, ABatchShellIsOneProcess) {
  EXPECT_EQ(Good({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "64"}}).size, 1);
}

TEST(Identity, NumbersAreParsedStrictly) {
  for (const char* bad : {"x", "1x", " 1", "1 ", "+1", "-1", "4", "99999999999", "0x1", "1.0"}) {
    EXPECT_EQ(Blamed(With(kTorch, {{"RANK", bad}})), "RANK") << bad;
  }
  for (const char* bad : {"0", "-4", "4.", "many"}) {
    EXPECT_EQ(Blamed(With(kTorch, {{"WORLD_SIZE", bad}})), "WORLD_SIZE") << bad;
  }
  for (const char* bad : {"0", "65536", "http"}) {
    EXPECT_EQ(Blamed(With(kTorch, {{"CKPT_PORT", bad}})), "CKPT_PORT") << bad;
  }
  EXPECT_EQ(Blamed(With(kTorch, {{"LOCAL_WORLD_SIZE", "all"}})), "LOCAL_WORLD_SIZE");
}

TEST(Identity, OneHostIsFoundByTheLocalSize) {
  EXPECT_TRUE(Good(With(kTorch, {{"LOCAL_WORLD_SIZE", "4"}})).one_host);
  EXPECT_TRUE(Good(With(kTorch, {{"SLURM_STEP_NUM_NODES", "1"}})).one_host);
  EXPECT_TRUE(Good(With(kTorch, {{"MPI_LOCALNRANKS", "4"}})).one_host);
  EXPECT_FALSE(Good(kSeveral).one_host);
  EXPECT_FALSE(Good(With(Without(kSeveral, "LOCAL_WORLD_SIZE"), {})).one_host);
}

TEST(Identity, SeveralHostsNeedPortTokenAddressAndJobId) {
  for (const char* name : {"CKPT_PORT", "CKPT_TOKEN", "MASTER_ADDR", "CKPT_JOB_ID"}) {
    EXPECT_EQ(Blamed(Without(kSeveral, name)), name);
  }
  const JobIdentity id = Good(kSeveral);
  EXPECT_EQ(id.port, 4711);
  EXPECT_EQ(id.token, "s");
  EXPECT_EQ(id.address, "h");
}

TEST(Identity, TheJobIdIsThatOfTheLauncher) {
  const Env torch = With(kTorch, {{"TORCHELASTIC_RUN_ID", "none"},
                                  {"MASTER_ADDR", "h"},
                                  {"MASTER_PORT", "29500"},
                                  {"TORCHELASTIC_RESTART_COUNT", "2"}});
  const std::string id = Good(torch).job_id;
  for (const char* part : {"none", "h:29500", "2"}) EXPECT_NE(id.find(part), std::string::npos);
  EXPECT_NE(id, Good(With(torch, {{"TORCHELASTIC_RESTART_COUNT", "3"}})).job_id);
  EXPECT_NE(Good(With(torch, {{"CKPT_JOB_ID", "x"}})).job_id, id);
  EXPECT_NE(Good(With(kTorch, {{"PMIX_NAMESPACE", "space"}})).job_id.find("space"),
            std::string::npos);
  EXPECT_NE(Good(With(kTorch, {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "3"}})).job_id.find("7.3"),
            std::string::npos);
  // Else the parent's, which is the same for all ranks.
  EXPECT_EQ(Good(kTorch).job_id, Good(With(kTorch, {{"RANK", "2"}})).job_id);
}

}  // namespace
}  // namespace ckpt
