// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank's part of the plan, as bytes: tensors once, geometries once, then small parts.  The
// decoder takes input from a peer: what decodes can be carried out without leaving any buffer.
// Test: tests/unit/plan/plan_wire_test.cc
#include <map>
#include <utility>

#include "plan/plan.h"
#include "util/checked.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr uint64_t kTensorBytes = 36, kGeometryBytes = 21, kExtentBytes = 36, kPartBytes = 28;

struct Shape {  // of a source: a tensor's shard
  uint32_t tensor = 0;
  Geometry geometry;
  auto operator<=>(const Shape&) const = default;
};

Status Malformed(std::string_view what) {
  return Status(Code::kComm, Cat("a peer sent a malformed plan: ", what));
}

bool Inside(ByteRange inner, ByteRange outer) {
  return inner.begin >= outer.begin && inner.begin < inner.end && inner.end <= outer.end;
}

ByteRange GetRange(WireReader& r, bool* ok) {
  const uint64_t begin = r.U64();
  const auto end = CheckedAdd(begin, r.U64());
  *ok = *ok && end.has_value();
  return {begin, end.value_or(begin)};
}

Status ReadTensors(WireReader& r, RankPlan* p) {
  const uint64_t n = r.Count(kTensorBytes);
  p->tensors.reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    PlacedTensor t;
    t.desc = GetTensor(r);
    t.offset = r.U64();
    if (!r.ok()) return Malformed("tensors");
    if (t.desc.elem_bytes == 0) return Malformed("dtype or shape of a tensor");
    if (!CheckedAdd(t.offset, t.desc.bytes)) return Malformed("offset of a tensor");
    p->tensors.push_back(std::move(t));
  }
  return Status();
}

Status ReadShapes(WireReader& r, const RankPlan& p, std::vector<Shape>* out) {
  const uint64_t n = r.Count(kGeometryBytes);
  out->reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    Shape s;
    s.tensor = r.U32();
    s.geometry = GetGeometry(r);
    if (!r.ok() || s.tensor >= p.tensors.size()) return Malformed("shards");
    const Status bad = CheckGeometry(p.tensors[s.tensor].desc, s.geometry);
    if (!bad.ok()) return Malformed(bad.message());
    out->push_back(std::move(s));
  }
  return Status();
}

Status ReadParts(WireReader& r, const RankPlan& p, const std::vector<Shape>& shapes,
                 PlanExtent* extent) {
  const uint64_t n = r.Count(kPartBytes);
  extent->parts.reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    PlanPart part;
    bool ok = true;
    const uint32_t shape = r.U32();
    part.range = GetRange(r, &ok);
    part.source_rank = r.I32();
    part.source_shard = r.U32();
    if (!r.ok() || !ok || shape >= shapes.size() || part.source_rank < 0) {
      return Malformed("parts");
    }
    part.tensor = shapes[shape].tensor;
    part.geometry = shapes[shape].geometry;
    const PlacedTensor& t = p.tensors[part.tensor];
    if (!Inside(part.range, extent->range) ||
        !Inside(part.range, {t.offset, t.offset + t.desc.bytes})) {
      return Malformed("a part lies outside its extent or tensor");
    }
    extent->parts.push_back(std::move(part));
  }
  return Status();
}

Status ReadExtents(WireReader& r, const std::vector<Shape>& shapes, RankPlan* p) {
  const uint64_t n = r.Count(kExtentBytes);
  p->extents.reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    PlanExtent e;
    bool ok = true;
    e.file = r.U32();
    e.range = GetRange(r, &ok);
    e.header_bytes = r.U64();
    if (!r.ok() || !ok || e.range.begin >= e.range.end || e.header_bytes > e.range.size()) {
      return Malformed("extents");
    }
    if (!p->extents.empty() &&
        std::make_pair(e.file, e.range.begin) <
            std::make_pair(p->extents.back().file, p->extents.back().range.end)) {
      return Malformed("extents out of order");
    }
    CKPT_RETURN_IF_ERROR(ReadParts(r, *p, shapes, &e));
    p->extents.push_back(std::move(e));
  }
  return Status();
}

}  // namespace

Bytes EncodeRankPlan(const RankPlan& p) {
  std::map<Shape, uint32_t> index;
  std::vector<const Shape*> shapes;
  WireWriter extents;
  extents.U64(p.extents.size());
  for (const PlanExtent& e : p.extents) {
    extents.U32(e.file);
    extents.U64(e.range.begin);
    extents.U64(e.range.size());
    extents.U64(e.header_bytes);
    extents.U64(e.parts.size());
    for (const PlanPart& part : e.parts) {
      const auto [it, added] = index.try_emplace(Shape{part.tensor, part.geometry},
                                                 static_cast<uint32_t>(shapes.size()));
      if (added) shapes.push_back(&it->first);
      extents.U32(it->second);
      extents.U64(part.range.begin);
      extents.U64(part.range.size());
      extents.I32(part.source_rank);
      extents.U32(part.source_shard);
    }
  }
  WireWriter w;
  w.U64(p.tensors.size());
  for (const PlacedTensor& t : p.tensors) {
    PutTensor(w, t.desc);
    w.U64(t.offset);
  }
  w.U64(shapes.size());
  for (const Shape* s : shapes) {
    w.U32(s->tensor);
    PutGeometry(w, s->geometry);
  }
  return w.Take() + extents.Take();
}

Result<RankPlan> DecodeRankPlan(std::string_view bytes) {
  WireReader r(bytes);
  RankPlan p;
  std::vector<Shape> shapes;
  CKPT_RETURN_IF_ERROR(ReadTensors(r, &p));
  CKPT_RETURN_IF_ERROR(ReadShapes(r, p, &shapes));
  CKPT_RETURN_IF_ERROR(ReadExtents(r, shapes, &p));
  if (!r.AtEnd()) return Malformed(r.ok() ? "bytes after the end" : "it is cut short");
  return p;
}

}  // namespace ckpt
