// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A plan as shim.h describes it: what to do at which event. Pure; covered by shim_test.cc.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace shim {

struct Event {
  uint64_t number = 0;
  std::string op;
  std::string path;
  std::string to = {};  // the second name of a rename or link
};

enum class Action { kKill, kKillAll, kFail, kShort, kDelay };

struct Rule {
  Action action = Action::kKill;
  int error = 0;       // kFail
  uint64_t bytes = 0;  // kShort
  int min_ms = 0, max_ms = 0;
  uint64_t at = 0;  // an event's number; 0: chosen by what follows
  uint64_t from = 0;
  std::set<std::string> ops = {};
  std::string path = {}, end = {};
  uint64_t nth = 1;
  bool every = false;
  uint64_t seen = 0;  // events that fitted so far

  bool Hits(const Event& event);  // counts
};

struct Plan {
  std::string root, log;
  unsigned seed = 1;
  std::vector<Rule> rules;

  bool Covers(const std::string& path) const;  // is below `root`
  bool Names(const std::string& op) const;     // a rule does
};

// Throws std::invalid_argument that quotes the line.
Plan ParsePlan(const std::string& text);

}  // namespace shim
