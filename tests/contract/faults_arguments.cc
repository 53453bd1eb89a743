// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// All call, and one passes something else: options, a common tensor, a common side file, or
// something that is no valid argument at all.
#include "contract/table.h"

namespace contract {
namespace {

using ckpt_test::Dims;
using ckpt_test::SaveOptions;
using ckpt_test::State;
using ckpt_test::Tensor;

std::function<void(Player&)> Options(const SaveOptions& common, const SaveOptions& of_rank_3) {
  return
      [=](Player& p) { p.Witness([&] { return p.trainer->Save(p.is(3) ? of_rank_3 : common); }); };
}

// A state of its own in which rank 3 says something else than the others of "x".
std::function<void(Player&)> Tensors(const std::function<void(const Player&, State&, void*)>& add) {
  return [add](Player& p) {
    std::vector<float> memory(64, 1.0f);
    State state(p.ctx());
    add(p, state, memory.data());
    p.Witness([&] { return Save(p.ctx(), state, kStep); });
  };
}

void OtherDtype(const Player& p, State& s, void* data) {
  s.Add({.name = "x",
         .shape = {16},
         .dtype = p.is(3) ? ckpt_test::kI64 : ckpt_test::kF32,
         .data = data});
}

void OtherShape(const Player& p, State& s, void* data) {
  s.Add({.name = "x", .shape = p.is(3) ? Dims{4, 4} : Dims{16}, .data = data});
}

// Rows of [16, 4]: 4 for each rank, but for rank 3's.
std::function<void(const Player&, State&, void*)> RowsOf3(int64_t offset, int64_t count) {
  return [=](const Player& p, State& s, void* data) {
    const Dims at = {p.is(3) ? offset : 4 * p.rank.id(), 0}, extent = {p.is(3) ? count : 4, 4};
    s.Add({.name = "x",
           .shape = {16, 4},
           .kind = CKPT_SHARD_BOX,
           .offset = at,
           .extent = extent,
           .data = data});
  };
}

void OtherContent(const Player& p, State& s, void* data) {
  static_cast<float*>(data)[3] = p.is(3) ? 2 : 1;
  s.Add({.name = "x", .shape = {16}, .data = data});
}

void OtherSideFile(const Player& p, State& s, void* data) {
  static_cast<char*>(data)[5] = p.is(3) ? 'a' : 'b';
  EXPECT_TRUE(s.TryBlob(CKPT_BLOB_FILE, "config.json", data, 64).ok());
}

}  // namespace

std::vector<Fault> ArgumentFaults() {
  constexpr auto kMismatch = CKPT_ERR_MISMATCH;
  const auto options = [](const std::string& what, const SaveOptions& common,
                          const SaveOptions& other) {
    return Fault{.name = "one passes another " + what,
                 .body = Options(common, other),
                 .code = kMismatch,
                 .says = "rank 3",
                 .either_side = true};
  };
  Fault tag = options("tag", {.step = kStep, .tag = "blue"}, {.step = kStep, .tag = "green"});
  tag.everywhere = true;
  tag.says = "\"green\" on rank 3";
  return {
      tag,
      options("on_existing", {.step = kStep}, {.step = kStep, .on_existing = CKPT_EXISTING_REFUSE}),
      options("metadata", {.step = kStep, .metadata = "k=blue"},
              {.step = kStep, .metadata = "k=green"}),
      options("timeout", {.step = kStep, .timeout_ms = 8000}, {.step = kStep, .timeout_ms = 9000}),
      {.name = "another dtype of a common tensor",
       .body = Tensors(OtherDtype),
       .code = kMismatch,
       .named = {3},
       .says = "model/x",
       .everywhere = true},
      {.name = "another shape of a common tensor",
       .body = Tensors(OtherShape),
       .code = kMismatch,
       .named = {3},
       .says = "model/x"},
      {.name = "a shard overlaps another's",
       .body = Tensors(RowsOf3(11, 5)),
       .code = CKPT_ERR_COVERAGE,
       .named = {3},
       .says = "model/x"},
      {.name = "a gap between the shards",
       .body = Tensors(RowsOf3(13, 3)),
       .code = CKPT_ERR_COVERAGE,
       .says = "model/x"},
      {.name = "other values of a common tensor",
       .body = Tensors(OtherContent),
       .code = CKPT_ERR_REPLICA,
       .named = {0, 3},
       .says = "rank 3 from rank 0-2"},
      {.name = "another content of a common side file",
       .body = Tensors(OtherSideFile),
       .code = kMismatch,
       .named = {3},
       .says = "config.json"},
      {.name = "one passes an invalid option",
       .body = Options({.step = kStep}, {.step = kStep, .on_existing = 99}),
       .code = CKPT_ERR_INVALID_ARGUMENT,
       .named = {3},
       .says = "on_existing",
       .everywhere = true},
  };
}

}  // namespace contract
