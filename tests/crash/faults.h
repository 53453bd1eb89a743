// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What faults_test.cc breaks things with (a file size limit, a small disk, an fsync that fails),
// and the job that it breaks.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "process/process.h"
#include "shim/shim.h"

namespace ckpt_test {

inline constexpr int64_t kMiB = (1 << 20) / sizeof(float);  // in items
inline constexpr int64_t kSmall = kMiB / 2;  // above plan.min_run: written by its holder
inline constexpr int64_t kBig = 16 * kMiB;   // sixteen chunks: with SlowWrites a second or so
inline constexpr char kConfig[] = "io.stall_timeout_ms=2000\nio.block=1MiB\n";

using OnEvent = std::function<int(const ckpt_event&)>;

// One rank of a job: a context and this rank's own tensor.
struct Job {
  Job(Rank& r, const std::string& root, int64_t items = kSmall, OnEvent on_event = {},
      uint32_t flags = 0)
      : rank(r),
        ctx({.root = root,
             .config = kConfig,
             .timeout_ms = 3000,
             .flags = flags,
             .on_event = on_event}),
        own(items),
        state(Made(ctx)) {
    state.Whole("of rank " + std::to_string(rank.id()), {items}, own);
  }
  // A pattern of this rank and step.
  std::vector<float> Pattern(float base) const {
    std::vector<float> v(1021);
    for (size_t i = 0; i < v.size(); ++i)
      v[i] = base + 0.001f * static_cast<float>(i) + 0.25f * static_cast<float>(rank.id());
    return v;
  }
  void Set(float base) {
    const std::vector<float> pattern = Pattern(base);
    for (size_t i = 0; i < own.size(); i += pattern.size())
      std::copy_n(pattern.begin(), std::min(pattern.size(), own.size() - i), own.begin() + i);
  }
  bool Holds(float base) const {
    const std::vector<float> pattern = Pattern(base);
    bool same = true;
    for (size_t i = 0; i < own.size(); i += pattern.size())
      same = same &&
             std::equal(own.begin() + i, own.begin() + std::min(i + pattern.size(), own.size()),
                        pattern.begin());
    return same;
  }
  Outcome Save(int64_t step) {
    Set(static_cast<float>(step));
    rank.Barrier("ready to save");  // filling large memory is not what the deadline is for
    return ckpt_test::Save(ctx, state, step);
  }
  // What a failed save owes: rank 0 sees at once that nothing is left of it, all get one verdict.
  void ExpectNothingLeft(const std::string& root, const Outcome& o, const std::string& key = "o") {
    if (rank.is(0)) {
      ExpectNoLeftovers(root);
      EXPECT_EQ(ListOf(root, "step-"), std::set{StepName(1)});
    }
    Publish(rank, key, o);
  }
  void ExpectStep1LoadsAndTheNextSaveWorks(int64_t next) {
    std::fill(own.begin(), own.end(), kFill);
    rank.Barrier("ready to load");
    const Outcome o = Load(ctx, state);
    EXPECT_OK(o);
    EXPECT_EQ(o.result.step, 1);
    EXPECT_TRUE(Holds(1));
    EXPECT_OK(Save(next));
  }
  static Ctx& Made(Ctx& ctx) {
    if (!ctx.init().ok()) throw std::runtime_error("ckpt_init: " + ctx.init().Verdict());
    return ctx;
  }
  Rank& rank;
  Ctx ctx;
  std::vector<float> own;
  State state;
};

// From here on each write of this rank takes a while: what is to happen in the middle of its save
// does.
inline void SlowWrites(const std::string& root) {
  shim_reset(("root " + root + "\ndelay 100 op=write path=.safetensors every\n").c_str());
}

inline bool IsProgress(const ckpt_event& e, int64_t step) {
  return e.kind == CKPT_EVENT_PROGRESS && e.step == step && e.bytes_done > 0;
}

inline void LimitFileSize(rlim_t bytes) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

struct Tmpfs {
  explicit Tmpfs(const std::string& at) : path(at) {
    std::filesystem::create_directory(path);
    error = mount("ckpt-test", path.c_str(), "tmpfs", 0, "size=64m") == 0 ? 0 : errno;
  }
  ~Tmpfs() {
    if (error == 0) umount2(path.c_str(), MNT_DETACH);
  }
  uint64_t Free() const {
    struct statvfs s {};
    EXPECT_EQ(statvfs(path.c_str(), &s), 0);
    return s.f_bfree * s.f_frsize;
  }
  std::string path;
  int error = 0;
};

// From here on fsync and fdatasync fail with EIO, in every thread of this process.
inline void FailFsync() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fsync, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fdatasync, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{sizeof program / sizeof *program, program};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter), 0);
}

}  // namespace ckpt_test
