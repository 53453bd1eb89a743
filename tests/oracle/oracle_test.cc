// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The library against the reference: random states, saved by N ranks under random options, compared
// on disk, loaded by M ranks that cut and hold them in other ways.
//
//   CKPT_ORACLE_STATES=n   states per number of ranks (default: CKPT_ORACLE_DEFAULT_STATES)
//   CKPT_ORACLE_SEED=s     seed of the first; one state is reproduced by its seed and STATES=1
#include <cstdlib>
#include <sstream>

#include "oracle/disk_check.h"
#include "oracle/rank_state.h"
#include "process/process.h"

namespace oracle {
namespace {

using namespace ckpt_test;

uint64_t FromEnv(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Seeds of one block: one context, one set of options.
struct Batch {
  uint64_t first = 0, end = 0;
  int saved_by = 1, loaded_by = 1;
  JobOptions save, load;
  std::string root;
};

Batch MakeBatch(uint64_t first, uint64_t last, int ranks, const std::string& root) {
  Batch b;
  b.first = first;
  b.end = std::min(last, (first / kBlock + 1) * kBlock);
  Rng rng(Mix(first / kBlock, 2000));
  b.saved_by = ranks;
  b.loaded_by = static_cast<int>(rng.Of(std::vector<int64_t>{1, 2, 3, 5}));
  b.save = DrawOptions(first / kBlock, b.saved_by);
  b.load = DrawOptions(~(first / kBlock), b.loaded_by);
  b.root = root;
  return b;
}

CtxOptions ContextOf(const Batch& b, const JobOptions& o, const Rank& rank) {
  CtxOptions options{.root = b.root, .config = o.Text(rank.id()), .timeout_ms = 60'000};
  options.heartbeat_ms = 1000;
  if (o.no_write == rank.id()) options.flags = CKPT_INIT_NO_WRITE;
  options.layout_note = "n=" + std::to_string(b.saved_by);
  return options;
}

std::string Reproduce(uint64_t seed) {
  return "\n  CKPT_ORACLE_SEED=" + std::to_string(seed) + " CKPT_ORACLE_STATES=1";
}

std::string Brief(const SaveCase& c, const JobOptions& o) {
  std::ostringstream out;
  out << Reproduce(c.seed) << "\n  " << o.job;
  for (size_t k = 0; k < c.model.tensors.size(); ++k) {
    const Tensor& t = c.model.tensors[k];
    out << "  " << k << " " << t.group << "/" << testing::PrintToString(t.name) << " "
        << FindDType(t.dtype).name << testing::PrintToString(t.shape) << (t.cast ? " cast" : "");
    for (size_t r = 0; r < c.parts.size(); ++r)
      for (const Shard& s : c.parts[r].shards)
        if (s.tensor == static_cast<int>(k))
          out << "; " << r << ":" << FindDType(s.dtype).name << " kind " << s.kind
              << testing::PrintToString(s.offset) << testing::PrintToString(s.extent) << s.begin
              << "+" << s.count << testing::PrintToString(s.strides);
    out << "\n";
  }
  for (const Alias& a : c.model.aliases)
    out << "  " << a.group << "/" << a.name << " -> " << a.of << "\n";
  return out.str();
}

std::string Brief(const LoadPart& part) {
  std::ostringstream out;
  for (const Shard& s : part.shards)
    out << "  asks " << s.group << "/" << testing::PrintToString(s.name) << " "
        << FindDType(s.dtype).name << testing::PrintToString(s.shape) << " kind " << s.kind
        << " store_dtype " << s.store_dtype << " flags " << s.flags << "\n";
  for (const Alias& a : part.aliases)
    out << "  alias " << a.group << "/" << testing::PrintToString(a.name) << " -> "
        << testing::PrintToString(a.of) << "\n";
  out << "  renames " << testing::PrintToString(part.renames) << "\n";
  return out.str();
}

// The root as far as a save that fails may not change it.
std::string RootNow(const std::string& root) {
  std::string out;
  for (const std::string& name : List(root))
    if (name != ".ckpt") out += name + "\n";
  std::error_code none;
  if (std::filesystem::exists(root + "/LATEST", none))
    out += safetensors::ReadBytes(root + "/LATEST");
  return out;
}

// --- one rank's side

struct Counts {
  uint64_t shards = 0, saves = 0, refused = 0, loads = 0, units = 0;
};

bool Named(const SaveCase& c, const Perturbation& p, const std::string& name) {
  if (name == p.name) return true;
  for (const Alias& a :
       Resolved(c.model.aliases))  // ties=duplicate: the same shards by another name
    if (p.kind == "replica" && a.of == p.name && a.name == name) return true;
  return false;
}

// What is wrong gets its code and name on all ranks alike, and changes nothing on disk.
void SaveWrong(Rank& rank, Ctx& ctx, const Batch& b, uint64_t seed, Counts* n) {
  SaveCase c = DrawSave(seed, b.saved_by, b.save);
  const Perturbation p = Perturb(seed, b.save, &c);
  if (p.kind.empty()) return;
  const std::string before = RootNow(b.root);
  SaveState wrong(ctx, c, rank.id(), p);
  const Outcome o = Save(ctx, wrong.state(), static_cast<int64_t>(seed));
  EXPECT_EQ(std::string(StatusName(o.status)), StatusName(p.status))
      << p.kind << o << Brief(c, b.save);
  EXPECT_TRUE(Named(c, p, o.cause.name)) << p.kind << " of " << p.name << o << Brief(c, b.save);
  // Rank 0 returns when its folders are tidy; the others may see it at work.
  EXPECT_TRUE(!rank.is(0) || RootNow(b.root) == before) << p.kind << Reproduce(seed);
  Publish(rank, "wrong " + std::to_string(seed), o);
  // As a trainer's own collectives do: who runs ahead of the others may meet their late calls.
  rank.Barrier("after");
  n->refused += 1;
}

// False: the save failed, on all ranks.
bool SaveRight(Rank& rank, Ctx& ctx, const Batch& b, uint64_t seed, Counts* n) {
  const SaveCase c = DrawSave(seed, b.saved_by, b.save);
  SaveState right(ctx, c, rank.id(), {});
  for (const std::string& refused : right.refused()) ADD_FAILURE() << refused << Reproduce(seed);
  const Outcome o =
      Save(ctx, right.state(), {.step = static_cast<int64_t>(seed), .tag = c.tag, .metadata = [&] {
                                  std::string text;
                                  for (const auto& [key, value] : c.model.metadata)
                                    text += key + "=" + value + "\n";
                                  return text;
                                }()});
  EXPECT_TRUE(o.ok()) << o << Brief(c, b.save);
  const uint64_t shards = c.parts[static_cast<size_t>(rank.id())].shards.size();
  EXPECT_EQ(o.result.tensors, shards) << Reproduce(seed);
  n->shards += shards;
  n->saves += 1;
  return o.ok();
}

void Tell(Rank& rank, const Counts& n) {
  for (const auto& [key, value] : std::map<std::string, uint64_t>{{"shards", n.shards},
                                                                  {"saves", n.saves},
                                                                  {"refused", n.refused},
                                                                  {"loads", n.loads},
                                                                  {"units", n.units}})
    rank.Put(key, std::to_string(value));
}

void SaveRank(Rank& rank, const Batch& b) {
  Ctx ctx(ContextOf(b, b.save, rank));
  ASSERT_INIT(ctx);
  Counts n;
  for (uint64_t seed = b.first; seed < b.end; ++seed) {
    if (seed % 2 == 0) SaveWrong(rank, ctx, b, seed, &n);
    if (!SaveRight(rank, ctx, b, seed, &n)) break;
  }
  Tell(rank, n);
  EXPECT_OK(ctx.Finalize(60'000));
}

// By its number, as the newest, or from its folder.
LoadOptions WhichStep(const Batch& b, uint64_t seed, uint32_t flags) {
  LoadOptions o{.step = static_cast<int64_t>(seed), .flags = flags};
  if (seed % 5 < 2) o.uri = StepPath(b.root, o.step);
  if (seed % 5 == 0 || (seed % 5 == 2 && seed + 1 == b.end)) o.step = -1;
  return o;
}

void Verify(const std::string& folder) {
  ckpt_reader* reader = nullptr;
  ckpt_error* error = nullptr;
  const ckpt_status opened = Lib().ckpt_open(folder.c_str(), CKPT_LOAD_LATEST, 0, &reader, &error);
  EXPECT_OK(Take(opened, error));
  if (reader == nullptr) return;
  const ckpt_status verified = Lib().ckpt_reader_verify(reader, nullptr, nullptr, &error);
  EXPECT_OK(Take(verified, error));
  Lib().ckpt_reader_free(reader);
}

void LoadOne(Rank& rank, Ctx& ctx, const Batch& b, uint64_t seed, Counts* n) {
  const SaveCase c = DrawSave(seed, b.saved_by, b.save);
  const Step step = Expect(c.model, c.parts, b.save.store);
  const LoadCase load = DrawLoad(c, step, b.loaded_by);
  const LoadAnswer answer = ExpectLoad(c, step, load);
  const auto r = static_cast<size_t>(rank.id());
  const LoadWant& want = answer.ranks[r];
  LoadState into(ctx, load.parts[r]);
  const Outcome o = Load(ctx, into.state(), WhichStep(b, seed, load.flags));
  if (answer.errors.empty()) {
    EXPECT_TRUE(o.ok()) << o << Brief(c, b.save) << " flags " << load.flags << "\n"
                        << Brief(load.parts[r]);
    EXPECT_EQ(o.result.tensors, want.found) << Reproduce(seed);
    EXPECT_EQ(o.result.unused, answer.unused.size()) << Reproduce(seed);
    EXPECT_EQ(into.state().Unused(), answer.unused) << Reproduce(seed);
  } else {
    EXPECT_EQ(answer.errors.count({o.status, o.cause.name}), 1u)
        << o << testing::PrintToString(answer.errors) << Brief(c, b.save) << Brief(load.parts[r]);
    EXPECT_EQ(o.result.tensors, 0u) << Reproduce(seed);
    Publish(rank, "load " + std::to_string(seed), o);
    n->refused += 1;
  }
  EXPECT_EQ(into.state().Missing(), want.missing) << Reproduce(seed);
  EXPECT_EQ(o.result.missing, want.missing.size()) << Reproduce(seed);
  for (const std::string& difference : into.Compare(load.parts[r], want, rank.id(), &n->units))
    ADD_FAILURE() << difference << Brief(c, b.save);
  if (rank.is(0)) Verify(StepPath(b.root, static_cast<int64_t>(seed)));
  n->loads += 1;
}

void LoadRank(Rank& rank, const Batch& b) {
  Ctx ctx(ContextOf(b, b.load, rank));
  ASSERT_INIT(ctx);
  Counts n;
  for (uint64_t seed = b.first; seed < b.end && !testing::Test::HasFailure(); ++seed)
    LoadOne(rank, ctx, b, seed, &n);
  Tell(rank, n);
  EXPECT_OK(ctx.Finalize(60'000));
}

// --- the parent's side

// What the ranks said of their errors: all the same.
void ExpectAlike(const Result& r, const Batch& b, const std::string& what) {
  for (uint64_t seed = b.first; seed < b.end; ++seed)
    for (int i = 1; i < r.size(); ++i)
      EXPECT_EQ(r.get(i, what + std::to_string(seed)), r.get(0, what + std::to_string(seed)))
          << "ranks 0 and " << i << Reproduce(seed);
}

void CheckDisk(const Batch& b) {
  std::set<std::string> steps;
  for (uint64_t seed = b.first; seed < b.end; ++seed) {
    const SaveCase c = DrawSave(seed, b.saved_by, b.save);
    const Step step = Expect(c.model, c.parts, b.save.store);
    const DiskWant want{c, step, b.save, static_cast<int64_t>(seed),
                        "n=" + std::to_string(b.saved_by)};
    steps.insert(StepName(static_cast<int64_t>(seed)));
    for (const std::string& difference :
         CheckFolder(StepPath(b.root, static_cast<int64_t>(seed)), want))
      ADD_FAILURE() << difference << Brief(c, b.save);
  }
  EXPECT_EQ(ListOf(b.root, "step-"), steps);
  ExpectNoLeftovers(b.root);
}

class Oracle : public testing::TestWithParam<int> {
 protected:
  void RunBatch(const Batch& b) {
    const Result saved = launch::Run({.ranks = b.saved_by, .deadline_s = 300},
                                     [&](Rank& rank) { SaveRank(rank, b); });
    ASSERT_TRUE(saved.ok()) << saved.report() << Reproduce(b.first);
    ExpectAlike(saved, b, "wrong ");
    CheckDisk(b);
    if (HasFailure()) return;
    const Result loaded = launch::Run({.ranks = b.loaded_by, .deadline_s = 300},
                                      [&](Rank& rank) { LoadRank(rank, b); });
    ASSERT_TRUE(loaded.ok()) << loaded.report();
    ExpectAlike(loaded, b, "load ");
    states_ += b.end - b.first;
    for (int i = 0; i < saved.size(); ++i) shards_ += std::stoull(saved.get(i, "shards"));
    for (int i = 0; i < loaded.size(); ++i) units_ += std::stoull(loaded.get(i, "units"));
    saves_ += std::stoull(saved.get(0, "saves"));
    refused_ += std::stoull(saved.get(0, "refused")) + std::stoull(loaded.get(0, "refused"));
    loads_ += std::stoull(loaded.get(0, "loads"));
  }

  uint64_t states_ = 0, shards_ = 0, saves_ = 0, refused_ = 0, loads_ = 0, units_ = 0;
};

TEST_P(Oracle, LibraryAndReferenceAgree) {
  const int ranks = GetParam();
  const uint64_t first = FromEnv("CKPT_ORACLE_SEED", 1'000'000 * static_cast<uint64_t>(ranks));
  const uint64_t last = first + FromEnv("CKPT_ORACLE_STATES", CKPT_ORACLE_DEFAULT_STATES);
  for (uint64_t at = first; at < last && !HasFailure();) {
    const Scratch scratch;
    const Batch b = MakeBatch(at, last, ranks, scratch / "root");
    RunBatch(b);
    at = b.end;
  }
  std::printf(
      "oracle, saved by %d: %llu states, %llu shards, %llu saves, %llu loads, %llu refused as "
      "they should be, %llu units compared in memory; %s; seed %llu\n",
      ranks, static_cast<unsigned long long>(states_), static_cast<unsigned long long>(shards_),
      static_cast<unsigned long long>(saves_), static_cast<unsigned long long>(loads_),
      static_cast<unsigned long long>(refused_), static_cast<unsigned long long>(units_),
      HasFailure() ? "DIFFERENCES" : "0 differences", static_cast<unsigned long long>(first));
}
INSTANTIATE_TEST_SUITE_P(Saved, Oracle, testing::Values(1, 2, 3, 4, 7), RankCount);

}  // namespace
}  // namespace oracle
