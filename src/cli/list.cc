// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// `ckpt list`: the committed steps of a root, oldest first.
#include <nlohmann/json.hpp>

#include "cli/checkpoint.h"
#include "cli/json.h"
#include "cli/text.h"

namespace cli {
namespace {

std::string Human(const std::vector<ckpt_checkpoint_info>& steps) {
  std::vector<std::vector<std::string>> rows = {
      {"STEP", "SAVED", "RANKS", "SIZE", "TAG", "LAYOUT", "LINEAGE", "MARKS"}};
  const auto or_dash = [](const char* text) { return *text == '\0' ? "-" : Escaped(text); };
  for (const ckpt_checkpoint_info& s : steps) {
    const bool pinned = (s.flags & CKPT_INFO_PINNED) != 0, bad = (s.flags & CKPT_INFO_BAD) != 0;
    const bool damaged = s.sequence == 0 && s.created_unix_ns == 0;
    rows.push_back({std::to_string(s.step), UtcTime(s.created_unix_ns),
                    std::to_string(s.world_size), HumanBytes(s.bytes), or_dash(s.tag),
                    or_dash(s.layout_note), or_dash(s.lineage),
                    damaged         ? "damaged"
                    : pinned && bad ? "pinned, bad"
                    : pinned        ? "pinned"
                    : bad           ? "bad"
                                    : "-"});
  }
  return Table(rows, {0, 2, 3});
}

}  // namespace

Exit List(const Request& request) {
  Checkpoint checkpoint;
  if (const Exit exit = checkpoint.Open(request); exit != kGood) return exit;
  const auto steps =
      request.step ? std::vector<ckpt_checkpoint_info>{checkpoint.Opened()} : checkpoint.Steps();
  if (!request.json) return Write(Human(steps));
  Json out = NewJson("list", request.path);
  out["steps"] = Json::array();
  for (const ckpt_checkpoint_info& step : steps) out["steps"].push_back(StepJson(step));
  return Write(Dump(out));
}

}  // namespace cli
