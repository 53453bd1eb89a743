// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Words for people.
#include "util/text.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace ckpt {
namespace {

TEST(Text, RanksAreGivenAsSortedRanges) {
  EXPECT_EQ(RankRanges({7, 0, 3, 1, 2, 3}), "0-3, 7");
  EXPECT_EQ(RankRanges({4, 5}), "4, 5");
  EXPECT_EQ(RankRanges({}), "");
}

TEST(Text, SizesAreRoundedToOneDigit) {
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1610612736), "1.5 GiB");
  EXPECT_EQ(HumanBytes(~uint64_t{0}), "16.0 EiB");
}

TEST(Text, ErrnoIsWordsAndName) {
  EXPECT_EQ(ErrnoText(ENOSPC), "No space left on device (ENOSPC)");
  EXPECT_EQ(ErrnoText(99999), "errno 99999");
}

TEST(Text, Utf8RefusesOverlongFormsSurrogatesAndWhatIsCutShort) {
  for (const char* good : {"", "abc", "\u00e9", "\u20ac", "\U0001F600", "\U0010FFFF"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad : {"\xff", "\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xc3",
                          "\xf0\x9f\x98", "\xf4\x90\x80\x80", "a\xfe"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(Text, PrintableEscapesControlAndBrokenBytesAndIsBounded) {
  EXPECT_EQ(Printable("a\nb\x01\xff\u00e9"), "a\\nb\\u0001\\xff\u00e9");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(Printable(std::string(500, 'x'), 10), std::string(10, 'x') + "...");
}

}  // namespace
}  // namespace ckpt
