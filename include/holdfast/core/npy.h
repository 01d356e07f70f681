// NumPy's .npy files, versions 1 to 3. Big-endian and Fortran order are read; little-endian C order is written.
// Nothing that the header claims about sizes is believed before it was checked against the file's.
#pragma once

#include <span>
#include <string>

#include "holdfast/core/raw_array.h"

namespace holdfast {

RawArray parse_npy(std::span<const std::byte> file, const std::string& where);
RawArray read_npy(const std::string& path);
std::vector<std::byte> format_npy(const RawArray& array);
void write_npy(const std::string& path, const RawArray& array);  // atomic

}  // namespace holdfast
