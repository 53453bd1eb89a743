// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The comparison notices: one state is saved and loaded by the library, and every kind of thing
// that the reference says about it is falsified, one after the other.
#include <functional>

#include "oracle/disk_check.h"
#include "oracle/rank_state.h"
#include "process/process.h"

namespace oracle {
namespace {

using namespace ckpt_test;

constexpr int kRanks = 2;
constexpr uint64_t kStep = 3;

// Has two tensors of a dtype without a name, a tie, blobs of all scopes and metadata.
SaveCase Rich(const JobOptions& options) {
  for (uint64_t seed = 0;; ++seed) {
    SaveCase c = DrawSave(seed, kRanks, options);
    const Step step = Expect(c.model, c.parts, options.store);
    std::set<uint32_t> scopes;
    for (const Blob& blob : c.model.blobs) scopes.insert(blob.scope);
    if (scopes.size() == 3 && !step.dtypes.empty() && !step.aliases.empty() && !step.side.empty() &&
        step.side.begin()->second.size() > 5 && !c.model.metadata.empty())
      return c;
  }
}

class Check : public testing::Test {
 protected:
  void SetUp() override {
    const Result r = launch::Run({.ranks = kRanks, .deadline_s = 30}, [&](Rank& rank) {
      Ctx ctx({.root = root_, .config = options_.job, .layout_note = "n=2"});
      ASSERT_INIT(ctx);
      SaveState state(ctx, saved_, rank.id(), {});
      std::string metadata;
      for (const auto& [key, value] : saved_.model.metadata) metadata += key + "=" + value + "\n";
      EXPECT_OK(Save(ctx, state.state(), {.step = kStep, .tag = saved_.tag, .metadata = metadata}));
    });
    ASSERT_TRUE(r.ok()) << r.report();
  }

  std::vector<std::string> Differences() const {
    return CheckFolder(folder_, {saved_, step_, options_, kStep, "n=2"});
  }
  void ExpectNoticed(const std::string& what) { EXPECT_FALSE(Differences().empty()) << what; }

  const JobOptions options_ = [] {
    JobOptions o;
    o.job = "max_file_bytes=9000\n";
    o.store.max_file_bytes = 9000;
    return o;
  }();
  const Scratch scratch_;
  const std::string root_ = scratch_ / "root", folder_ = StepPath(root_, kStep);
  SaveCase saved_ = Rich(options_);
  Step step_ = Expect(saved_.model, saved_.parts, options_.store);
};

TEST_F(Check, NothingIsNoticedWhereNothingIsWrong) {
  EXPECT_EQ(Differences(), std::vector<std::string>{});
}

TEST_F(Check, AFalsifiedExpectationIsNoticed) {
  const Step right = step_;
  const std::pair<const char*, std::function<void()>> lies[] = {
      {"a data byte", [&] { step_.data.rbegin()->second.back() ^= 1; }},
      {"a header byte", [&] { step_.data.begin()->second[100] ^= 1; }},
      {"a file more", [&] { step_.data["other.safetensors"] = ""; }},
      {"a file less", [&] { step_.data.erase(step_.data.begin()); }},
      {"an index", [&] { step_.index.begin()->second += " "; }},
      {"a side file", [&] { step_.side.begin()->second.pop_back(); }},
      {"an alias", [&] { step_.aliases.begin()->second.begin()->second += "x"; }},
      {"a dtype", [&] { step_.dtypes.begin()->second.begin()->second ^= 1; }},
      {"a group", [&] { step_.groups.begin()->second.pop_back(); }}};
  for (const auto& [what, tell] : lies) {
    step_ = right;
    tell();
    ExpectNoticed(what);
  }
  step_ = right;
  const SaveCase truth = saved_;
  saved_.tag += "x";
  ExpectNoticed("the tag");
  saved_ = truth;
  saved_.model.blobs[0].bytes.assign(kRanks, 4000);
  ExpectNoticed("the size of a blob");
  saved_ = truth;
  EXPECT_TRUE(Differences().empty());
}

TEST_F(Check, AFlippedByteOfAnyFileIsNoticed) {
  for (const std::string& name : List(folder_)) {
    const std::string path = folder_ + "/" + name, right = safetensors::ReadBytes(path);
    if (right.empty()) continue;
    std::string wrong = right;
    wrong[wrong.size() / 2] ^= 2;
    safetensors::WriteBytes(path, wrong);
    bool noticed = true;
    try {
      noticed = !Differences().empty();
    } catch (const std::exception&) {  // ckpt.json is no JSON any more
    }
    EXPECT_TRUE(noticed) << name;
    safetensors::WriteBytes(path, right);
  }
  EXPECT_TRUE(Differences().empty());
}

TEST_F(Check, AWrongUnitInMemoryAndATouchedGapAreNoticed) {
  const Result r = launch::Run({.ranks = 1, .deadline_s = 30}, [&](Rank&) {
    Ctx ctx({.root = root_});
    ASSERT_INIT(ctx);
    LoadCase load;
    do {  // one that succeeds and asks for something
      saved_.seed += 1;
      load = DrawLoad(saved_, step_, 1);
    } while (!ExpectLoad(saved_, step_, load).errors.empty() || load.parts[0].shards.size() < 3 ||
             load.parts[0].blobs.empty());
    const LoadAnswer answer = ExpectLoad(saved_, step_, load);
    LoadState into(ctx, load.parts[0]);
    EXPECT_OK(Load(ctx, into.state(), {.step = kStep, .flags = load.flags}));
    uint64_t units = 0;
    EXPECT_TRUE(into.Compare(load.parts[0], answer.ranks[0], 0, &units).empty());
    for (size_t i = 0; i < load.parts[0].shards.size(); ++i) {
      for (const bool last : {false, true}) {
        LoadWant lie = answer.ranks[0];
        std::string& memory = lie.memory[i];
        memory[last ? memory.size() - 1 : memory.size() / 2] ^= 1;
        EXPECT_EQ(into.Compare(load.parts[0], lie, 0, &units).size(), 1u);
      }
    }
    LoadWant lie = answer.ranks[0];
    lie.actual[0] += 1;
    EXPECT_EQ(into.Compare(load.parts[0], lie, 0, &units).size(), 1u);
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

}  // namespace
}  // namespace oracle
