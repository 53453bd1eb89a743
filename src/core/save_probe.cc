// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The storage probe of a first save: a checkpoint whose parts lie on the disks of different hosts
// is none.  Ranks of one machine that spell the root alike need no probe.  The rank's side is in
// save.cc.  Test: tests/crash/hosts_test.cc
#include <map>
#include <random>

#include "core/save.h"
#include "util/text.h"

namespace ckpt {
namespace {

std::string Describe(const std::vector<SaveRequest>& requests, size_t rank) {
  return Cat("rank ", rank, " (host ", requests[rank].place.host, ", root ", requests[rank].root,
             ")");
}

struct Places {
  size_t count = 0;
  std::vector<size_t> writers;  // the first rank of each that may write
};

Places PlacesOf(const std::vector<SaveRequest>& requests) {
  std::map<std::pair<std::string, std::string>, bool> has_writer;
  Places out;
  for (size_t rank = 0; rank < requests.size(); ++rank) {
    bool& has = has_writer[{requests[rank].place.machine, requests[rank].root}];
    // Rank 0 makes folders and records in any case.
    if (has || !(requests[rank].may_write || rank == 0)) continue;
    has = true;
    out.writers.push_back(rank);
  }
  out.count = has_writer.size();
  return out;
}

}  // namespace

std::optional<Status> SaveCoordinator::ProbeStorage(const std::vector<SaveRequest>& requests,
                                                    uint32_t* phase) {
  if (s_->storage_is_shared) return Status();
  const Places places = PlacesOf(requests);
  if (places.count > 1) {
    Group& group = s_->group();
    // Makes root/.ckpt, where the probes go.
    const Status taken = TakeRoot().status();
    if (!taken.ok()) return taken;
    const std::string nonce =
        fmt::format("{:08x}{:08x}", std::random_device()(), std::random_device()());
    std::vector<Bytes> orders(requests.size(), EncodeProbeOrder({nonce, false}));
    for (size_t rank : places.writers) orders[rank] = EncodeProbeOrder({nonce, true});
    group.Publish(round_, kSavePlanPhase, Status(), std::move(orders), /*last=*/false);
    const auto written = Collect(kProbeWrittenPhase);
    if (!written) return std::nullopt;
    std::vector<std::string> names;  // by rank; "" where there is nothing to see
    for (const Bytes& name : *written) names.push_back(name);
    group.Publish(round_, kProbeWrittenPhase, Status(), {EncodeNames(names)}, /*last=*/false);
    const auto unseen = Collect(kProbeSeenPhase);
    if (!unseen) return std::nullopt;
    *phase = kProbeSeenPhase;
    const Status one_storage = JudgeProbe(requests, names, *unseen);
    (void)RemoveProbes(s_->root(), nonce).ok();  // else the next owner does it
    if (!one_storage.ok()) {
      s_->DropOwner();
      return one_storage;
    }
  }
  s_->storage_is_shared = true;
  return Status();
}

Status SaveCoordinator::JudgeProbe(const std::vector<SaveRequest>& requests,
                                   const std::vector<std::string>& names,
                                   const std::vector<Bytes>& unseen) const {
  std::string words;
  int32_t first = -1;
  const auto add = [&](size_t rank, size_t other) {
    if (first < 0) first = static_cast<int32_t>(rank);
    words += Cat(words.empty() ? "" : "; ", Describe(requests, rank),
                 " does not see the storage of ", Describe(requests, other));
  };
  for (size_t rank : PlacesOf(requests).writers) {
    if (names[rank].empty()) add(rank, 0);  // it found no root/.ckpt
  }
  for (size_t rank = 0; rank < unseen.size() && words.empty(); ++rank) {
    CKPT_ASSIGN_OR_RETURN(const std::vector<std::string> missing, DecodeNames(unseen[rank]));
    for (size_t other = 0; other < names.size() && !missing.empty(); ++other) {
      if (names[other] == missing[0]) add(rank, other);
    }
  }
  if (words.empty()) return Status();
  Cause cause;
  cause.rank = first;
  cause.path = requests[static_cast<size_t>(first)].root;
  cause.field = "root";
  return Status(Code::kUnsupported, Cat("all ranks must see one storage: ", words),
                std::move(cause));
}

}  // namespace ckpt
