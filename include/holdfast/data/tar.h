// Reading tar archives in memory: ustar, with the long names of GNU and pax.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/stages.h"

namespace holdfast::data {

struct TarMember {
  std::string name;
  std::span<const std::byte> data;  // inside the archive
};

// The regular files of an archive, in its order. Throws kInput naming `where` when it is truncated or damaged.
std::vector<TarMember> parse_tar(std::span<const std::byte> archive, const std::string& where);

}  // namespace holdfast::data
