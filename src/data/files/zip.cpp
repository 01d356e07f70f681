#include "holdfast/data/zip.h"

#include <algorithm>
#include <optional>

#include <zlib.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/method.h"

namespace holdfast::data {
namespace {

constexpr std::uint32_t kEndSignature = 0x06054b50, kDirectorySignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr std::size_t kEndSize = 22, kDirectorySize = 46, kLocalSize = 30;
constexpr std::uint64_t kDeflateLimit = 1032;  // deflate cannot expand a byte to more than this many

// Little-endian numbers at a place whose bounds were checked.
std::uint32_t number(std::span<const std::byte> data, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(data[at + i]);
  return value;
}
std::uint16_t u16(std::span<const std::byte> data, std::size_t at) {
  return static_cast<std::uint16_t>(number(data, at, 2));
}
std::uint32_t u32(std::span<const std::byte> data, std::size_t at) {
  return number(data, at, 4);
}

// The end record is the last thing in the file but for a comment of up to 65535 bytes.
std::optional<std::size_t> find_end(std::span<const std::byte> archive) {
  if (archive.size() < kEndSize) return {};
  const std::size_t last = archive.size() - kEndSize, first = last > 0xffff ? last - 0xffff : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    if (u32(archive, at) == kEndSignature && at + kEndSize + u16(archive, at + 20) == archive.size()) return at;
  }
  return {};
}

std::vector<std::byte> inflate_raw(std::span<const std::byte> data, const ZipMember& member, const std::string& where) {
  if (member.size > (data.size() + 1) * kDeflateLimit) {
    input_error("{}: damaged zip archive: {} claims {} bytes from {}", where, member.name, member.size, data.size());
  }
  std::vector<std::byte> out(member.size);
  std::byte nothing{};  // zlib wants a place to write to even for an empty member
  z_stream stream{};
  HOLDFAST_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.empty() ? &nothing : out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.total_out == member.size;
  inflateEnd(&stream);
  if (!whole) input_error("{}: damaged zip archive: {} does not inflate to its {} bytes", where, member.name, member.size);
  return out;
}

}  // namespace

std::vector<ZipMember> parse_zip(std::span<const std::byte> archive, const std::string& where) {
  const auto end = find_end(archive);
  if (!end) input_error("{}: not a zip archive, or truncated: it has no central directory", where);
  const std::size_t count = u16(archive, *end + 10), offset = u32(archive, *end + 16);
  if (count == 0xffff || offset == 0xffffffff) input_error("{}: zip64 archives are not read", where);

  std::vector<ZipMember> members;
  std::size_t at = offset;
  for (std::size_t i = 0; i < count; ++i) {
    if (at > *end || *end - at < kDirectorySize || u32(archive, at) != kDirectorySignature) {
      input_error("{}: damaged zip archive: entry {} of {} in its directory is not one", where, i + 1, count);
    }
    const std::size_t name_size = u16(archive, at + 28);
    const std::size_t entry_size = kDirectorySize + name_size + u16(archive, at + 30) + u16(archive, at + 32);
    if (*end - at < entry_size) input_error("{}: damaged zip archive: its directory is cut off", where);
    ZipMember member{.name = std::string(as_text(archive.subspan(at + kDirectorySize, name_size))),
                     .method = u16(archive, at + 10),
                     .crc = u32(archive, at + 16),
                     .compressed_size = u32(archive, at + 20),
                     .size = u32(archive, at + 24),
                     .header = u32(archive, at + 42)};
    if (u16(archive, at + 8) & 1) input_error("{}: {} is encrypted, which is not read", where, member.name);
    if (!member.name.ends_with('/')) members.push_back(std::move(member));  // names of folders end so
    at += entry_size;
  }
  return members;
}

std::vector<std::byte> extract(std::span<const std::byte> archive, const ZipMember& member, const std::string& where) {
  const std::size_t at = member.header;
  if (archive.size() < kLocalSize || at > archive.size() - kLocalSize || u32(archive, at) != kLocalSignature) {
    input_error("{}: damaged zip archive: {} has no header at byte {}", where, member.name, at);
  }
  const std::size_t begin = at + kLocalSize + u16(archive, at + 26) + u16(archive, at + 28);
  if (begin > archive.size() || member.compressed_size > archive.size() - begin) {
    input_error("{}: truncated zip archive: {} should hold {} bytes", where, member.name, member.compressed_size);
  }
  const auto data = archive.subspan(begin, member.compressed_size);

  std::vector<std::byte> out;
  if (member.method == 0 && member.size == member.compressed_size) {
    out.assign(data.begin(), data.end());
  } else if (member.method == 8) {
    out = inflate_raw(data, member, where);
  } else {
    input_error("{}: {} is packed by method {}; only stored and deflated members are read", where, member.name, member.method);
  }
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(out.data()), static_cast<uInt>(out.size()));
  if (crc != member.crc) input_error("{}: damaged zip archive: {} has a wrong checksum", where, member.name);
  return out;
}

std::vector<std::byte> extract(std::span<const std::byte> archive, const std::string& name, const std::string& where) {
  const std::size_t bang = name.find('!');
  const std::string outer = name.substr(0, bang);
  const std::vector<ZipMember> members = parse_zip(archive, where);
  const auto found = std::find_if(members.begin(), members.end(), [&](const ZipMember& member) { return member.name == outer; });
  if (found == members.end()) {
    std::vector<std::string> names;
    for (const ZipMember& member : members) names.push_back(member.name);
    input_error("{} has no member '{}'{}", where, outer, names.size() > 12 ? "" : suggestion(outer, names));
  }
  std::vector<std::byte> data = extract(archive, *found, where);
  return bang == std::string::npos ? data : extract(data, name.substr(bang + 1), where + "!" + outer);
}

}  // namespace holdfast::data
