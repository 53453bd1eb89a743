// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON that --json gives.
#include "cli/json.h"

namespace cli {

Json NewJson(const char* command, const std::string& path) {
  Json out;
  out["schema"] = 1;
  out["command"] = command;
  out["path"] = path;
  return out;
}

Json StepJson(const ckpt_checkpoint_info& step) {
  Json out;
  out["step"] = step.step;
  out["sequence"] = step.sequence;
  out["tag"] = step.tag;
  out["lineage"] = step.lineage;
  out["layout_note"] = step.layout_note;
  out["folder"] = step.path;
  out["bytes"] = step.bytes;
  out["world_size"] = step.world_size;
  out["pinned"] = (step.flags & CKPT_INFO_PINNED) != 0;
  out["bad"] = (step.flags & CKPT_INFO_BAD) != 0;
  out["damaged"] = step.sequence == 0 && step.created_unix_ns == 0;
  out["created_unix_ns"] = step.created_unix_ns;
  return out;
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cli
