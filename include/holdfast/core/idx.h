// The idx format of MNIST: big-endian header, then elements.
#pragma once

#include <span>
#include <string>

#include "holdfast/core/raw_array.h"

namespace holdfast {

RawArray parse_idx(std::span<const std::byte> file, const std::string& where);
RawArray read_idx(const std::string& path);  // .gz as well

}  // namespace holdfast
