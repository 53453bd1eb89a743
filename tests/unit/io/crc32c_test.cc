// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CRC32C: every back end against ISA-L, the copies, and the algebra of pieces.
#include "io/crc32c.h"

#include <gtest/gtest.h>
#include <isa-l.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "io/crc32c_impl.h"

namespace ckpt {
namespace {

constexpr size_t kBlock = 1 << 20;

std::vector<char> Random(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<char> bytes(n);
  for (char& b : bytes) b = static_cast<char>(random());
  return bytes;
}

// ISA-L leaves both inversions to the caller.
uint32_t Reference(const char* data, size_t n, uint32_t crc = 0) {
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data));
  return ~crc32_iscsi(bytes, static_cast<int>(n), ~crc);
}

uint32_t By(const Crc32cBackend& backend, const char* data, size_t n) {
  return ~backend.crc(~uint32_t{0}, data, n);
}

// Copies between guard bytes; false unless the copy is exact and no guard changed.
bool CopyIsExact(const Crc32cBackend& backend, const char* src, size_t n, size_t shift,
                 uint32_t expected) {
  constexpr size_t kGuard = 128;
  std::vector<char> dst(n + shift + 2 * kGuard, '\x5a');
  char* out = dst.data() + kGuard + shift;
  const uint32_t crc = ~backend.copy(~uint32_t{0}, out, src, n);
  const bool guards =
      std::all_of(dst.data(), out, [](char c) { return c == '\x5a'; }) &&
      std::all_of(out + n, dst.data() + dst.size(), [](char c) { return c == '\x5a'; });
  return guards && crc == expected && std::equal(src, src + n, out);
}

TEST(Crc32c, GivesTheCheckValueOfRfc3720) {
  EXPECT_EQ(Crc32c(0, "123456789", 9), 0xe3069283u);
  for (const auto* backend : Crc32cBackends()) {
    EXPECT_EQ(By(*backend, "123456789", 9), 0xe3069283u) << backend->name;
  }
}

TEST(Crc32c, UsesTheFirstBackendAndAlwaysHasThePortableOne) {
  EXPECT_STREQ(Crc32cImplementation(), Crc32cBackends().front()->name);
  EXPECT_STREQ(Crc32cBackends().back()->name, "portable");
}

TEST(Crc32c, EveryBackendEqualsIsalOnEveryLengthTo2000) {
  const auto data = Random(2000 + 64, 1);
  for (const auto* backend : Crc32cBackends()) {
    for (size_t n = 0; n <= 2000; ++n) {
      const char* from = data.data() + n % 64;
      const uint32_t expected = Reference(from, n);
      ASSERT_EQ(By(*backend, from, n), expected) << backend->name << " " << n;
      ASSERT_TRUE(CopyIsExact(*backend, from, n, n % 61, expected)) << backend->name << " " << n;
    }
  }
}

TEST(Crc32c, EveryBackendEqualsIsalOnLargeRandomLengthsAndAlignments) {
  const auto data = Random(3 << 20, 2);
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    const size_t from = random() % 4096;
    const size_t n = random() % (round % 2 ? data.size() - from : size_t{300000});
    const uint32_t expected = Reference(data.data() + from, n);
    for (const auto* backend : Crc32cBackends()) {
      ASSERT_EQ(By(*backend, data.data() + from, n), expected) << backend->name << " " << n;
      ASSERT_TRUE(CopyIsExact(*backend, data.data() + from, n, random() % 128, expected))
          << backend->name << " " << n;
    }
  }
}

TEST(Crc32c, CopiesRightOnBothSidesOfTheStreamingThreshold) {
  const auto data = Random(kCrc32cStreamFrom + 4096, 4);
  for (const auto* backend : Crc32cBackends()) {
    for (size_t n = kCrc32cStreamFrom - 70; n < kCrc32cStreamFrom + 70; ++n) {
      ASSERT_TRUE(CopyIsExact(*backend, data.data() + 1, n, n % 64, Reference(data.data() + 1, n)))
          << backend->name << " " << n;
    }
  }
}

TEST(Crc32c, ContinuesFromWhatCameBefore) {
  const auto data = Random(200000, 5);
  std::vector<char> copy(data.size());
  std::mt19937_64 random(6);
  uint32_t crc = 0, copied = 0;
  for (size_t done = 0; done < data.size();) {
    const size_t n = std::min(data.size() - done, size_t{random() % 20000});
    crc = Crc32c(crc, data.data() + done, n);
    copied = Crc32cCopy(copied, copy.data() + done, data.data() + done, n);
    done += n;
  }
  EXPECT_EQ(crc, Reference(data.data(), data.size()));
  EXPECT_EQ(copied, crc);
  EXPECT_EQ(copy, data);
}

TEST(Crc32c, NothingChangesNothing) {
  EXPECT_EQ(Crc32c(0x12345678, nullptr, 0), 0x12345678u);
  EXPECT_EQ(Crc32cCopy(0x12345678, nullptr, nullptr, 0), 0x12345678u);
  EXPECT_EQ(Crc32cCombine(0x12345678, 0, 0), 0x12345678u);
  EXPECT_EQ(Crc32cZeros(0), 0u);
}

TEST(Crc32cAlgebra, CombineIsTheCrcOfTheConcatenation) {
  const auto data = Random(100000, 7);
  std::mt19937_64 random(8);
  for (int round = 0; round < 200; ++round) {
    const size_t n = random() % data.size();
    const size_t cut = n == 0 ? 0 : random() % n;
    const uint32_t a = Reference(data.data(), cut);
    const uint32_t b = Reference(data.data() + cut, n - cut);
    ASSERT_EQ(Crc32cCombine(a, b, n - cut), Reference(data.data(), n)) << n << " " << cut;
  }
}

TEST(Crc32cAlgebra, ZerosIsTheCrcOfThatManyZeroBytes) {
  const std::vector<char> zeros(70000, 0);
  for (size_t n = 0; n < zeros.size(); n = n * 2 + 1) {
    ASSERT_EQ(Crc32cZeros(n), Reference(zeros.data(), n)) << n;
  }
}

TEST(Crc32cAlgebra, HoldsForLengthsOver2To61) {
  const uint64_t huge = ~uint64_t{0} - 12345;
  const uint64_t half = huge / 2;
  EXPECT_EQ(Crc32cCombine(Crc32cZeros(half), Crc32cZeros(huge - half), huge - half),
            Crc32cZeros(huge));
}

TEST(Crc32cAlgebra, ContributionsOfRandomCutsSumToTheBlocksCrcInAnyOrder) {
  std::mt19937_64 random(9);
  for (const size_t block : {size_t{1}, size_t{4097}, size_t{777777}, kBlock}) {
    const auto data = Random(block, block);
    for (int round = 0; round < 8; ++round) {
      std::vector<size_t> cuts{0, block};
      for (uint64_t k = random() % 9; k > 0; --k) cuts.push_back(random() % (block + 1));
      std::sort(cuts.begin(), cuts.end());
      std::vector<uint32_t> parts;
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        const size_t n = cuts[i + 1] - cuts[i];
        parts.push_back(Crc32cContribution(Reference(data.data() + cuts[i], n), n, cuts[i], block));
      }
      std::shuffle(parts.begin(), parts.end(), random);
      const uint32_t sum =
          std::accumulate(parts.begin(), parts.end(), uint32_t{0}, std::bit_xor<>());
      ASSERT_EQ(Crc32cBlock(sum, block), Reference(data.data(), block)) << block;
    }
  }
}

TEST(Crc32cAlgebra, AChangedBitChangesTheSum) {
  auto data = Random(kBlock, 10);
  const uint32_t before = Crc32c(0, data.data(), data.size());
  for (size_t at = 0; at < data.size(); at += 65537) {
    data[at] = static_cast<char>(data[at] ^ 4);
    EXPECT_NE(Crc32c(0, data.data(), data.size()), before) << at;
    data[at] = static_cast<char>(data[at] ^ 4);
  }
}

}  // namespace
}  // namespace ckpt
