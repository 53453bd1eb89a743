// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Identity and life of processes, from /proc.  Test: tests/unit/store/process_id_test.cc
#include "store/process_id.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "io/io.h"
#include "store/store.h"
#include "util/text.h"

namespace ckpt {
namespace {

// First 4 KiB of a small file of the kernel's, without the newline; "" when it cannot be read.
// Through the C library's open and read, so that a test can stand in the place of the kernel.
std::string ReadSmall(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  std::string text(4096, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  text.resize(size);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string LinkText(const char* path) {
  char text[128];
  const ssize_t n = readlink(path, text, sizeof text);
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
}

std::string HostName() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

struct Stat {
  char state = '?';
  uint64_t start_time = 0;
};

// "pid (name) state ppid ... starttime": the name may hold anything, so count from its last ')'.
std::optional<Stat> ReadStat(const std::string& pid) {
  constexpr int kStartTime = 22 - 3;  // fields behind the state, which is the third
  const std::string text = ReadSmall(Cat("/proc/", pid, "/stat"));
  const size_t close = text.rfind(')');
  if (close == std::string::npos || close + 2 >= text.size()) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(close + 2);
  Stat stat;
  stat.state = rest[0];
  for (int i = 0; i < kStartTime; ++i) {
    const size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
  }
  const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), stat.start_time);
  if (end.ec != std::errc()) return std::nullopt;
  return stat;
}

bool Lives(const ProcessId& p) {
  // Signal 0 sends nothing.  EPERM: it is there, under another user.
  if (p.pid <= 0 || (kill(static_cast<pid_t>(p.pid), 0) != 0 && errno == ESRCH)) return false;
  const auto stat = ReadStat(Cat(p.pid));
  if (!stat) return true;  // hidden (hidepid): rather wait than steal
  if (stat->state == 'Z' || stat->state == 'X') return false;
  return p.start_time == 0 || stat->start_time == p.start_time;
}

}  // namespace

ProcessId ThisProcess() {
  ProcessId id;
  id.host = HostName();
  id.boot_id = ReadSmall("/proc/sys/kernel/random/boot_id");
  id.pid_namespace = LinkText("/proc/self/ns/pid");
  id.pid = getpid();
  const auto stat = ReadStat("self");
  if (stat) id.start_time = stat->start_time;
  return id;
}

Place ThisPlace() {
  return {HostName(),
          Cat(ReadSmall("/proc/sys/kernel/random/boot_id"), " ", LinkText("/proc/self/ns/mnt"))};
}

Life LifeOf(const ProcessId& other, const ProcessId& self) {
  if (other.boot_id.empty() || self.boot_id.empty()) return Life::kUnknown;
  // Nor does another boot of what looks like this machine mean dead: machine ids and host names are
  // cloned with images.
  if (other.boot_id != self.boot_id) return Life::kUnknown;
  if (other.pid_namespace != self.pid_namespace) return Life::kUnknown;
  return Lives(other) ? Life::kAlive : Life::kDead;
}

}  // namespace ckpt
