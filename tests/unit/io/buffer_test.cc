// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// AlignedBuffer: alignment, ownership, refusal.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "io/io.h"

namespace ckpt {
namespace {

TEST(AlignedBuffer, IsPageAlignedAndWritableToItsLastByte) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{4097}, size_t{5} << 20}) {
    auto buffer = AlignedBuffer::Make(bytes);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kDirectAlign, 0u);
    EXPECT_EQ(buffer->size(), bytes);
    std::memset(buffer->data(), 7, bytes);
  }
}

TEST(AlignedBuffer, OfNoBytesIsEmpty) {
  auto buffer = AlignedBuffer::Make(0);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->data(), nullptr);
  EXPECT_EQ(buffer->size(), 0u);
}

TEST(AlignedBuffer, RefusedMemoryIsNoMemory) {
  for (const size_t bytes : {size_t{1} << 62, SIZE_MAX, SIZE_MAX - 1}) {
    const auto buffer = AlignedBuffer::Make(bytes);
    EXPECT_EQ(buffer.status().code(), Code::kNoMemory) << bytes;
    EXPECT_EQ(buffer.status().cause().sys_errno, ENOMEM);
  }
}

TEST(AlignedBuffer, MovesWithoutCopying) {
  AlignedBuffer a = AlignedBuffer::Make(8192).value();
  char* const data = a.data();
  AlignedBuffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  AlignedBuffer c = AlignedBuffer::Make(4096).value();
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.size(), 8192u);
}

}  // namespace
}  // namespace ckpt
