// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Which stored tensors and blobs a state asks for, checked before a byte is read.
// Test: tests/unit/core/load_match_test.cc
#include <algorithm>
#include <map>
#include <set>

#include "core/load.h"
#include "meta/convert.h"
#include "util/text.h"

namespace ckpt {
namespace {

constexpr size_t kNamesInMessage = 5;

struct Stored {
  uint32_t file = 0;
  const PlacedTensor* tensor = nullptr;
  size_t index = 0;  // among the catalog's group tensors
};
using StoredIndex = std::map<std::pair<std::string, std::string>, Stored>;

Status Named(Code code, std::string message, const std::string& name, std::string field = "") {
  Cause cause;
  cause.name = name;
  cause.field = std::move(field);
  return Status(code, std::move(message), std::move(cause));
}

std::map<std::string, std::string> GroupOfFile(const Catalog& catalog) {
  std::map<std::string, std::string> out;
  for (const auto& [group, files] : catalog.record.groups) {
    for (const std::string& file : files) out[file] = group;
  }
  return out;
}

StoredIndex MakeIndex(const Catalog& catalog) {
  StoredIndex out;
  const std::map<std::string, std::string> groups = GroupOfFile(catalog);
  size_t index = 0;
  for (uint32_t f = 0; f < catalog.files.size(); ++f) {
    const auto group = groups.find(catalog.files[f].name);
    if (group == groups.end()) continue;
    for (const PlacedTensor& t : catalog.files[f].tensors) {
      out[{group->second, t.desc.name}] = {f, &t, group->second == "blobs" ? 0 : index++};
    }
  }
  return out;
}

std::string DTypeText(DType dtype) {
  Result<DTypeInfo> info = FindDType(dtype);
  return info.ok() ? std::string(info->name) : fmt::format("0x{:x}", dtype);
}

std::string Quoted(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < kNamesInMessage; ++i) {
    out += Cat(i == 0 ? "" : ", ", "\"", Printable(names[i]), "\"");
  }
  if (names.size() > kNamesInMessage) out += Cat(" and ", names.size() - kNamesInMessage, " more");
  return out;
}

// Stored names that end in a missing one ("_orig_mod.a" for "a"): what a wrapper's prefix does.
std::vector<std::string> Similar(const StoredIndex& index, const std::string& missing) {
  std::vector<std::string> out;
  for (const auto& [key, stored] : index) {
    const std::string& name = key.second;
    const bool ends = name.size() > missing.size() &&
                      name.compare(name.size() - missing.size(), missing.size(), missing) == 0;
    const bool starts = missing.size() > name.size() &&
                        missing.compare(missing.size() - name.size(), name.size(), name) == 0;
    if (key.first != "blobs" && (ends || starts)) out.push_back(name);
  }
  return out;
}

// Names that were asked for in vain, each once however many shards this rank has of them.
class MissingNames {
 public:
  bool Add(const TensorDesc& t) { return seen_.insert({t.group, t.name}).second; }

 private:
  std::set<std::pair<std::string, std::string>> seen_;
};

// A tensor by its name, by an alias that the checkpoint has, or by one that the state declares.
class Lookup {
 public:
  Lookup(const State& state, const Catalog& catalog, const StoredIndex& index)
      : catalog_(catalog), index_(index) {
    std::map<std::pair<std::string, std::string>, std::string> of;
    for (const AliasDesc& alias : state.aliases()) {
      of[{alias.group, state.StoredName(alias.name)}] = state.StoredName(alias.of);
    }
    for (const auto& [alias, first] : of) {
      std::string target = first;
      for (size_t links = 0; links < of.size(); ++links) {  // a circle ends somewhere
        const auto next = of.find({alias.first, target});
        if (next == of.end()) break;
        target = next->second;
      }
      names_of_[{alias.first, target}].push_back(alias.second);
    }
  }

  const Stored* Find(const std::string& group, const std::string& name) const {
    if (const Stored* stored = InCheckpoint(group, name)) return stored;
    for (const std::string& alias : AliasesOf(group, name)) {
      if (const Stored* stored = InCheckpoint(group, alias)) return stored;
    }
    return nullptr;
  }
  // By its own name or by an alias that the checkpoint has.
  const Stored* InCheckpoint(const std::string& group, const std::string& name) const {
    if (const Stored* stored = Exactly(group, name)) return stored;
    const auto aliases = catalog_.record.aliases.find(group);
    if (aliases == catalog_.record.aliases.end()) return nullptr;
    const auto of = aliases->second.find(name);
    return of == aliases->second.end() ? nullptr : Exactly(group, of->second);
  }
  const Stored* Exactly(const std::string& group, const std::string& name) const {
    const auto it = index_.find({group, name});
    return it == index_.end() ? nullptr : &it->second;
  }
  // Names that the state declares to be another name of this one.
  const std::vector<std::string>& AliasesOf(const std::string& group,
                                            const std::string& name) const {
    static const std::vector<std::string> none;
    const auto it = names_of_.find({group, name});
    return it == names_of_.end() ? none : it->second;
  }

 private:
  const Catalog& catalog_;
  const StoredIndex& index_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> names_of_;
};

// Asked for by the load's flag, or by the description: memory that is saved as the stored dtype.
bool MayConvert(const State::Tensor& want, DType stored, bool convert) {
  if (stored == want.memory.dtype) return true;
  return CanConvert(stored, want.memory.dtype) && (convert || stored == want.desc.dtype);
}

Status CheckStored(const State::Tensor& want, const TensorDesc& stored, bool convert) {
  const std::string& name = want.desc.name;
  if (!MayConvert(want, stored.dtype, convert)) {
    return Named(Code::kDtype,
                 Cat("tensor \"", Printable(name), "\" is stored as ", DTypeText(stored.dtype),
                     " but the destination is ", DTypeText(want.memory.dtype)),
                 name, "dtype");
  }
  if (stored.shape != want.desc.shape) {
    return Named(Code::kShape,
                 Cat("tensor \"", Printable(name), "\" is stored with shape ",
                     Bracketed(LogicalShape(stored)), " but the destination's global shape is ",
                     Bracketed(LogicalShape(want.desc))),
                 name, "shape");
  }
  return Status();
}

// False: there is no such tensor.
Result<bool> MatchTensor(const State& state, const State::Tensor& want, const Lookup& lookup,
                         bool convert, LoadMatch* match) {
  const std::string& group = want.desc.group;
  const std::string name = state.StoredName(want.desc.name);
  const Stored* found = lookup.Find(group, name);
  if (found == nullptr) return false;
  match->asked[found->index] = true;
  for (const std::string& alias : lookup.AliasesOf(group, name)) {
    if (const Stored* copy = lookup.Exactly(group, alias)) match->asked[copy->index] = true;
  }
  CKPT_RETURN_IF_ERROR(CheckStored(want, found->tensor->desc, convert));
  match->wanted.push_back({found->file, *found->tensor, want.geometry});
  match->destinations.push_back(want.memory);
  match->tensors += 1;
  match->bytes += static_cast<uint64_t>(Elements(want.geometry)) * want.memory.elem_bytes;
  return true;
}

Status CheckFits(const BlobSpec& want, uint64_t bytes) {
  if (bytes <= want.bytes) return Status();
  if (want.actual != nullptr) *want.actual = bytes;
  return Named(Code::kLimit,
               Cat("blob \"", Printable(want.name), "\" has ", bytes,
                   " bytes; the destination holds ", want.bytes),
               want.name);
}

Status MatchBlob(const BlobSpec& want, const Catalog& catalog, const StoredIndex& index,
                 int32_t rank, LoadMatch* match) {
  const int32_t writer = want.writer_rank >= 0 ? want.writer_rank : rank;
  uint64_t bytes = UINT64_MAX;
  if (want.scope == BlobScope::kFile) {
    for (const SmallFileRecord& file : catalog.record.side_files) {
      if (file.name != want.name) continue;
      CKPT_RETURN_IF_ERROR(CheckFits(want, file.bytes));
      bytes = file.bytes;
      match->side_files.push_back({file, static_cast<char*>(want.data)});
    }
  } else {
    const std::string stored = want.scope == BlobScope::kPerRank
                                   ? fmt::format("rank/{:06d}/{}", writer, want.name)
                                   : Cat("shared/", want.name);
    const auto it = index.find({"blobs", stored});
    if (it != index.end()) {
      const PlacedTensor& tensor = *it->second.tensor;
      if (tensor.desc.dtype != kU8) {
        return Named(Code::kCorrupt,
                     Cat("blob \"", Printable(want.name), "\" is stored as ",
                         DTypeText(tensor.desc.dtype), " in ", catalog.folder, ", not as bytes"),
                     want.name);
      }
      bytes = tensor.desc.bytes;
      CKPT_RETURN_IF_ERROR(CheckFits(want, bytes));
      match->wanted.push_back({it->second.file, tensor, MakeWhole(tensor.desc)});
      match->destinations.push_back({want.data, kU8, 1, {}, {}});
      match->bytes += bytes;
    }
  }
  if (bytes == UINT64_MAX && !want.optional) {
    const std::string whose =
        want.scope == BlobScope::kPerRank ? Cat(" of rank ", writer) : std::string();
    return Named(Code::kNotFound,
                 Cat("blob \"", Printable(want.name), "\"", whose, " is not in ", catalog.folder,
                     " (saved by ", catalog.record.world_size, " ranks)"),
                 want.name);
  }
  if (want.actual != nullptr) match->actual.emplace_back(want.actual, bytes);
  return Status();
}

Status MissingStatus(const std::vector<std::string>& missing, const StoredIndex& index,
                     const Catalog& catalog) {
  std::string message = Cat(missing.size() == 1 ? "tensor " : "tensors ", Quoted(missing),
                            missing.size() == 1 ? " is" : " are", " not in ", catalog.folder);
  const std::vector<std::string> similar = Similar(index, missing[0]);
  if (!similar.empty()) message += Cat("; it has ", Quoted(similar));
  return Named(Code::kNotFound, std::move(message), missing[0]);
}

}  // namespace

std::vector<std::string> UnusedNames(const Catalog& catalog, const std::vector<bool>& asked) {
  std::vector<std::string> out;
  for (const auto& [key, stored] : MakeIndex(catalog)) {
    if (key.first == "blobs") continue;
    if (stored.index >= asked.size() || !asked[stored.index]) out.push_back(key.second);
  }
  return out;
}

Status MatchState(const State& state, const Catalog& catalog, const LoadOptions& options,
                  int32_t rank, LoadMatch* match) {
  const StoredIndex index = MakeIndex(catalog);
  size_t group_tensors = 0;
  for (const auto& [key, stored] : index) group_tensors += key.first != "blobs";
  match->asked.assign(group_tensors, false);
  Status first;
  auto keep_first = [&](const Status& status) {
    if (first.ok()) first = status;
  };
  std::vector<std::string> required_missing;
  const Lookup lookup(state, catalog, index);
  MissingNames missing, required;
  for (const State::Tensor& want : state.tensors()) {
    const Result<bool> there = MatchTensor(state, want, lookup, options.convert, match);
    keep_first(there.status());
    const bool may_lack = !want.required && (want.optional || options.allow_missing);
    if (!there.ok() || *there) continue;
    if (missing.Add(want.desc)) match->missing.push_back(want.desc.name);
    if (!may_lack && required.Add(want.desc)) required_missing.push_back(want.desc.name);
  }
  if (!required_missing.empty()) {
    keep_first(MissingStatus(required_missing, index, catalog));
  }
  for (const BlobSpec& want : state.blobs()) {
    keep_first(MatchBlob(want, catalog, index, rank, match));
  }
  return first;
}

}  // namespace ckpt
