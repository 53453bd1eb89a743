// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the benchmarks; see bench.h.
#include "bench/bench.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

namespace bench {
namespace {

std::string FileSystem(const std::string& folder) {
  struct statfs fs;
  if (::statfs(folder.c_str(), &fs) != 0) Fail("statfs " + folder);
  switch (static_cast<uint32_t>(fs.f_type)) {
    case 0xef53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683e:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794c7630:
      return "overlayfs";
    case 0x6969:
      return "nfs";
    case 0x0bd00bd0:
      return "lustre";
  }
  char text[32];
  std::snprintf(text, sizeof text, "file system 0x%lx", static_cast<unsigned long>(fs.f_type));
  return text;
}

}  // namespace

void Fail(const std::string& what) {
  const char* why = errno != 0 ? std::strerror(errno) : "";
  std::fprintf(stderr, "bench: %s%s%s\n", what.c_str(), *why ? ": " : "", why);
  std::fflush(nullptr);
  ::_exit(2);
}

double Now() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

Range Summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median = values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

std::string Machine(const std::string& folder) {
  utsname kernel;
  ::uname(&kernel);
  const double gib = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                     static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 30);
  char text[256];
  std::snprintf(text, sizeof text, "%ld cores, %.1f GiB, %s, Linux %s, %s",
                ::sysconf(_SC_NPROCESSORS_ONLN), gib, kernel.machine, kernel.release,
                FileSystem(folder).c_str());
  return text;
}

std::string Today() {
  const time_t now = ::time(nullptr);
  tm parts;
  ::gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

uint64_t Memory(const char* field) {
  std::ifstream status("/proc/self/status");
  const std::string wanted = std::string(field) + ":";
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(wanted, 0) == 0)
      return std::strtoull(line.c_str() + wanted.size(), nullptr, 10) << 10;
  }
  Fail(std::string("no ") + field + " in /proc/self/status");
}

void ResetPeak() {
  std::ofstream refs("/proc/self/clear_refs");
  refs << "5" << std::flush;
  if (!refs) Fail("write 5 to /proc/self/clear_refs");
}

char* WarmBytes(uint64_t n, uint64_t first) {
  void* memory = ::mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap of the state");
  auto* words = static_cast<uint32_t*>(memory);
  for (uint64_t i = 0; i < n / 4; ++i) {
    uint64_t x = (first + i + 1) * 0x9e3779b97f4a7c15u;  // splitmix64: no disk compresses it
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    words[i] = static_cast<uint32_t>(x >> 32);
  }
  return static_cast<char*>(memory);
}

double PlainWrite(const std::string& path, const char* data, uint64_t n) {
  constexpr uint64_t kPiece = 1 << 20;
  const double start = Now();
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) Fail("create " + path);
  for (uint64_t done = 0; done < n;) {
    const ssize_t got = ::write(fd, data + done, std::min(kPiece, n - done));
    if (got <= 0) Fail("write " + path);
    done += static_cast<uint64_t>(got);
  }
  if (::fsync(fd) != 0) Fail("fsync " + path);
  const double seconds = Now() - start;
  ::close(fd);
  ::unlink(path.c_str());
  return seconds;
}

}  // namespace bench
