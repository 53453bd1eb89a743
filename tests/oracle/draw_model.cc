// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Random options and models. Splits: draw_split.cc.
#include <algorithm>
#include <set>

#include "oracle/draw.h"

namespace oracle {

namespace {

const std::vector<std::string> kGroups = {"model", "optimizer",         "A-1_b", "m-00001-of-00002",
                                          "blob",  std::string(64, 'z')};
const std::vector<std::string> kNames = {"layer.0.weight",
                                         "layer.1.bias",
                                         "_orig_mod.layer.w",
                                         "module.a",
                                         "a/b/../c",
                                         " ",
                                         "..",
                                         "0",
                                         "quote\"back\\slash",
                                         "tab\tline\nend\r",
                                         "\x01\x1f",
                                         "\x7f",
                                         "__metadata",
                                         "rank/000000/x",
                                         "\xC3\xBC\xC3\xB1.\xE9\x87\x8D\xE3\x81\xBF",
                                         "\xF0\x9F\x98\x80",
                                         "\xE2\x80\xAE"
                                         "rtl",
                                         "shared/x",
                                         "dtype",
                                         std::string(300, 'n')};
const std::vector<std::string> kSideFiles = {"config.json",  "LATEST", "model.safetensor", "a b",
                                             "\xC3\xBC.txt", "-",      "ckpt.json.bak",    "~"};

std::string FreshName(Rng* rng, std::set<std::string>* taken) {
  std::string name = rng->Of(kNames);
  if (rng->OneIn(2)) name += "." + std::to_string(rng->In(0, 99));
  while (!taken->insert(name).second) name += "'";
  return name;
}

Dims DrawShape(Rng* rng) {
  static const std::vector<int64_t> largest = {0, 2500, 50, 14, 7, 5};
  const auto ndim = static_cast<size_t>(rng->In(0, 5));
  Dims shape;
  for (size_t k = 0; k < ndim; ++k) {
    int64_t n = rng->In(1, largest[ndim]);
    if (rng->OneIn(2)) n = std::min<int64_t>(n, rng->In(1, 9));
    if (rng->OneIn(25)) n = 0;
    shape.push_back(n);
  }
  return shape;
}

Tensor DrawTensor(Rng* rng, const std::string& group, const std::string& name, bool large) {
  Tensor t{.group = group, .name = name, .shape = DrawShape(rng), .seed = rng->Next()};
  t.cast = rng->OneIn(3);
  t.dtype = t.cast ? rng->Of(FloatDTypes()) : rng->Of(DTypes()).code;
  t.exact = t.cast && rng->OneIn(3);
  const DType& d = FindDType(t.dtype);
  if (large) t.shape = {rng->In(1, 9), rng->In(50'000, 250'000) / d.bytes};
  if (d.per_unit > 1 && t.shape.empty()) t.shape = {rng->In(1, 9)};
  const auto ndim = static_cast<int64_t>(t.shape.size());
  const int64_t dims = d.per_unit > 1 ? ndim - 1 : ndim;  // F4's last one stays contiguous
  if (dims > 0 && rng->OneIn(6)) t.same_along = static_cast<int>(rng->In(0, dims - 1));
  return t;
}

void DrawAliases(Rng* rng, std::map<std::string, std::set<std::string>>* taken, Model* model) {
  for (int64_t n = model->tensors.empty() || rng->OneIn(2) ? 0 : rng->In(1, 3); n > 0; --n) {
    const Tensor& t = rng->Of(model->tensors);
    Alias alias{t.group, FreshName(rng, &(*taken)[t.group]), t.name};
    // Of an alias, which is declared before or after it.
    if (!model->aliases.empty() && rng->OneIn(2)) {
      const Alias& other = rng->Of(model->aliases);
      alias = {other.group, FreshName(rng, &(*taken)[other.group]), other.name};
    }
    model->aliases.push_back(alias);
  }
}

std::vector<int> Some(Rng* rng, int ranks) {
  std::vector<int> out = {static_cast<int>(rng->In(0, ranks - 1))};
  for (int r = 0; r < ranks; ++r)
    if (r != out[0] && rng->OneIn(2)) out.push_back(r);
  std::sort(out.begin(), out.end());
  return out;
}

void DrawBlobs(Rng* rng, int ranks, Model* model) {
  std::set<std::string> names, files;
  for (int64_t n = rng->In(0, 4); n > 0; --n) {
    Blob blob;
    blob.scope = static_cast<uint32_t>(rng->In(0, 2));
    blob.seed = rng->Next();
    if (blob.scope == CKPT_BLOB_FILE) {
      blob.name = rng->Of(kSideFiles);
      if (!files.insert(blob.name).second) continue;
    } else {
      blob.name = FreshName(rng, &names);
    }
    blob.ranks = Some(rng, ranks);
    blob.required = static_cast<int>(blob.ranks.size()) == ranks && rng->OneIn(2);
    const int64_t bytes = rng->OneIn(5) ? 0 : rng->In(1, 3000);
    for (int r = 0; r < ranks; ++r)
      blob.bytes.push_back(blob.scope == CKPT_BLOB_PER_RANK && rng->OneIn(3) ? rng->In(0, 50)
                                                                             : bytes);
    model->blobs.push_back(blob);
  }
}

std::string Size(Rng* rng, const std::string& key, const std::vector<std::string>& values) {
  const std::string& value = rng->Of(values);
  return value.empty() ? "" : key + "=" + value + "\n";
}

}  // namespace

std::vector<uint32_t> FloatDTypes() {
  std::vector<uint32_t> out;
  for (const DType& d : DTypes())
    if (d.frac > 0) out.push_back(d.code);
  return out;
}

Model DrawModel(Rng* rng, int ranks, bool large_tensors) {
  Model model;
  std::vector<std::string> groups = kGroups;
  rng->Shuffle(&groups);
  if (rng->OneIn(2)) groups[0] = "model";
  groups.resize(static_cast<size_t>(rng->In(1, 3)));
  std::map<std::string, std::set<std::string>> taken;
  const int64_t tensors = rng->In(0, 12);
  const int64_t large = large_tensors && rng->OneIn(40) ? rng->In(0, 11) : -1;
  for (int64_t i = 0; i < tensors; ++i) {
    const std::string& group = rng->Of(groups);
    model.tensors.push_back(DrawTensor(rng, group, FreshName(rng, &taken[group]), i == large));
  }
  DrawAliases(rng, &taken, &model);
  DrawBlobs(rng, ranks, &model);
  for (const char* key : {"k", "note", "\xE9\x87\x8D \"q\""})
    if (rng->OneIn(4)) model.metadata.emplace_back(key, rng->OneIn(2) ? "" : "a=b \\ \"c\"");
  return model;
}

JobOptions DrawOptions(uint64_t seed, int ranks) {
  Rng rng(Mix(seed, 1000));
  JobOptions o;
  static const std::vector<uint64_t> limits = {1, 4200, 5000, 9000, 20'000, 100'000, 5'000'000'000};
  o.store.max_file_bytes = rng.Of(limits);
  o.store.duplicate_ties = rng.OneIn(3);
  o.checks_replicas = !rng.OneIn(4);
  const std::string chunk =
      rng.Of(std::vector<std::string>{"64", "208", "1008", "16KiB", "64KiB", ""});
  o.large_tensors = chunk.empty() || chunk.back() == 'B';
  o.job = "max_file_bytes=" + std::to_string(o.store.max_file_bytes) + "\n";
  o.job += o.store.duplicate_ties ? "ties=duplicate\n" : "ties=drop\n";
  o.job += "replica.check=" +
           std::string(!o.checks_replicas ? "off"
                       : rng.OneIn(2)     ? "full"
                                          : "sampled") +
           "\n";
  if (!chunk.empty()) o.job += "limits.chunk_bytes=" + chunk + "\n";
  o.job += Size(&rng, "io.align", {"4KiB", "8192", "64KiB", ""});
  o.job += Size(&rng, "plan.min_run", {"0", "1", "100", "4KiB", ""});
  for (int r = 0; r < ranks; ++r)
    o.rank.push_back(Size(&rng, "io.block", {"4KiB", "12KiB", "64KiB", ""}) +
                     Size(&rng, "io.threads", {"1", "2", "3"}) +
                     Size(&rng, "io.direct", {"auto", "off"}));
  if (ranks > 1 && rng.OneIn(2)) o.no_write = static_cast<int>(rng.In(0, ranks - 1));
  return o;
}

}  // namespace oracle
