// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Who this process is in its job, from the environment of torchrun, Open MPI, PMI or Slurm.
// Test: tests/unit/comm/identity_test.cc
#include <unistd.h>

#include <charconv>
#include <optional>

#include "comm/comm.h"
#include "comm/interfaces.h"
#include "comm/proc.h"
#include "util/text.h"

namespace ckpt {
namespace {

using Get = std::function<const char*(const char*)>;

struct Pair {
  const char* rank;
  const char* size;
};
// Never SLURM_NTASKS: a batch shell inherits it although it is one process.
constexpr Pair kPairs[] = {{"RANK", "WORLD_SIZE"},
                           {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                           {"PMI_RANK", "PMI_SIZE"},
                           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
constexpr const char* kLocalSizes[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                       "MPI_LOCALNRANKS"};

Status Bad(std::string name, std::string message) {
  Cause cause;
  cause.name = std::move(name);
  return Status(Code::kInvalidArgument, std::move(message), std::move(cause));
}

// An empty variable counts as not set, as in shells' ${X:-}.
std::optional<std::string> Find(const Get& get, const char* name) {
  const char* value = get(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

Result<int32_t> Number(const char* name, const std::string& text, int32_t low, int32_t high) {
  int32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || value < low || value > high) {
    return Bad(name, Cat("environment variable ", name, "=\"", Printable(text, 60),
                         "\": must be a whole number from ", low, " to ", high));
  }
  return value;
}

Result<bool> FindPair(const Get& get, const Pair& pair, JobIdentity* id) {
  const auto rank = Find(get, pair.rank);
  const auto size = Find(get, pair.size);
  if (!rank && !size) return false;
  if (!rank || !size) {
    const char* have = rank ? pair.rank : pair.size;
    const char* lacks = rank ? pair.size : pair.rank;
    return Bad(lacks, Cat("environment variable ", have, " is set but ", lacks, " is not"));
  }
  CKPT_ASSIGN_OR_RETURN(id->size, Number(pair.size, *size, 1, 1 << 24));
  CKPT_ASSIGN_OR_RETURN(id->rank, Number(pair.rank, *rank, 0, id->size - 1));
  id->source = Cat(pair.rank, " + ", pair.size);
  return true;
}

// SLURM_PROCID alone is what a batch shell has: there only the complete pair means a job of
// several.
bool InheritedByBatchShell(const Get& get, const Pair& pair) {
  return std::string_view(pair.rank) == "SLURM_PROCID" && !Find(get, pair.size);
}

enum class Hosts { kOne, kSeveral, kNotSaid };

Result<Hosts> CountHosts(const Get& get, int32_t size) {
  Hosts hosts = Hosts::kNotSaid;
  for (const char* name : kLocalSizes) {
    const auto text = Find(get, name);
    if (!text) continue;
    CKPT_ASSIGN_OR_RETURN(const int32_t local, Number(name, *text, 1, 1 << 24));
    if (local == size) return Hosts::kOne;
    hosts = Hosts::kSeveral;
  }
  if (const auto text = Find(get, "SLURM_STEP_NUM_NODES")) {
    CKPT_ASSIGN_OR_RETURN(const int32_t nodes, Number("SLURM_STEP_NUM_NODES", *text, 1, 1 << 24));
    if (nodes == 1) return Hosts::kOne;
    hosts = Hosts::kSeveral;
  }
  return hosts;
}

std::string OrEmpty(const Get& get, const char* name) { return Find(get, name).value_or(""); }

std::optional<std::string> LauncherJobId(const Get& get) {
  if (auto id = Find(get, "CKPT_JOB_ID")) return Cat("user ", *id);
  if (auto run = Find(get, "TORCHELASTIC_RUN_ID")) {
    return Cat("torchelastic ", *run, " ", OrEmpty(get, "MASTER_ADDR"), ":",
               OrEmpty(get, "MASTER_PORT"), " restart ",
               OrEmpty(get, "TORCHELASTIC_RESTART_COUNT"));
  }
  if (auto space = Find(get, "PMIX_NAMESPACE")) return Cat("pmix ", *space);
  const auto job = Find(get, "SLURM_JOB_ID");
  const auto step = Find(get, "SLURM_STEP_ID");
  if (job && step) return Cat("slurm ", *job, ".", *step);
  return std::nullopt;
}

Result<std::string> JobId(const Get& get, bool one_host) {
  if (auto id = LauncherJobId(get)) return *id;
  if (!one_host) {
    return Bad("CKPT_JOB_ID",
               "several hosts and no job id from a launcher: set CKPT_JOB_ID to the same text on "
               "all ranks");
  }
  // Orphans are adopted by process 1, which is nobody's launcher.
  const pid_t parent = ::getppid();
  const auto start = parent > 1 ? StartTime(parent) : std::nullopt;
  if (!start) {
    return Bad("CKPT_JOB_ID", Cat("the ranks have no common parent process (this one's is ", parent,
                                  "): set CKPT_JOB_ID to the same text on all ranks"));
  }
  return Cat("parent ", parent, " started ", *start);
}

Status CheckHosts(Hosts hosts, JobIdentity* id) {
  // Who gives port and token may well run on several hosts, even if no launcher says so.
  const bool reachable = id->port != 0 && !id->token.empty();
  id->one_host = hosts == Hosts::kOne || (hosts == Hosts::kNotSaid && !reachable);
  if (id->one_host) return Status();
  if (id->port == 0) {
    return Bad(
        "CKPT_PORT",
        "the ranks run on several hosts: set CKPT_PORT to a port on which rank 0 can listen");
  }
  if (id->token.empty()) {
    return Bad("CKPT_TOKEN",
               "the ranks run on several hosts: set CKPT_TOKEN to a secret of the job");
  }
  if (hosts == Hosts::kSeveral && id->address.empty()) {
    return Bad("MASTER_ADDR", "the ranks run on several hosts: set MASTER_ADDR to rank 0's host");
  }
  return Status();
}

}  // namespace

Result<JobIdentity> IdentityFromEnvironment(const Get& get) {
  JobIdentity id;
  bool found = false;
  for (const Pair& pair : kPairs) {
    if (found || InheritedByBatchShell(get, pair)) continue;
    CKPT_ASSIGN_OR_RETURN(found, FindPair(get, pair, &id));
  }
  if (!found) id.source = "none: one process";
  if (id.size == 1) {
    id.job_id = Cat("single ", ::getpid());
    return id;
  }
  if (const auto port = Find(get, "CKPT_PORT")) {
    CKPT_ASSIGN_OR_RETURN(const int32_t number, Number("CKPT_PORT", *port, 1, 65535));
    id.port = static_cast<uint16_t>(number);
  }
  id.token = OrEmpty(get, "CKPT_TOKEN");
  id.address = WithoutBrackets(OrEmpty(get, "MASTER_ADDR"));
  id.interface = OrEmpty(get, "CKPT_INTERFACE");
  CKPT_ASSIGN_OR_RETURN(const Hosts hosts, CountHosts(get, id.size));
  CKPT_RETURN_IF_ERROR(CheckHosts(hosts, &id));
  CKPT_ASSIGN_OR_RETURN(id.job_id, JobId(get, id.one_host));
  return id;
}

}  // namespace ckpt
