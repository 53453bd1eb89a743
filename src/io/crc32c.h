// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// CRC32C (Castagnoli, polynomial 0x1EDC6F41 reflected; RFC 3720 appendix B.4: crc("123456789") is
// e3069283), alone, fused with a copy, and the algebra that lets several writers of one block each
// send 4 bytes.  Run-time dispatch (VPCLMULQDQ or 3-way SSE4.2+PCLMUL, portable).  Pure; any
// thread. Test: tests/unit/io/crc32c_test.cc (against ISA-L).
#ifndef CKPT_IO_CRC32C_H_
#define CKPT_IO_CRC32C_H_

#include <cstddef>
#include <cstdint>

namespace ckpt {

// CRC32C of `n` bytes; `crc` is the CRC of what came before (0 at the start).
uint32_t Crc32c(uint32_t crc, const void* data, size_t n);

// memcpy and Crc32c in one pass over memory.  The ranges must not overlap.
uint32_t Crc32cCopy(uint32_t crc, void* dst, const void* src, size_t n);

// CRC of A||B from crc(A), crc(B) and B's length.  O(log length).
uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t length_b);

// CRC of n zero bytes.
uint32_t Crc32cZeros(uint64_t n);

// A writer's contribution to a block of `block` bytes of which it wrote [offset, offset + length):
// the zero-init, zero-xorout CRC of its piece shifted to the block's end.  Contributions of
// disjoint pieces that cover the block combine by XOR in any order; BlockCrc turns the sum into the
// CRC.
uint32_t Crc32cContribution(uint32_t crc_of_piece, uint64_t length, uint64_t offset,
                            uint64_t block);
inline uint32_t Crc32cBlock(uint32_t contributions, uint64_t block) {
  return contributions ^ Crc32cZeros(block);
}

// "vpclmulqdq512", "vpclmulqdq256", "sse42", "portable": which code runs here (for logs and
// benchmarks).
const char* Crc32cImplementation();

}  // namespace ckpt

#endif  // CKPT_IO_CRC32C_H_
