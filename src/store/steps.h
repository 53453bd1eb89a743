// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading the record of one step folder; shared by steps.cc, catalog_read.cc and the transaction.
// Private to src/store.  Test: tests/unit/store/steps_test.cc
#ifndef CKPT_STORE_STEPS_H_
#define CKPT_STORE_STEPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace ckpt {

// The bytes of ckpt.json.  NOT_FOUND: "the folder has no ckpt.json".
Result<std::string> ReadRecordText(const Dir& step);
// The record, which must be of step `number`, by default the one that the folder's name says (a
// copied folder is CORRUPT).  Errors name the path.
Result<CommitRecord> DecodeRecordOf(const Dir& step, std::string_view text,
                                    std::optional<int64_t> number = std::nullopt);
// What a damaged record still seems to say its sequence is, 0 if nothing.  A hint: it may only make
// a reader more careful.
uint64_t SequenceHint(std::string_view text);

// "2026-01-31 12:00:00 UTC"
std::string TimeText(int64_t unix_ns);

}  // namespace ckpt

#endif  // CKPT_STORE_STEPS_H_
