// The safetensors format: named arrays and a table of strings.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/raw_array.h"

namespace holdfast {

struct TensorFile {
  std::vector<std::pair<std::string, RawArray>> arrays;  // in the file's order
  std::vector<std::pair<std::string, std::string>> metadata;

  const RawArray* find(const std::string& name) const;
  const std::string* find_metadata(const std::string& key) const;
};

TensorFile parse_safetensors(std::span<const std::byte> file, const std::string& where);
TensorFile read_safetensors(const std::string& path);
std::vector<std::byte> format_safetensors(const TensorFile& file);
void write_safetensors(const std::string& path, const TensorFile& file);  // atomic

// Adds the SHA-256 of all the rest to the metadata, as "digest"; and whether a file has one that is still true.
void seal(TensorFile& file);
bool is_sealed(const TensorFile& file);

}  // namespace holdfast
