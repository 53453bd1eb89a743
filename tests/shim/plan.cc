// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads plans and matches events against their rules.
#include "shim/plan.h"

#include <cstring>
#include <sstream>
#include <stdexcept>

namespace shim {
namespace {

const std::set<std::string>& Ops() {
  static const std::set<std::string> ops = {
      "create", "write", "fsync",  "truncate",  "allocate", "mkdir", "unlink",
      "rmdir",  "link",  "rename", "noreplace", "exchange", "close", "read"};
  return ops;
}

uint64_t Number(const std::string& word) {
  size_t used = 0;
  const uint64_t value = std::stoull(word, &used);
  if (used != word.size()) throw std::invalid_argument("not a number: " + word);
  return value;
}

int Errno(const std::string& name) {
  for (int error = 1; error < 200; ++error) {
    const char* known = strerrorname_np(error);
    if (known != nullptr && name == known) return error;
  }
  throw std::invalid_argument("no errno " + name);
}

std::set<std::string> OpSet(const std::string& list) {
  std::set<std::string> ops;
  std::istringstream in(list);
  for (std::string op; std::getline(in, op, ',');) {
    if (!Ops().count(op)) throw std::invalid_argument("no op " + op);
    ops.insert(op);
  }
  return ops;
}

void Choose(const std::string& word, Rule* rule) {
  if (word == "every") {
    rule->every = true;
    return;
  }
  const size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (value.empty()) throw std::invalid_argument("not a choice: " + word);
  if (key == "at") return void(rule->at = Number(value));
  if (key == "from") return void(rule->from = Number(value));
  if (key == "nth") return void(rule->nth = Number(value));
  if (key == "op") return void(rule->ops = OpSet(value));
  if (key == "path") return void(rule->path = value);
  if (key == "end") return void(rule->end = value);
  throw std::invalid_argument("no choice " + key);
}

void SetDelay(const std::string& word, Rule* rule) {
  const size_t dash = word.find('-');
  rule->min_ms = static_cast<int>(Number(word.substr(0, dash)));
  rule->max_ms =
      dash == std::string::npos ? rule->min_ms : static_cast<int>(Number(word.substr(dash + 1)));
}

Rule ParseRule(const std::string& action, std::istringstream& words) {
  Rule rule;
  std::string argument;
  if (action == "fail" || action == "short" || action == "delay") words >> argument;
  if (action == "kill") {
    rule.action = Action::kKill;
  } else if (action == "killall") {
    rule.action = Action::kKillAll;
  } else if (action == "fail") {
    rule.action = Action::kFail;
    rule.error = Errno(argument);
  } else if (action == "short") {
    rule.action = Action::kShort;
    rule.bytes = Number(argument);
  } else if (action == "delay") {
    rule.action = Action::kDelay;
    SetDelay(argument, &rule);
  } else {
    throw std::invalid_argument("no action " + action);
  }
  for (std::string word; words >> word;) Choose(word, &rule);
  return rule;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

bool Rule::Hits(const Event& event) {
  if (at != 0) return event.number == at;
  if (event.number < from) return false;
  if (!ops.empty() && !ops.count(event.op)) return false;
  const bool named = event.path.find(path) != std::string::npos ||
                     (!event.to.empty() && event.to.find(path) != std::string::npos);
  const bool ended = EndsWith(event.path, end) || (!event.to.empty() && EndsWith(event.to, end));
  if (!named || !ended) return false;
  return ++seen == nth || every;
}

bool Plan::Covers(const std::string& path) const {
  return path.compare(0, root.size(), root) == 0 &&
         (path.size() == root.size() || path[root.size()] == '/');
}

bool Plan::Names(const std::string& op) const {
  for (const Rule& rule : rules)
    if (rule.ops.count(op)) return true;
  return false;
}

Plan ParsePlan(const std::string& text) {
  Plan plan;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first[0] == '#') continue;
    try {
      std::string value;
      if (first == "root" || first == "log" || first == "seed") words >> value;
      if (first == "root") {
        plan.root = value;
      } else if (first == "log") {
        plan.log = value;
      } else if (first == "seed") {
        plan.seed = static_cast<unsigned>(Number(value));
      } else {
        plan.rules.push_back(ParseRule(first, words));
      }
    } catch (const std::exception& e) {
      throw std::invalid_argument("shim plan: \"" + line + "\": " + e.what());
    }
  }
  if (plan.root.empty() || plan.root[0] != '/') {
    throw std::invalid_argument("shim plan: no absolute root");
  }
  return plan;
}

}  // namespace shim
