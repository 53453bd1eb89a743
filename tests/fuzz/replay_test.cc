// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The corpus, and what has crashed before, through the same functions that libFuzzer drives.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>

#include "fuzz/target.h"

namespace {
// All that operator new has given out; what a message makes the library ask for is bounded by the
// message's length.
std::atomic<uint64_t> allocated{0};
}  // namespace

// Not inlined: GCC would see free() of what new gave, and take it for a mistake.
[[gnu::noinline]] void* operator new(size_t n) {
  allocated += n;
  if (void* p = ::malloc(n == 0 ? 1 : n)) return p;
  throw std::bad_alloc();
}
// Under the address sanitizer this one would otherwise be its own, and free() no match for it.
[[gnu::noinline]] void* operator new(size_t n, const std::nothrow_t&) noexcept {
  allocated += n;
  return ::malloc(n == 0 ? 1 : n);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { ::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { ::free(p); }

namespace ckpt::fuzz {
namespace {

constexpr uint64_t kConstant = 64 << 10;

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::filesystem::path Corpus(const Target& target) {
  return std::filesystem::path(CKPT_CORPUS) / target.name;
}

TEST(FuzzCorpus, EveryInputIsTakenOrRefusedWithoutHarmAndWithinItsMemory) {
  for (const Target& target : Targets()) {
    target.run("");  // what is made once is not the first input's
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Corpus(target))) {
      const std::string input = Read(entry.path());
      SCOPED_TRACE(entry.path().string());
      // A claim that does not hold aborts: say of which input first.
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);
      const uint64_t before = allocated;
      target.run(input);
      if (target.growth > 0) {
        EXPECT_LE(allocated - before, kConstant + target.growth * input.size());
      }
      ++files;
    }
    EXPECT_GT(files, 5u) << target.name;
  }
}

TEST(FuzzCorpus, RealMessagesAreInItAsTheyAreSentToday) {
  for (const Target& target : Targets()) {
    for (const auto& [name, bytes] : target.seeds()) {
      const auto path = Corpus(target) / ("seed-" + name);
      ASSERT_TRUE(std::filesystem::exists(path)) << path << ": run make_seeds";
      if (std::string_view(target.name) == "handshake") continue;  // holds random nonces
      EXPECT_EQ(Read(path), bytes) << path << ": the wire format has changed: run make_seeds";
    }
  }
}

}  // namespace
}  // namespace ckpt::fuzz
