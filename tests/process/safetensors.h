// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// A small reader of safetensors files and of a step folder, written from FORMAT.md alone and
// sharing no code with the library, so that a mistake of the library is not repeated here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace safetensors {

struct Entry {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;

  std::vector<float> Floats() const;
};

struct File {
  std::map<std::string, Entry> tensors;
  std::map<std::string, std::string> metadata;
  uint64_t data_start = 0;  // offset of the first data byte in the file
  uint64_t data_bytes = 0;
};

// Throws std::runtime_error when the file breaks a rule: header size, JSON, strings in
// __metadata__, shape times item size, holes or overlap between tensors, bytes after the last.
File Read(const std::string& path);

struct Group {
  std::map<std::string, Entry> tensors;
  std::vector<std::string> files;
  uint64_t total_size = 0;  // as the index says
};

// Opens a group of a step folder through <group>.safetensors.index.json, and throws unless the
// index names exactly the tensors of the files, each in its file, and total_size is their sum.
Group Open(const std::string& step_folder, const std::string& group = "model");

std::string ReadBytes(const std::string& path);
void WriteBytes(const std::string& path, const std::string& bytes);

}  // namespace safetensors
