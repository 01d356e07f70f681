// NumPy's .npy files, versions 1 to 3. Big-endian and Fortran order are read; little-endian C order is written.
// Nothing that the header claims about sizes is believed before it was checked against the file's.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "holdfast/core/memory.h"
#include "holdfast/core/raw_array.h"

namespace holdfast {

RawArray parse_npy(std::span<const std::byte> file, const std::string& where);
RawArray read_npy(const std::string& path);
// What a file says of its array, checked against its size, without reading the elements.
struct NpyFacts {
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> shape;
};
NpyFacts read_npy_facts(const std::string& path);
// The array where it lies in its file; nothing where the file is small, or its elements lie in another order.
struct MappedNpy {
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> shape;
  MappedBytes file;
  std::span<const std::byte> bytes;  // of the elements, within the file
};
std::optional<MappedNpy> map_npy(const std::string& path);
std::vector<std::byte> format_npy(const RawArray& array);
void write_npy(const std::string& path, const RawArray& array);  // atomic
void write_npy(const std::string& path, ElementType type, const std::vector<std::int64_t>& shape,
               std::span<const std::byte> bytes);

}  // namespace holdfast
