// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the crash tests share: a job whose whole state is one number, what a root holds as an
// independent reader sees it, and the shim's log, from which follows what must be there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "process/process.h"
#include "shim/shim.h"

namespace ckpt_test {

// Every rank writes its own part, however small.
inline constexpr char kSmallRuns[] = "plan.min_run=4KiB\nio.stall_timeout_ms=5000\n";
inline constexpr char kSideFile[] = "config.json";

struct CrashOptions {
  std::string root = {};
  std::string config = {};  // on top of kSmallRuns
  int64_t items = 4096;     // floats per rank
  std::function<int(const ckpt_event&)> on_event = {};
};

// One rank: a tensor of its own and, on rank 0, a side file; all follow from `base`.
class CrashJob {
 public:
  CrashJob(Rank& rank, const CrashOptions& options);
  void Set(float base);
  bool Holds(float base) const;
  Outcome Save(int64_t step, float base);
  Outcome Load();  // the newest

  Rank& rank;
  Ctx ctx;

 private:
  std::vector<float> own_;
  std::vector<uint8_t> side_;
  State state_;
};

// A committed state of a root.
struct Saved {
  int64_t step = -1;  // -1: none
  float base = 0;
  bool operator==(const Saved&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Saved& s);

// The newest step (highest sequence) as the independent reader sees it. Throws std::runtime_error
// where a tensor, an index or the side file is not of one base.
Saved NewestByTheFiles(const std::string& root, int ranks, int64_t items = 4096);

// What a root at rest does not have, by name, .ckpt's included; "" when it is tidy.
std::string Leftovers(const std::string& root);

// Removes all steps but `kept`, so that a root of many saves stays small.
void Prune(const std::string& root, int64_t kept);

struct LoggedEvent {
  uint64_t number = 0;
  std::string op, path, to;
  std::string mark = {};  // "kill", "fail", "short" or nothing: carried out
};
std::vector<LoggedEvent> ReadLog(const std::string& file);
const LoggedEvent* Marked(const std::vector<LoggedEvent>& log, const std::string& mark);

// What rank 0 had done of a save when its log ends.
struct Progress {
  enum class Holder { kOld, kNew, kNobody } holder = Holder::kOld;  // of the step's name
  bool renamed = false;    // the new state had the step's name at some time
  bool confirmed = false;  // and the root was fsynced after the last such rename
};
Progress ProgressOf(const std::vector<LoggedEvent>& log, const std::string& root, int64_t step,
                    bool replaces);

// Folders of one test: the root, and the logs of its ranks beside it. In memory where /dev/shm has
// room for `bytes` and TMPDIR does not say otherwise: hundreds of jobs, and what is tested is the
// order of calls, not the disk.
struct CrashPlace {
  explicit CrashPlace(uint64_t bytes = 32 << 20);
  const Scratch scratch;
  const std::string root = scratch / "root";
  std::string Log(int rank) const { return scratch / ("events." + std::to_string(rank)); }
  // From here on, this rank's file calls follow `rules` and are logged, in a log begun anew.
  void Arm(const Rank& rank, const std::string& rules) const;
};

}  // namespace ckpt_test
