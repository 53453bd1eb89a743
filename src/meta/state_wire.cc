// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rank brings to a save, as bytes.  The decoder takes input from a peer: every count, index,
// size and geometry is checked, so that a state that decodes is safe to merge and plan.
// Test: tests/unit/meta/state_wire_test.cc
#include "meta/meta.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint64_t kTensorBytes = 28, kShardBytes = 21, kBlobBytes = 28,
                   kAliasBytes = 24;  // least, encoded

Status Malformed(std::string_view what) {
  return Status(Code::kComm, Cat("a peer sent a malformed state: ", what));
}

Status ReadTensors(WireReader& r, std::vector<TensorDesc>* out) {
  const uint64_t n = r.Count(kTensorBytes);
  out->reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    TensorDesc t = GetTensor(r);
    if (!r.ok()) return Malformed("tensors");
    if (t.elem_bytes == 0) return Malformed(Cat("tensor ", Printable(t.name)));
    Dims shape = LogicalShape(t);
    auto checked = MakeTensor(std::move(t.group), std::move(t.name), t.dtype, std::move(shape));
    if (!checked.ok()) return Malformed(checked.status().message());
    out->push_back(std::move(checked).value());
  }
  return Status();
}

Status ReadShards(WireReader& r, RankState* s) {
  const uint64_t n = r.Count(kShardBytes);
  s->shards.reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    RankState::Shard shard;
    shard.tensor = r.U32();
    shard.geometry = GetGeometry(r);
    if (!r.ok() || shard.tensor >= s->tensors.size()) return Malformed("shards");
    const Status bad = CheckGeometry(s->tensors[shard.tensor], shard.geometry);
    if (!bad.ok()) return Malformed(bad.message());
    s->shards.push_back(std::move(shard));
  }
  return Status();
}

Status ReadBlobs(WireReader& r, std::vector<BlobDesc>* out) {
  const uint64_t n = r.Count(kBlobBytes);
  out->reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    BlobDesc b;
    b.name = r.Str();
    const uint32_t scope = r.U32();
    b.scope = static_cast<BlobScope>(scope);
    b.bytes = r.U64();
    b.crc32c = r.U32();
    b.flags = r.U32();
    if (!r.ok() || scope > static_cast<uint32_t>(BlobScope::kFile) || b.bytes > uint64_t{1} << 62) {
      return Malformed("blobs");
    }
    out->push_back(std::move(b));
  }
  return Status();
}

Status ReadAliases(WireReader& r, RankState* s) {
  s->aliases.resize(r.Count(kAliasBytes));
  for (AliasDesc& alias : s->aliases) {
    alias.group = r.Str();
    alias.name = r.Str();
    alias.of = r.Str();
    // The names are checked as those of tensors are.
    if (!r.ok() || !MakeTensor(alias.group, alias.name, kU8, {}).ok() ||
        !MakeTensor(alias.group, alias.of, kU8, {}).ok()) {
      return Malformed("aliases");
    }
  }
  s->required.resize(r.Count(sizeof(uint32_t)));
  for (uint32_t& tensor : s->required) {
    tensor = r.U32();
    if (tensor >= s->tensors.size()) return Malformed("required names");
  }
  return Status();
}

}  // namespace

void PutTensor(WireWriter& w, const TensorDesc& t) {
  w.Str(t.group);
  w.Str(t.name);
  w.U32(t.dtype);
  w.I64s(LogicalShape(t));
}

TensorDesc GetTensor(WireReader& r) {
  TensorDesc t;
  t.group = r.Str();
  t.name = r.Str();
  t.dtype = r.U32();
  t.shape = r.I64s();
  // A bad dtype or shape leaves the sizes 0; who trusts the peer less asks SizeTensor itself.
  if (r.ok()) (void)SizeTensor(&t).ok();
  return t;
}

void PutGeometry(WireWriter& w, const Geometry& g) {
  w.U8(g.is_box ? 1 : 0);
  if (g.is_box) {
    w.I64s(g.offset);
    w.I64s(g.extent);
  } else {
    w.I64(g.begin);
    w.I64(g.count);
  }
}

Geometry GetGeometry(WireReader& r) {
  Geometry g;
  g.is_box = r.U8() != 0;
  if (g.is_box) {
    g.offset = r.I64s();
    g.extent = r.I64s();
  } else {
    g.begin = r.I64();
    g.count = r.I64();
  }
  return g;
}

Bytes EncodeRankState(const RankState& s) {
  WireWriter w;
  w.U8(s.may_write ? 1 : 0);
  w.U64(s.tensors.size());
  for (const TensorDesc& t : s.tensors) PutTensor(w, t);
  w.U64(s.shards.size());
  for (const RankState::Shard& shard : s.shards) {
    w.U32(shard.tensor);
    PutGeometry(w, shard.geometry);
  }
  w.U64(s.blobs.size());
  for (const BlobDesc& b : s.blobs) {
    w.Str(b.name);
    w.U32(static_cast<uint32_t>(b.scope));
    w.U64(b.bytes);
    w.U32(b.crc32c);
    w.U32(b.flags);
  }
  w.U64(s.aliases.size());
  for (const AliasDesc& alias : s.aliases) {
    w.Str(alias.group);
    w.Str(alias.name);
    w.Str(alias.of);
  }
  w.U64(s.required.size());
  for (uint32_t tensor : s.required) w.U32(tensor);
  return w.Take();
}

Result<RankState> DecodeRankState(std::string_view bytes) {
  WireReader r(bytes);
  RankState s;
  const uint8_t may_write = r.U8();
  if (may_write > 1) return Malformed("may_write");
  s.may_write = may_write == 1;
  CKPT_RETURN_IF_ERROR(ReadTensors(r, &s.tensors));
  CKPT_RETURN_IF_ERROR(ReadShards(r, &s));
  CKPT_RETURN_IF_ERROR(ReadBlobs(r, &s.blobs));
  CKPT_RETURN_IF_ERROR(ReadAliases(r, &s));
  if (!r.AtEnd()) return Malformed(r.ok() ? "bytes after the end" : "it is cut short");
  return s;
}

}  // namespace ckpt
