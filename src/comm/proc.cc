// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Parsing of /proc for heartbeats and for stale bootstrap files.  Test:
// tests/unit/comm/parts_test.cc
#include "comm/proc.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <string_view>
#include <vector>

#include "util/text.h"

namespace ckpt {
namespace {

constexpr const char* kEnded = "its main thread has ended";

std::string ReadSmall(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char buffer[1024];
  ssize_t n = 0;
  do {
    n = ::read(fd, buffer, sizeof buffer);
  } while (n < 0 && errno == EINTR);
  ::close(fd);
  return std::string(buffer, n > 0 ? static_cast<size_t>(n) : 0);
}

// Fields of a stat line after the command's name, which may hold spaces and parentheses: the first
// one is the state, field 3 of proc(5).
std::vector<std::string_view> StatFields(std::string_view stat) {
  std::vector<std::string_view> fields;
  const size_t close = stat.rfind(')');
  if (close == std::string_view::npos) return fields;
  stat.remove_prefix(close + 1);
  while (!stat.empty()) {
    const size_t begin = stat.find_first_not_of(" \n");
    if (begin == std::string_view::npos) break;
    stat.remove_prefix(begin);
    const size_t end = std::min(stat.find_first_of(" \n"), stat.size());
    fields.push_back(stat.substr(0, end));
    stat.remove_prefix(end);
  }
  return fields;
}

std::optional<uint64_t> ToNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || at == text.data()) return std::nullopt;
  return value;
}

struct SyscallName {
  uint64_t number;
  const char* name;
};
// All that the compiler's kernel headers name, for the architecture built for.
constexpr SyscallName kSyscalls[] = {
#include "comm/syscalls.inc"
};

// The kernel's function in which the task waits, "futex_wait_queue"; empty where the kernel keeps
// that from us, which is usual: stack needs rights, and wchan is 0 where symbols are restricted.
std::string WaitsIn(const std::string& task) {
  std::string text = ReadSmall(task + "/stack");  // "[<0>] futex_wait_queue+0x60/0x90\n..."
  const size_t from = text.starts_with("[<") ? text.find(' ') : std::string::npos;
  text = from == std::string::npos ? ReadSmall(task + "/wchan") : text.substr(from + 1);
  text.resize(std::min(text.find_first_of("+ \n"), text.size()));
  return text == "0" ? "" : Printable(text, 40);
}

std::string SyscallText(const std::string& task) {
  const auto number = ToNumber(ReadSmall(task + "/syscall"));
  const std::string where = WaitsIn(task);
  if (!number) return where.empty() ? "" : Cat(" in ", where);
  const auto known = std::find_if(std::begin(kSyscalls), std::end(kSyscalls),
                                  [&](const SyscallName& s) { return s.number == *number; });
  return Cat(" in syscall ", known == std::end(kSyscalls) ? "" : Cat(known->name, " "), "(",
             *number, ")", where.empty() ? "" : Cat(" at ", where));
}

std::string StateText(char state, const std::string& task, int share) {
  switch (state) {
    case 'R':
      return Cat("running, ", share, " % cpu");
    case 'S':
      return Cat("sleeping", SyscallText(task));
    case 'D':
      return Cat("waiting for a device", SyscallText(task));
    case 'T':
    case 't':
      return "stopped";
    default:
      return kEnded;
  }
}

}  // namespace

std::optional<uint64_t> StartTime(pid_t pid) {
  const std::string stat = ReadSmall(Cat("/proc/", pid, "/stat"));
  const auto fields = StatFields(stat);
  // A zombie is dead for every purpose of ours.
  if (fields.size() < 20 || fields[0] == "Z" || fields[0] == "X") return std::nullopt;
  return ToNumber(fields[19]);
}

std::string HostName() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return "";
  return name;
}

std::string ThreadWatch::Doing() {
  const std::string task = Cat("/proc/self/task/", tid_);
  const std::string stat = ReadSmall(task + "/stat");
  const auto fields = StatFields(stat);
  if (fields.size() < 13) return kEnded;
  const uint64_t ticks = ToNumber(fields[11]).value_or(0) + ToNumber(fields[12]).value_or(0);
  const TimePoint now = Clock::now();
  int share = 0;
  if (last_ != TimePoint{} && now > last_) {
    const double seconds = std::chrono::duration<double>(now - last_).count();
    const double used =
        static_cast<double>(ticks - last_ticks_) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    share = static_cast<int>(std::clamp(100.0 * used / seconds, 0.0, 100.0));
  }
  last_ = now;
  last_ticks_ = ticks;
  return StateText(fields[0][0], task, share);
}

}  // namespace ckpt
