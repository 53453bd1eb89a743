// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The words of a failed init.  Test: tests/unit/comm/parts_test.cc
#include "comm/join.h"

#include <algorithm>
#include <map>

#include "util/text.h"

namespace ckpt {
namespace {

constexpr size_t kMaxValues = 4;  // of a setting that differs, told in words

std::string Seconds(Millis ms) {
  return fmt::format("{:.1f} s", static_cast<double>(ms.count()) / 1000);
}

// Everything that must agree, in one order.  A key that a rank does not have counts as unset.
std::vector<Field> Agreed(const HelloMsg& hello) {
  std::vector<Field> out = {{"size", Cat(hello.size)}, {"library build", hello.library_build}};
  out.insert(out.end(), hello.job_config.begin(), hello.job_config.end());
  return out;
}

RankReport Report(int32_t rank, Condition condition) {
  RankReport report;
  report.rank = rank;
  report.condition = condition;
  return report;
}

Cause About(std::string field, int32_t rank) {
  Cause cause;
  cause.field = std::move(field);
  cause.rank = rank;
  return cause;
}

}  // namespace

Status Join::Add(int32_t rank, HelloMsg hello, std::string address) {
  const auto size = static_cast<int32_t>(hellos_.size());
  if (rank < 0 || rank >= size || rank != hello.rank) {
    return Status(Code::kMismatch,
                  Cat("init: rank ", rank, " says that the job has ", hello.size,
                      " ranks, rank 0 that it has ", size),
                  About("size", rank));
  }
  auto& member = hellos_[static_cast<size_t>(rank)];
  if (member) {
    return Status(
        Code::kInvalidArgument,
        Cat("init: rank ", rank, " is taken by process ", member->hello.pid, " on host ",
            member->hello.host, "; process ", hello.pid, " on host ", hello.host, " claims it too"),
        About("rank", rank));
  }
  member = Member{std::move(hello), std::move(address)};
  ++joined_;
  return Status();
}

Status Join::Agreement() const {
  // key -> value -> ranks; keys in the order in which they came up.
  std::vector<std::string> keys;
  std::map<std::string, std::map<std::string, std::vector<int32_t>>> values;
  for (const auto& member : hellos_) {
    if (!member) continue;
    for (const Field& field : Agreed(member->hello)) {
      if (values.find(field.name) == values.end()) keys.push_back(field.name);
      values[field.name][field.value].push_back(member->hello.rank);
    }
  }
  for (const std::string& key : keys) {
    auto& by_value = values[key];
    size_t have = 0;
    for (const auto& [value, ranks] : by_value) have += ranks.size();
    if (have < joined_ && by_value.size() == 1) {
      const std::vector<int32_t> has = by_value.begin()->second;
      for (const auto& member : hellos_) {
        if (!member) continue;
        if (std::find(has.begin(), has.end(), member->hello.rank) == has.end()) {
          by_value["(not set)"].push_back(member->hello.rank);
        }
      }
    }
    if (by_value.size() < 2) continue;
    std::string text = Cat("init: ", Printable(key, 80), " differs:");
    size_t shown = 0;
    std::vector<RankReport> reports;
    const char* separator = " ";
    for (const auto& [value, ranks] : by_value) {
      if (++shown <= kMaxValues) {
        text += Cat(separator, "\"", Printable(value, 80), "\" on ", RankSet(ranks));
      }
      separator = ", ";
      for (int32_t rank : ranks) reports.push_back(Report(rank, Condition::kDisagrees));
    }
    if (shown > kMaxValues) text += Cat(" and ", shown - kMaxValues, " more values");
    return Status(Code::kMismatch, std::move(text), About(key, -1)).WithRanks(std::move(reports));
  }
  return Status();
}

Status Join::Missing(Millis waited) const {
  std::vector<int32_t> missing;
  std::vector<RankReport> reports;
  for (size_t i = 0; i < hellos_.size(); ++i) {
    if (hellos_[i]) continue;
    missing.push_back(static_cast<int32_t>(i));
    reports.push_back(Report(static_cast<int32_t>(i), Condition::kUnknown));
  }
  const std::string which = RankSet(missing);
  return Status(Code::kParticipants,
                Cat("init: ", joined_, " of ", hellos_.size(), " ranks came within ",
                    Seconds(waited), "; missing: ", which,
                    " (all ranks must call init with the same job id and context name; over "
                    "several hosts CKPT_PORT and CKPT_TOKEN are needed)"))
      .WithRanks(std::move(reports));
}

Status Join::Lost(int32_t rank) const {
  const auto& member = hellos_[static_cast<size_t>(rank)];
  RankReport report = Report(rank, Condition::kDead);
  if (member) report.host = member->hello.host;
  return Status(Code::kParticipants,
                Cat("init: rank ", rank, " has joined and then closed its connection (process ",
                    member ? member->hello.pid : 0, " on host ", report.host, ")"),
                About("", rank))
      .WithRanks({report});
}

std::vector<Endpoint> Join::Endpoints() const {
  std::vector<Endpoint> out;
  for (const auto& member : hellos_) {
    const std::string& given = member->hello.exchange_address;
    const std::string& address = given.empty() ? member->address : given;
    const bool local = address.empty() || address.starts_with("127.") || address == "::1";
    out.push_back({local ? "" : address, static_cast<uint16_t>(member->hello.exchange_port)});
  }
  return out;
}

}  // namespace ckpt
