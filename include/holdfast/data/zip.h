// Reading zip archives in memory: stored and deflated members. No zip64, no encryption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/stages.h"

namespace holdfast::data {

struct ZipMember {
  std::string name;
  std::uint16_t method = 0;  // 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint32_t compressed_size = 0;
  std::uint32_t size = 0;
  std::uint32_t header = 0;  // offset of the local header
};

// The files of an archive in the order of its directory. Throws kInput naming `where`.
std::vector<ZipMember> parse_zip(std::span<const std::byte> archive, const std::string& where);

// The contents of one of them; its size and checksum are verified, and its size is believed only when the compressed
// bytes can hold that much.
std::vector<std::byte> extract(std::span<const std::byte> archive, const ZipMember& member, const std::string& where);
// By name; `a.zip!b.csv` is b.csv in the archive a.zip inside this one.
std::vector<std::byte> extract(std::span<const std::byte> archive, const std::string& name, const std::string& where);

}  // namespace holdfast::data
