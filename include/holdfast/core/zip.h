// Reading zip archives in memory: stored and deflated members, zip64 too. No encryption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace holdfast {

struct ZipMember {
  std::string name;
  std::uint16_t method = 0;  // 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header = 0;  // offset of the local header

  bool is_stored() const { return method == 0; }
};

// The files of an archive in the order of its directory. Throws kInput naming `where`.
std::vector<ZipMember> parse_zip(std::span<const std::byte> archive, const std::string& where);

// The same for an archive that is not trusted and that another reader will read too. Nothing is left that two readers could
// understand differently: the archive begins with its first record and ends with its end record, every local header agrees with
// the directory, no two records share a byte, no name comes twice (capitals count as small letters, because torch's reader does
// not tell them apart), and the checksum of every record is right. A deflated record may have at most `most_unpacked` bytes.
std::vector<ZipMember> check_zip(std::span<const std::byte> archive, const std::string& where,
                                 std::uint64_t most_unpacked = std::uint64_t{256} << 20);

// The bytes of a member as they lie in the archive: of a stored member, its contents.
std::span<const std::byte> packed_bytes(std::span<const std::byte> archive, const ZipMember& member, const std::string& where);

// The contents of a member; its size and checksum are verified, and its size is believed only when the compressed bytes can
// hold that much.
std::vector<std::byte> extract(std::span<const std::byte> archive, const ZipMember& member, const std::string& where);
// By name; `a.zip!b.csv` is b.csv in the archive a.zip inside this one.
std::vector<std::byte> extract(std::span<const std::byte> archive, const std::string& name, const std::string& where);

}  // namespace holdfast
