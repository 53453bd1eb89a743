// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Who writes what, who reads what.  Pure functions: no I/O, threads, sockets or clock, so that a
// plan for 100,000 ranks is a unit test.  Test: tests/unit/plan/ (with a slow, obvious oracle).
#ifndef CKPT_PLAN_PLAN_H_
#define CKPT_PLAN_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "meta/meta.h"
#include "util/status.h"

namespace ckpt {

// --- the global state, merged from what the ranks brought --------------------------------------

struct Holder {
  int32_t rank = 0;
  uint32_t shard = 0;  // index into that rank's RankState::shards
};
// A set of bytes that is held whole by each of its holders (replicas).  The pieces of a tensor are
// disjoint and cover it.
struct Piece {
  Geometry geometry;
  std::vector<Holder> holders;  // ascending rank
};
struct GlobalTensor {
  TensorDesc desc;
  std::vector<Piece> pieces;
};
// Aliases by (group, alias): the name of the tensor that is stored for it.
using GlobalAliases = std::map<std::pair<std::string, std::string>, std::string>;
struct GlobalState {
  std::vector<GlobalTensor> tensors;  // sorted by (group, name)
  GlobalAliases aliases;
  std::vector<bool> may_write;  // per rank
};

// Merges and checks.  Errors, each naming tensor and ranks (cause.name, cause.rank, cause.field):
//   MISMATCH  two ranks give one (group, name) another dtype or shape (both values in the text), or
//             one as a tensor and the other as an alias, or an alias of another tensor
//   INVALID_ARGUMENT  an alias of a tensor that no rank gives, or in a circle
//   NOT_FOUND a required tensor that no rank holds
//   COVERAGE  a gap (the first uncovered element range), an overlap that is not a replica (both
//   ranks),
//             one rank giving the same bytes twice, no rank holding a non-empty tensor
// Empty shards and tensors without elements are legal.  n log n in the number of shards.
Result<GlobalState> MergeStates(const std::vector<RankState>& ranks);

// Stores tied tensors under every name: aliases become tensors with the same pieces.
void DuplicateTies(GlobalState* state);

// --- save ---------------------------------------------------------------------------------------

struct SavePlanOptions {
  uint64_t io_align = 4096;       // no such block of a file is written by two ranks
  uint64_t min_run = 256 * 1024;  // shorter runs are assembled at one owner
  int32_t coordinator = 0;  // writes the headers, so it owns every file's first header block(s)
};

// A part of a file to be brought into the owner's buffer.  Parts of one extent may interleave
// (column shards): together they cover the extent's data bytes exactly once.
struct PlanPart {
  uint32_t tensor = 0;  // index into RankPlan::tensors
  Geometry geometry;    // of the source shard
  ByteRange range;      // file bytes: the part is geometry's bytes within it
  int32_t source_rank = 0;
  uint32_t source_shard = 0;  // shard id at the source
};
// Bytes [range) of a file that exactly one rank, the owner, writes.
struct PlanExtent {
  uint32_t file = 0;  // index into the layout's files
  ByteRange range;
  uint64_t header_bytes = 0;    // leading bytes of the range that come from the file's header
  std::vector<PlanPart> parts;  // ascending range.begin
};
struct RankPlan {
  std::vector<PlacedTensor> tensors;  // those that this rank's parts refer to
  std::vector<PlanExtent> extents;    // ascending (file, begin)
};
struct SavePlan {
  std::vector<RankPlan> ranks;
};
// Ownership: bytes held by one rank are written by it, bytes held by R ranks are cut by byte range
// so that bytes per rank are even (water filling), runs and tensors shorter than min_run are
// assembled in extents at one owner, cuts lie on multiples of io_align (of the file), a rank that
// may not write owns nothing but, if it is the coordinator, the blocks of headers.  Extents cover
// every byte of every file exactly once. INVALID_ARGUMENT if no rank may write. A replicated part
// is taken from the owner itself where it holds it, else from the holder spread by position.
// REQUIRES: every tensor of `files` is in `state` (by group and name) or in a blob group that the
// caller has put into `state` as U8 tensors.
Result<SavePlan> PlanSave(const GlobalState& state, const std::vector<FileLayout>& files,
                          const SavePlanOptions& options);
Bytes EncodeRankPlan(const RankPlan& p);
Result<RankPlan> DecodeRankPlan(std::string_view bytes);

// --- load ---------------------------------------------------------------------------------------

// What one rank wants: shard i of the destination state.
struct WantedShard {
  uint32_t file = 0;    // index into the catalog's files
  PlacedTensor tensor;  // as stored
  Geometry geometry;
};
struct ReadPart {
  uint32_t wanted = 0;  // index into the wanted shards
  ByteRange range;      // file bytes
};
struct ReadExtent {
  uint32_t file = 0;
  ByteRange range;  // widened to whole checksum blocks, cut at the file's end
  std::vector<ReadPart> parts;
};
// Merged, sorted by (file, offset), each byte read once; cut so that no extent is longer than
// `max_bytes` (a multiple of `block`).  Every block that holds a wanted byte is read whole, so that
// its checksum can be compared.
std::vector<ReadExtent> PlanLoad(const std::vector<WantedShard>& wanted,
                                 const std::vector<uint64_t>& file_bytes, uint64_t block,
                                 uint64_t max_bytes);

}  // namespace ckpt

#endif  // CKPT_PLAN_PLAN_H_
