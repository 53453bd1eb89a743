// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Every name that the library makes or looks for on disk, and what a name from outside must be.
// Pure but for NewId (random); any thread.  Private to src/store (StepFolder and ParseStepFolder
// are in store.h).  Test: tests/unit/store/names_test.cc
#ifndef CKPT_STORE_NAMES_H_
#define CKPT_STORE_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "util/status.h"

namespace ckpt {

inline constexpr char kRecordFile[] = "ckpt.json";
inline constexpr char kLatestFile[] = "LATEST";
inline constexpr char kOwnerDir[] = ".ckpt";
inline constexpr char kOwnerFile[] = "owner.json";
inline constexpr char kPinnedMark[] = ".pinned";  // in a step folder, as the next
inline constexpr char kBadMark[] = ".bad";
inline constexpr char kBlobGroup[] = "blobs";
inline constexpr std::string_view kStagingPrefix = ".staging-";
inline constexpr std::string_view kTrashPrefix = ".trash-";
inline constexpr std::string_view kProbePrefix = "probe-";  // in .ckpt

// 16 hexadecimal digits that nobody else has.
std::string NewId();
std::string StagingFolder(std::string_view id);
std::string TrashFolder(std::string_view id);
std::string IntentFile(int64_t step);                           // ".replace-<step>"
std::optional<int64_t> ParseIntentFile(std::string_view name);  // nullopt: not an intent's name

// "<group>.safetensors" for one file, else "<group>-NNNNN-of-NNNNN.safetensors" counted from 1.
std::string SafetensorsName(const std::string& group, size_t index, size_t count);
// The group that a file's name spells: the name without ".safetensors" and "-NNNNN-of-NNNNN".
std::string GroupOfFile(std::string_view name);

// INVALID_ARGUMENT unless `name` is a plain file name: UTF-8 without '/' or NUL, 1 to 255 bytes,
// not starting with '.', and not a name that has a meaning of its own in a step folder.
Status CheckFileName(std::string_view name);
// "blobs", or 1 to 64 of A-Z a-z 0-9 _ -.
bool IsGroupName(std::string_view name);

// Last component of a path: "step-000000000100".
std::string BaseName(std::string_view path);

}  // namespace ckpt

#endif  // CKPT_STORE_NAMES_H_
