// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What became of the ranks, in words, and the folder of a test. Covered by launch_test.cc.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "launch/launch.h"

namespace launch {
namespace {

constexpr size_t kLogShown = 64 * 1024;

std::string How(const RankResult& r) {
  std::string how;
  if (r.hung)
    how = "hung, killed at the deadline";
  else if (r.exited)
    how = "exit " + std::to_string(r.exit_code);
  else
    how = "killed by signal " + std::to_string(r.signal) + " (" + strsignal(r.signal) + ")" +
          (r.by_plan ? " as planned" : "");
  if (!r.waiting.empty()) how += ", in " + r.waiting;
  return how;
}

void PrintLog(std::ostream& out, int rank, const std::string& log) {
  const size_t skip = log.size() > kLogShown ? log.size() - kLogShown : 0;
  if (skip) out << "rank " << rank << "| (" << skip << " bytes left out)\n";
  std::istringstream lines(log.substr(skip));
  for (std::string line; std::getline(lines, line);) out << "rank " << rank << "| " << line << "\n";
}

}  // namespace

bool Result::hang() const {
  for (const RankResult& r : ranks_)
    if (r.hung) return true;
  return false;
}

int Result::code() const {
  if (hang()) return kHangCode;
  for (const RankResult& r : ranks_)
    if (!r.good()) return 1;
  return 0;
}

std::string Result::get(int rank, const std::string& key) const {
  const auto& values = ranks_.at(rank).values;
  const auto it = values.find(key);
  return it == values.end() ? "" : it->second;
}

std::string Result::summary() const {
  std::ostringstream out;
  out << "launch: " << size() << " ranks, "
      << (hang() ? "hang"
          : ok() ? "ok"
                 : "failed")
      << " after " << seconds_ << " s";
  if (hang()) out << " (deadline " << deadline_s_ << " s)";
  for (int i = 0; i < size(); ++i) out << "; rank " << i << ": " << How(ranks_[i]);
  return out.str();
}

std::string Result::report() const {
  std::ostringstream out;
  out << summary() << "\n";
  for (int i = 0; i < size(); ++i) {
    out << "--- rank " << i << ": " << How(ranks_[i]) << "\n";
    PrintLog(out, i, ranks_[i].log);
  }
  return out.str();
}

Scratch::Scratch(const std::string& stem) {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base && *base ? base : "/tmp") + "/" + stem + "-XXXXXX";
  if (!mkdtemp(path_.data())) throw std::runtime_error("mkdtemp " + path_);
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace launch
