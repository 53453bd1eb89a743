// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a row find each other: the variables that each launcher sets.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "contract/table.h"

namespace contract {
namespace {

using launch::Env;

std::string Text(int64_t n) { return std::to_string(n); }

// What the launcher of the tests sets, off.
Env Nothing() {
  return {{"RANK", ""},
          {"WORLD_SIZE", ""},
          {"LOCAL_RANK", ""},
          {"CKPT_JOB_ID", ""},
          {"LOCAL_WORLD_SIZE", ""}};
}

Env With(Env env, const Env& more) {
  for (const auto& [name, value] : more) env[name] = value;
  return env;
}

std::string JobId(const std::string& job, const Claim& claim) {
  return job + "-" + Text(claim.launch);
}

Env File(const Claim& c, const std::string& job) {
  return {{"RANK", Text(c.rank)},
          {"WORLD_SIZE", Text(kRanks)},
          {"LOCAL_WORLD_SIZE", Text(kRanks)},
          {"CKPT_JOB_ID", JobId(job, c)}};
}

// A port that nothing listens on, below those that the kernel gives to outgoing connections. One
// per row and process, tried by binding.
std::string FreePort(const std::string& job) {
  const size_t first = std::hash<std::string>{}(job);
  for (size_t i = 0; i < 1000; ++i) {
    const auto port = static_cast<uint16_t>(20'000 + (first + 7 * i) % 12'000);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    const bool free = bind(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    close(fd);
    if (free) return Text(port);
  }
  throw std::runtime_error("no free port");
}

// As over several hosts: nothing says that they are on one.
Env PortAndToken(const Claim& c, const std::string& job) {
  static std::map<std::string, std::string> ports;
  if (!ports.count(job)) ports[job] = FreePort(job);
  return With(Nothing(), {{"RANK", Text(c.rank)},
                          {"WORLD_SIZE", Text(kRanks)},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"CKPT_JOB_ID", JobId(job, c)},
                          {"CKPT_PORT", ports[job]},
                          {"CKPT_TOKEN", "token of " + job}});
}

Env Torchrun(const Claim& c, const std::string& job) {
  return With(Nothing(), {{"RANK", Text(c.rank)},
                          {"WORLD_SIZE", Text(kRanks)},
                          {"LOCAL_RANK", Text(c.rank)},
                          {"LOCAL_WORLD_SIZE", Text(kRanks)},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RUN_ID", job},
                          {"TORCHELASTIC_RESTART_COUNT", Text(c.launch)}});
}

Env Slurm(const Claim& c, const std::string& job) {
  return With(Nothing(), {{"SLURM_PROCID", Text(c.rank)},
                          {"SLURM_STEP_NUM_TASKS", Text(kRanks)},
                          {"SLURM_STEP_NUM_NODES", "1"},
                          {"SLURM_JOB_ID", job},
                          {"SLURM_STEP_ID", Text(c.launch)}});
}

// No job id: that is the common parent process.
Env Pmi(const Claim& c, const std::string&) {
  return With(Nothing(),
              {{"PMI_RANK", Text(c.rank)}, {"PMI_SIZE", Text(kRanks)}, {"MPI_LOCALNRANKS", "4"}});
}

// What an Open MPI's mpirun gave its ranks, in full. The ranks of a row are not its children: it
// would kill them all when one dies, and the row is about what the others are told.
const std::vector<Env>& OfMpirun() {
  static const std::vector<Env> ranks = [] {
    const launch::Scratch scratch("mpirun");
    const std::string command =
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n " +
        Text(kRanks) + " sh -c 'env > \"" + scratch.path() +
        "/$OMPI_COMM_WORLD_RANK\"' </dev/null >\"" + scratch.path() + "/log\" 2>&1";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("mpirun: " + command);
    std::vector<Env> out(kRanks);
    for (int i = 0; i < kRanks; ++i) {
      std::ifstream in(scratch / Text(i));
      for (std::string line; std::getline(in, line);) {
        const size_t equals = line.find('=');
        const std::string name = line.substr(0, equals);
        for (const char* prefix : {"OMPI_", "PMIX_", "PMI_"})
          if (name.rfind(prefix, 0) == 0 && equals != std::string::npos)
            out[i][name] = line.substr(equals + 1);
      }
      if (!out[i].count("OMPI_COMM_WORLD_SIZE")) throw std::runtime_error("mpirun set no size");
    }
    return out;
  }();
  return ranks;
}

// The namespace is what mpirun numbers its jobs with, so that each row is a job of its own.
Env Mpirun(const Claim& c, const std::string& job) {
  Env env = With(Nothing(), OfMpirun().at(c.rank));
  env["PMIX_NAMESPACE"] += "." + JobId(job, c);
  return env;
}

}  // namespace

std::vector<Bootstrap> Bootstraps() {
  return {
      {"file", true, File},
      {"port and token", false, PortAndToken},
      {"mpirun", false, Mpirun},
      {"torchrun's variables", false, Torchrun},
      {"Slurm's variables", false, Slurm},
      {"PMI's variables", false, Pmi},
  };
}

std::vector<Fault> Faults() {
  std::vector<Fault> all;
  for (const auto& part : {GateFaults(), ArgumentFaults(), InitFaults(), DataFaults()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace contract
