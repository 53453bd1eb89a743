// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The job, the reader of a root and the reader of the shim's log.
#include "crash/crash.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace ckpt_test {
namespace {

namespace fs = std::filesystem;

std::string TensorName(int rank) { return "of rank " + std::to_string(rank); }

std::vector<float> Content(int rank, int64_t items, float base) {
  std::vector<float> v(items);
  for (int64_t i = 0; i < items; ++i)
    v[i] = base + static_cast<float>(100 * rank) + static_cast<float>(i % 61) / 64;
  return v;
}

std::string SideText(float base) {
  char text[64];
  std::snprintf(text, sizeof text, "{\"base\": \"%012.3f\"}\n", static_cast<double>(base));
  return text;
}

void Require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

// The highest sequence of the steps that have a record.
int64_t NewestStep(const std::string& root) {
  int64_t step = -1;
  uint64_t highest = 0;
  for (const std::string& name : ListOf(root, "step-")) {
    const std::string record = root + "/" + name + "/ckpt.json";
    if (!fs::exists(record)) continue;
    const auto json = nlohmann::json::parse(safetensors::ReadBytes(record));
    if (json.at("sequence").get<uint64_t>() <= highest) continue;
    highest = json.at("sequence");
    step = json.at("step");
  }
  return step;
}

std::string StemInMemory(uint64_t bytes) {
  std::error_code none;
  const fs::space_info space = fs::space("/dev/shm", none);
  if (!none && space.available >= bytes) setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
  return "ckpt-crash";
}

// The name directly below the root, or "".
std::string Below(const std::string& root, const std::string& path) {
  if (path.rfind(root + "/", 0) != 0) return "";
  const std::string name = path.substr(root.size() + 1);
  return name.find('/') == std::string::npos ? name : "";
}

}  // namespace

CrashJob::CrashJob(Rank& r, const CrashOptions& o)
    : rank(r),
      ctx({.root = o.root,
           .config = kSmallRuns + o.config,
           .timeout_ms = 5000,
           .on_event = o.on_event}),
      own_(o.items),
      side_(SideText(0).size()),
      state_(ctx) {
  Require(ctx.init().ok(), "ckpt_init: " + ctx.init().Verdict());
  state_.Whole(TensorName(rank.id()), {o.items}, own_);
  if (rank.is(0)) state_.Blob(CKPT_BLOB_FILE, kSideFile, side_);
}

void CrashJob::Set(float base) {
  const std::vector<float> v = Content(rank.id(), static_cast<int64_t>(own_.size()), base);
  std::copy(v.begin(), v.end(), own_.begin());
  const std::string text = SideText(base);
  Require(text.size() == side_.size(), "the side file's size must stay");
  std::copy(text.begin(), text.end(), side_.begin());
}

bool CrashJob::Holds(float base) const {
  const std::string side(side_.begin(), side_.end());
  return own_ == Content(rank.id(), static_cast<int64_t>(own_.size()), base) &&
         (!rank.is(0) || side == SideText(base));
}

Outcome CrashJob::Save(int64_t step, float base) {
  Set(base);
  return ckpt_test::Save(ctx, state_, step);
}

Outcome CrashJob::Load() {
  std::fill(own_.begin(), own_.end(), kFill);
  std::fill(side_.begin(), side_.end(), uint8_t{0});
  return ckpt_test::Load(ctx, state_);
}

std::ostream& operator<<(std::ostream& out, const Saved& s) {
  return out << "step " << s.step << " of base " << s.base;
}

Saved NewestByTheFiles(const std::string& root, int ranks, int64_t items) {
  Saved s;
  s.step = NewestStep(root);
  if (s.step < 0) return s;
  const std::string folder = StepPath(root, s.step);
  const auto group = safetensors::Open(folder);
  Require(group.tensors.size() == static_cast<size_t>(ranks), folder + ": other tensors");
  s.base = group.tensors.at(TensorName(0)).Floats().at(0);
  for (int r = 0; r < ranks; ++r)
    Require(group.tensors.at(TensorName(r)).Floats() == Content(r, items, s.base),
            folder + ": rank " + std::to_string(r) + " is not of base " + std::to_string(s.base));
  Require(safetensors::ReadBytes(folder + "/" + kSideFile) == SideText(s.base),
          folder + ": another side file");
  return s;
}

std::string Leftovers(const std::string& root) {
  std::string names;
  for (const std::string& name : List(root))
    if (name != ".ckpt" && name != "LATEST" && name.rfind("step-", 0) != 0) names += name + " ";
  for (const std::string& name : List(root + "/.ckpt"))
    if (name != "owner.json") names += ".ckpt/" + name + " ";
  return names;
}

void Prune(const std::string& root, int64_t kept) {
  for (const std::string& name : ListOf(root, "step-"))
    if (name != StepName(kept)) fs::remove_all(root + "/" + name);
}

std::vector<LoggedEvent> ReadLog(const std::string& file) {
  std::vector<LoggedEvent> events;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    LoggedEvent e;
    words >> e.number >> e.op >> e.path;
    for (std::string word; words >> word;) {
      if (word == "->") words >> e.to;
      if (word[0] == '!') e.mark = word.substr(1);
    }
    events.push_back(e);
  }
  return events;
}

const LoggedEvent* Marked(const std::vector<LoggedEvent>& log, const std::string& mark) {
  for (const LoggedEvent& e : log)
    if (e.mark == mark) return &e;
  return nullptr;
}

Progress ProgressOf(const std::vector<LoggedEvent>& log, const std::string& root, int64_t step,
                    bool replaces) {
  using Holder = Progress::Holder;
  const std::string name = StepName(step);
  std::map<std::string, Holder> names;  // what was not there before the save is new
  if (replaces) names[name] = Holder::kOld;
  const auto take = [&](const std::string& from) {
    const auto it = names.find(from);
    if (it == names.end()) return Holder::kNew;
    const Holder holder = it->second;
    names.erase(it);
    return holder;
  };
  Progress progress;
  for (const LoggedEvent& e : log) {
    if (!e.mark.empty()) continue;
    if (e.op == "fsync" && e.path == root && progress.renamed) progress.confirmed = true;
    const std::string from = Below(root, e.path), to = Below(root, e.to);
    if (from.empty() || to.empty()) continue;
    const Holder moved = take(from);
    if (e.op == "exchange") names[from] = take(to);
    names[to] = moved;
    if (from != name && to != name) continue;
    progress.renamed = progress.renamed || (names.count(name) && names[name] == Holder::kNew);
    progress.confirmed = false;
  }
  const bool held = names.count(name) > 0;
  progress.holder = held ? names[name] : replaces ? Holder::kNobody : Holder::kOld;
  return progress;
}

CrashPlace::CrashPlace(uint64_t bytes) : scratch(StemInMemory(bytes)) {}

void CrashPlace::Arm(const Rank& rank, const std::string& rules) const {
  fs::remove(Log(rank.id()));
  shim_reset(("root " + root + "\nlog " + Log(rank.id()) + "\n" + rules).c_str());
}

}  // namespace ckpt_test
