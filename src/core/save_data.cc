// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The data phase of a save on one rank: fill a staging buffer from the caller's memory and from
// peers, checksum it, write it, sync.  Test: tests/process/
#include <random>
#include <thread>

#include "core/save.h"
#include "io/crc32c.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint32_t kEventProgress = 1;  // ckpt.h
constexpr Millis kDeathIsHeardWithin(500);
constexpr Millis kVisibleWithin(5000);  // a folder made by another host may take a moment to appear

// What AppendShard packed, into a buffer that holds the tensor's bytes from `origin` on.
void UnpackRuns(const TensorDesc& t, const Geometry& g, ByteRange range, const char* packed,
                uint64_t origin, char* buffer) {
  ForEachRun(t, g, range, [&](const Run& run) {
    std::memcpy(buffer + (run.tensor_offset - origin), packed, run.bytes);
    packed += run.bytes;
  });
}

ByteRange Intersect(ByteRange a, ByteRange b) {
  const ByteRange out{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return out.begin < out.end ? out : ByteRange{};
}

// A staging folder just made by the coordinator, seen from here.
Result<Dir> OpenWhenVisible(const Dir& root, const std::string& name) {
  const TimePoint deadline = Clock::now() + kVisibleWithin;
  while (true) {
    Result<Dir> dir = root.OpenDir(name);
    if (dir.ok() || dir.status().code() != Code::kNotFound || Clock::now() > deadline) return dir;
    std::this_thread::sleep_for(Millis(20));
  }
}

}  // namespace

Bytes EncodePull(const PullRequest& request) {
  WireWriter w;
  w.U32(request.shard);
  w.U64(request.range.begin);
  w.U64(request.range.end);
  return w.Take();
}

Result<PullRequest> DecodePull(std::string_view bytes) {
  WireReader r(bytes);
  PullRequest request;
  request.shard = r.U32();
  request.range.begin = r.U64();
  request.range.end = r.U64();
  if (!r.AtEnd() || request.range.end < request.range.begin) {
    return Status(Code::kComm, "malformed request for a shard's bytes");
  }
  return request;
}

Status SaveData::Provide(std::string_view bytes, std::string* reply) {
  CKPT_ASSIGN_OR_RETURN(PullRequest request, DecodePull(bytes));
  if (request.shard >= o_.sources.size()) {
    return Status(Code::kComm,
                  Cat("a peer asked for shard ", request.shard, " of ", o_.sources.size()));
  }
  const ShardSource& source = o_.sources[request.shard];
  const uint64_t unit = source.desc.elem_bytes;
  if (request.range.begin % unit != 0 || request.range.end % unit != 0) {
    return Status(Code::kComm, "a peer asked for a part of an element");
  }
  const uint64_t n = BytesWithin(source.desc, source.geometry, request.range);
  if (n > o_.config.chunk_bytes) {
    return Status(Code::kComm, Cat("a peer asked for ", n, " bytes at once"));
  }
  reply->resize(n);
  if (!gate_.Enter()) return Status(Code::kCancelled, "this rank has left the save");
  AppendShard(source.desc, source.geometry, request.range, source.memory, reply->data());
  gate_.Leave();
  return Status();
}

void SaveData::Fail(const Status& status) {
  MutexLock lock(mu_);
  if (first_error_.ok()) first_error_ = status;
  failed_ = true;
}

Status SaveData::StopReason() const {
  if (*o_.cancelled) return Status(Code::kCancelled, "the host's event callback asked to cancel");
  if (o_.group->Closed(o_.round)) return Status(Code::kCancelled, "the save was closed meanwhile");
  return Status();
}

Status SaveData::OpenFiles(const SaveOrder& order) {
  files_.resize(order.files.size());
  if (order.plan.extents.empty()) return Status();
  CKPT_ASSIGN_OR_RETURN(root_, Dir::Open(o_.root));
  CKPT_ASSIGN_OR_RETURN(staging_, OpenWhenVisible(root_, order.staging));
  for (const PlanExtent& extent : order.plan.extents) {
    if (extent.file >= order.files.size())
      return Status(Code::kComm, "the plan names no such file");
    if (files_[extent.file].valid()) continue;
    CKPT_ASSIGN_OR_RETURN(files_[extent.file],
                          staging_.OpenFile(order.files[extent.file].first, FileMode::kReadWrite,
                                            o_.config.io_direct));
  }
  return Status();
}

void SaveData::MakeChunks(const SaveOrder& order, SaveVote* vote) {
  // A checksum block is touched by one chunk of an extent only, so workers never share a slot.
  const uint64_t size = RoundUp(o_.config.io_block, kCrcBlock);
  vote->contributions.resize(order.plan.extents.size());
  for (uint32_t e = 0; e < order.plan.extents.size(); ++e) {
    const ByteRange range = order.plan.extents[e].range;
    if (range.size() == 0) continue;
    total_bytes_ += range.size();
    vote->contributions[e].resize((range.end - 1) / kCrcBlock - range.begin / kCrcBlock + 1);
    for (uint64_t at = range.begin; at < range.end;) {
      const uint64_t end = std::min(range.end, RoundDown(at, size) + size);
      chunks_.push_back({e, {at, end}});
      at = end;
    }
  }
}

// What a stall is explained with: a worker that waits for a peer is its reason, whatever the others
// did last.
void SaveData::Tell(uint64_t bytes, const std::string& doing) {
  const int32_t peer = waiting_for_;
  o_.group->Progress(o_.round, bytes, peer < 0 ? doing : Cat("waiting for bytes of rank ", peer));
}

// A peer that cannot be reached may be dead: then the monitor says so, better than a socket's
// errno.
Status SaveData::Ask(int32_t peer, const Bytes& request, std::string* reply) {
  waiting_for_ = peer;
  Tell(bytes_exchanged_, "asking");
  const Status status = o_.group->Ask(o_.round, peer, request, reply->data(), reply->size());
  int32_t waited = peer;
  waiting_for_.compare_exchange_strong(waited, -1);
  if (status.code() != Code::kComm) return status;
  const TimePoint deadline = Clock::now() + kDeathIsHeardWithin;
  while (!o_.group->Closed(o_.round) && Clock::now() < deadline) {
    std::this_thread::sleep_for(Millis(10));
  }
  return status;
}

Status SaveData::PullPart(const PlacedTensor& tensor, const PlanPart& part, ByteRange range,
                          const Chunk& chunk, char* buffer, std::string* scratch) {
  // No more than chunk_bytes of the tensor per message, so that no message is longer than that.
  for (uint64_t at = range.begin; at < range.end;) {
    const ByteRange file_range{at, std::min(range.end, at + o_.config.chunk_bytes)};
    const ByteRange in_tensor{file_range.begin - tensor.offset, file_range.end - tensor.offset};
    at = file_range.end;
    const uint64_t n = BytesWithin(tensor.desc, part.geometry, in_tensor);
    if (n == 0) continue;
    scratch->resize(n);
    const Bytes request = EncodePull({part.source_shard, in_tensor});
    CKPT_RETURN_IF_ERROR(Ask(part.source_rank, request, scratch));
    UnpackRuns(tensor.desc, part.geometry, in_tensor, scratch->data(), in_tensor.begin,
               buffer + (file_range.begin - chunk.range.begin));
    bytes_exchanged_ += n;
  }
  return Status();
}

Status SaveData::FillPart(const RankPlan& plan, const PlanPart& part, const Chunk& chunk,
                          char* buffer, std::string* scratch) {
  if (part.tensor >= plan.tensors.size())
    return Status(Code::kComm, "the plan names no such tensor");
  const PlacedTensor& tensor = plan.tensors[part.tensor];
  const ByteRange range = Intersect(part.range, chunk.range);
  if (range.size() == 0) return Status();
  if (part.source_rank != o_.group->rank()) {
    return PullPart(tensor, part, range, chunk, buffer, scratch);
  }
  if (part.source_shard >= o_.sources.size()) {
    return Status(Code::kComm, "the plan names no such shard");
  }
  const ShardSource& source = o_.sources[part.source_shard];
  if (source.desc.dtype != tensor.desc.dtype || source.desc.shape != tensor.desc.shape ||
      source.geometry != part.geometry) {
    return Status(Code::kComm, "the plan describes a shard of this rank otherwise than it is");
  }
  if (!gate_.Enter()) return Status(Code::kCancelled, "the caller has left the save");
  GatherShard(tensor.desc, part.geometry, {range.begin - tensor.offset, range.end - tensor.offset},
              source.memory, buffer + (range.begin - chunk.range.begin));
  gate_.Leave();
  return Status();
}

Status SaveData::FillChunk(const SaveOrder& order, const Chunk& chunk, char* buffer,
                           std::string* scratch) {
  const PlanExtent& extent = order.plan.extents[chunk.extent];
  const ByteRange header =
      Intersect({extent.range.begin, extent.range.begin + extent.header_bytes}, chunk.range);
  if (header.size() > 0) {
    if (extent.file >= headers_.size() || headers_[extent.file].size() < header.end) {
      return Status(Code::kInternal, "the plan gives a file's header to a rank that lacks it");
    }
    std::memcpy(buffer + (header.begin - chunk.range.begin),
                headers_[extent.file].data() + header.begin, header.size());
  }
  // Parts ascend by begin and may overlap in extent (column shards), so only the upper end can be
  // cut.
  for (const PlanPart& part : extent.parts) {
    if (part.range.begin >= chunk.range.end) break;
    if (part.range.end <= chunk.range.begin) continue;
    CKPT_RETURN_IF_ERROR(FillPart(order.plan, part, chunk, buffer, scratch));
  }
  return Status();
}

Status SaveData::WriteChunk(const SaveOrder& order, const Chunk& chunk, char* buffer,
                            std::string* scratch, SaveVote* vote) {
  CKPT_RETURN_IF_ERROR(FillChunk(order, chunk, buffer, scratch));
  const PlanExtent& extent = order.plan.extents[chunk.extent];
  const uint64_t first_block = extent.range.begin / kCrcBlock;
  for (uint64_t at = chunk.range.begin; at < chunk.range.end;) {
    const uint64_t block = at / kCrcBlock;
    const uint64_t end = std::min(chunk.range.end, (block + 1) * kCrcBlock);
    const uint64_t file_bytes = order.files[extent.file].second;
    const uint64_t block_bytes = std::min(kCrcBlock, file_bytes - block * kCrcBlock);
    const uint32_t crc = Crc32c(0, buffer + (at - chunk.range.begin), end - at);
    vote->contributions[chunk.extent][block - first_block] ^=
        Crc32cContribution(crc, end - at, at - block * kCrcBlock, block_bytes);
    at = end;
  }
  const std::string& name = order.files[extent.file].first;
  Tell(bytes_written_, Cat("pwrite of ", name));
  CKPT_RETURN_IF_ERROR(
      files_[extent.file].WriteBlock(buffer, chunk.range.size(), chunk.range.begin));
  const uint64_t done = bytes_written_ += chunk.range.size();
  Tell(done, Cat("writing ", name));
  Event event;
  event.kind = kEventProgress;
  event.step = o_.step;
  event.bytes_done = done;
  event.bytes_total = total_bytes_;
  o_.on_progress(std::move(event));
  return Status();
}

uint32_t SaveData::HashRange(const ShardSource& source, ByteRange range, uint32_t crc,
                             char* buffer) const {
  const ShardMemory& memory = source.memory;
  if (memory.strides.empty() && memory.dtype == source.desc.dtype) {
    return Crc32c(crc, static_cast<const char*>(memory.data) + range.begin, range.size());
  }
  PackShard(memory, source.desc.dtype, range.begin, range.size(), buffer);
  return Crc32c(crc, buffer, range.size());
}

Status SaveData::HashShard(const SaveOrder& order, size_t index, char* buffer, SaveVote* vote) {
  const uint32_t shard = order.hash_shards[index];
  if (shard >= o_.sources.size()) return Status(Code::kComm, "the order names no such shard");
  const ShardSource& source = o_.sources[shard];
  const uint64_t bytes = static_cast<uint64_t>(Elements(source.geometry)) * source.desc.elem_bytes;
  const bool sampled =
      o_.config.replica_check == ReplicaCheck::kSampled && source.desc.bytes > kSampleAbove;
  std::mt19937_64 draw(order.hash_seed + std::hash<std::string>()(source.desc.name));
  for (uint64_t chunk = 0; chunk < bytes; chunk += kHashChunk) {
    CKPT_RETURN_IF_ERROR(StopReason());
    Tell(chunk, Cat("checksum of shard ", shard));
    if (!gate_.Enter()) return Status(Code::kCancelled, "the caller has left the save");
    uint32_t crc = 0;
    const uint64_t end = std::min(bytes, chunk + kHashChunk);
    for (uint64_t at = chunk; at < end; at += kSampleEvery) {
      ByteRange range{at, std::min(end, at + kSampleEvery)};
      // Offsets in units of kSampleBytes: no element is cut.
      if (sampled && range.size() > kSampleBytes) {
        range.begin += draw() % (range.size() / kSampleBytes) * kSampleBytes;
        range.end = range.begin + kSampleBytes;
      }
      crc = HashRange(source, range, crc, buffer);
    }
    gate_.Leave();
    vote->shard_hashes[index].push_back(crc);
  }
  return Status();
}

Status SaveData::Work(const SaveOrder& order, SaveVote* vote) {
  CKPT_ASSIGN_OR_RETURN(AlignedBuffer buffer,
                        AlignedBuffer::Make(RoundUp(o_.config.io_block, kCrcBlock)));
  std::string scratch;
  const size_t jobs = chunks_.size() + order.hash_shards.size();
  for (size_t i = next_++; i < jobs && !failed_; i = next_++) {
    CKPT_RETURN_IF_ERROR(StopReason());
    CKPT_RETURN_IF_ERROR(i < chunks_.size()
                             ? WriteChunk(order, chunks_[i], buffer.data(), &scratch, vote)
                             : HashShard(order, i - chunks_.size(), buffer.data(), vote));
  }
  return Status();
}

Result<SaveVote> SaveData::Run(const SaveOrder& order) {
  const TimePoint start = Clock::now();
  Result<SaveVote> vote = WriteAndHash(order);
  run_ns_ = NanosSince(start);
  return vote;
}

Result<SaveVote> SaveData::WriteAndHash(const SaveOrder& order) {
  SaveVote vote;
  CKPT_RETURN_IF_ERROR(OpenFiles(order));
  MakeChunks(order, &vote);
  vote.shard_hashes.resize(order.hash_shards.size());
  RunWorkers(o_.config.io_threads, [&] {
    const Status status = Contain([&] { return Work(order, &vote); });
    if (!status.ok()) Fail(status);
  });
  {
    MutexLock lock(mu_);
    CKPT_RETURN_IF_ERROR(first_error_);
  }
  for (size_t f = 0; f < files_.size(); ++f) {
    if (!files_[f].valid()) continue;
    o_.group->Progress(o_.round, bytes_written_, Cat("fsync of ", order.files[f].first));
    CKPT_RETURN_IF_ERROR(files_[f].Sync());
    CKPT_RETURN_IF_ERROR(files_[f].Close());
  }
  return vote;
}

}  // namespace ckpt
