// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The C ABI from other languages (README.md): each client runs as ranks of a job, its view of the
// structs is compared with the C compiler's, and what it saved is read by stock safetensors.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <stdexcept>

#include "launch/launch.h"

namespace {

using launch::Scratch;
using Command = std::vector<std::string>;

const std::string kTools = CLIENTS_TOOLS, kSources = CLIENTS_SOURCES;

// What a command prints. Throws with it if the command fails.
std::string Output(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start " + command);
  std::string text;
  char part[4096];
  while (size_t n = fread(part, 1, sizeof part, pipe)) text.append(part, n);
  const int status = pclose(pipe);
  if (status != 0) throw std::runtime_error(command + ": " + text);
  return text;
}

// What a tool of tools/ has made; throws with the tool's own words if it has not.
std::string Made(const std::string& tool) {
  std::string path = Output(kTools + "/" + tool + " --find");
  return path.substr(0, path.find('\n'));
}

Command Python(const std::string& script) {
  return {Made("python_env") + "/bin/python", kSources + "/python/" + script};
}

Command ClientOf(const std::string& language) {
  if (language == "Python") return Python("train.py");
  if (language == "Rust") return {Made("rust_client")};
  if (language == "Julia")  // -O1: most of its time is compiling
    return {Made("julia_env") + "/bin/julia", "--startup-file=no", "-O1",
            kSources + "/julia/client.jl"};
  throw std::runtime_error("no client in " + language);
}

std::string Shell(const Command& command) {
  std::string line = "PYTHONDONTWRITEBYTECODE=1";
  for (const std::string& word : command) line += " '" + word + "'";
  return line;
}

// Runs a client as that many ranks.
void Job(int ranks, Command command, const Command& arguments) {
  command.insert(command.end(), arguments.begin(), arguments.end());
  const launch::Result r = launch::RunCommand(
      {.ranks = ranks, .deadline_s = 60, .env = {{"PYTHONDONTWRITEBYTECODE", "1"}}}, command);
  EXPECT_TRUE(r.ok()) << Shell(command) << "\n" << r.report();
}

std::set<std::string> Lines(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

bool IsConstant(const std::string& line) { return line.rfind("CKPT_", 0) == 0; }

class Client : public testing::TestWithParam<std::string> {
 protected:
  const Command client_ = ClientOf(GetParam());
  const Scratch scratch_;
  const std::string root_ = scratch_ / "root";
};

INSTANTIATE_TEST_SUITE_P(Python, Client, testing::Values("Python"));
INSTANTIATE_TEST_SUITE_P(Rust, Client, testing::Values("Rust"));
INSTANTIATE_TEST_SUITE_P(Julia, Client, testing::Values("Julia"));

// Of the constants a client may leave some out.
TEST_P(Client, SeesEveryStructAsTheCCompilerDoes) {
  Command client = client_;
  client.push_back("--layout");
  const auto wanted = Lines(Output(CLIENTS_LAYOUT)), found = Lines(Output(Shell(client)));
  for (const std::string& line : found) EXPECT_TRUE(wanted.count(line)) << "wrong: " << line;
  for (const std::string& line : wanted)
    EXPECT_TRUE(IsConstant(line) || found.count(line)) << "missing: " << line;
}

TEST_P(Client, SavesLoadsAndGoesOnAfterAMismatch) { Job(2, client_, {"train", root_, "3"}); }

TEST_P(Client, H06_TheStockLoaderOpensWhatItSaved) {
  Job(2, client_, {"save", root_, "4"});
  Job(1, Python("stock.py"), {root_ + "/step-000000000004", "4"});
}

TEST(StockLoader, G10_OpensAFileOfEmptyTensors) {
  const Scratch scratch;
  Job(2, Python("empty.py"), {scratch / "root"});
}

// Who saves on two ranks, who loads that on one, and who on two.
void PassOn(const std::string& saver, const std::string& on_one, const std::string& on_two) {
  const Scratch scratch;
  const std::string root = scratch / "root";
  Job(2, ClientOf(saver), {"save", root, "5"});
  Job(1, ClientOf(on_one), {"load", root, "5", "2"});
  Job(2, ClientOf(on_two), {"load", root, "5", "2"});
}

TEST(Languages, WhatPythonSavedTheOthersLoad) { PassOn("Python", "Rust", "Julia"); }
TEST(Languages, WhatRustSavedTheOthersLoad) { PassOn("Rust", "Julia", "Python"); }
TEST(Languages, WhatJuliaSavedTheOthersLoad) { PassOn("Julia", "Python", "Rust"); }

TEST(Languages, WhatOneRankSavedThreeLoadWithoutTheBlobsOfTheOtherTwo) {
  const Scratch scratch;
  const std::string root = scratch / "root";
  Job(1, ClientOf("Rust"), {"save", root, "6"});
  Job(3, ClientOf("Python"), {"load", root, "6", "1"});
}

}  // namespace
