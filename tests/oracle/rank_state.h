// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// What the reference draws, given to the library: one rank's ckpt_state and the memory behind it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/ckpt_lib.h"
#include "oracle/draw.h"
#include "oracle/load_case.h"
#include "oracle/perturb.h"

namespace oracle {

// A shard as the C ABI takes it, its memory in `buffer`.
ckpt_test::Tensor Described(const Shard& s, std::string* buffer);

// The units of a shard as they lie in the memory of a rank that saves.
std::string SavedMemory(const Model& model, const Shard& s);

// A state to save. What is wrong with it, if anything, is told by `p`.
class SaveState {
 public:
  SaveState(ckpt_test::Ctx& ctx, const SaveCase& c, int rank, const Perturbation& p);
  ckpt_test::State& state() { return state_; }
  const std::vector<std::string>& refused() const { return refused_; }  // calls that failed

 private:
  void AddBlobs(const SaveCase& c, int rank, const Perturbation& p);
  void Note(const std::string& what, const ckpt_test::Outcome& o);

  std::vector<std::unique_ptr<std::string>> memory_;
  ckpt_test::State state_;
  std::vector<std::string> refused_;
};

// A state to load into, and the comparison of its memory with what the reference wants.
class LoadState {
 public:
  LoadState(ckpt_test::Ctx& ctx, const LoadPart& part);
  ckpt_test::State& state() { return state_; }
  // Differences, in words; adds to *units what was compared.
  std::vector<std::string> Compare(const LoadPart& part, const LoadWant& want, int rank,
                                   uint64_t* units) const;

 private:
  std::vector<std::unique_ptr<std::string>> memory_, blobs_;
  std::vector<std::unique_ptr<uint64_t>> actual_;
  std::vector<std::string> refused_;
  ckpt_test::State state_;
};

}  // namespace oracle
