// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A ckpt_reader as C++.
#include "cli/checkpoint.h"

#include "cli/text.h"

namespace cli {
namespace {

// All items of one of the reader's lists, up to the first NOT_FOUND.
template <typename Info>
std::vector<Info> All(const ckpt_reader* reader,
                      ckpt_status (*item)(const ckpt_reader*, uint64_t, Info*)) {
  std::vector<Info> all;
  for (uint64_t i = 0;; ++i) {
    Info info = {};
    info.struct_size = sizeof info;
    const ckpt_status status = item(reader, i, &info);
    if (status != CKPT_OK && status != CKPT_ERR_CORRUPT) return all;
    all.push_back(info);
  }
}

}  // namespace

Exit ExitOf(ckpt_status status) {
  switch (status) {
    case CKPT_OK:
      return kGood;
    case CKPT_ERR_CORRUPT:
      return kDamaged;
    case CKPT_ERR_INVALID_ARGUMENT:
    case CKPT_ERR_UNSUPPORTED:
      return kUsage;
    case CKPT_ERR_NOT_FOUND:
    case CKPT_ERR_NO_CHECKPOINT:
      return kNotFound;
    default:
      return kIoError;
  }
}

Exit Complain(ckpt_status status, const ckpt_error* error) {
  Message(Escaped(ckpt_error_message(error), Backslash::kKept));
  return ExitOf(status);
}

ckpt_status Checkpoint::TryOpen(const Request& request, Error* error) {
  ckpt_reader* reader = nullptr;
  ckpt_error* raw = nullptr;
  const ckpt_status status =
      ckpt_open(request.path.c_str(), request.step ? CKPT_LOAD_STEP : CKPT_LOAD_LATEST,
                request.step.value_or(0), &reader, &raw);
  error->reset(raw);
  reader_.reset(reader);
  return status;
}

Exit Checkpoint::Open(const Request& request) {
  Error error;
  const ckpt_status status = TryOpen(request, &error);
  return status == CKPT_OK ? kGood : Complain(status, error.get());
}

std::vector<ckpt_checkpoint_info> Checkpoint::Steps() const {
  return All(get(), ckpt_reader_checkpoint);
}

ckpt_checkpoint_info Checkpoint::Opened() const {
  // Only the opened step knows its tensors.
  for (const ckpt_checkpoint_info& step : Steps()) {
    if (step.tensors != UINT64_MAX) return step;
  }
  return {};
}

std::vector<ckpt_tensor_info> Checkpoint::Tensors() const { return All(get(), ckpt_reader_tensor); }
std::vector<ckpt_file_info> Checkpoint::Files() const { return All(get(), ckpt_reader_file); }
std::vector<ckpt_blob_info> Checkpoint::Blobs() const { return All(get(), ckpt_reader_blob); }

std::vector<std::pair<int32_t, uint64_t>> Checkpoint::Writers(uint64_t i) const {
  std::vector<std::pair<int32_t, uint64_t>> writers;
  int32_t rank = 0;
  uint64_t bytes = 0;
  while (ckpt_reader_file_writer(get(), i, writers.size(), &rank, &bytes) == CKPT_OK) {
    writers.emplace_back(rank, bytes);
  }
  return writers;
}

}  // namespace cli
