// The format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT. Records (a local header, the bytes, sometimes a
// descriptor with checksum and sizes) lie one behind the other; then comes the directory, then the end record. In zip64 a number
// that does not fit has all bits set, and the real one lies in an extra field, or in a second end record before the first.
#include "holdfast/core/zip.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <unordered_set>

#include <zlib.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/method.h"

namespace holdfast {
namespace zip {

using Span = std::span<const std::byte>;

constexpr std::uint32_t kEndSignature = 0x06054b50, kDirectorySignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50, kLocatorSignature = 0x07064b50, kDescriptorSignature = 0x08074b50;
constexpr std::size_t kEndSize = 22, kDirectorySize = 46, kLocalSize = 30, kEnd64Size = 56, kLocatorSize = 20;
constexpr std::uint32_t kInZip64 = 0xffffffff;  // the number is in the extra field
constexpr std::uint16_t kEncrypted = 1, kHasDescriptor = 8;
constexpr std::uint64_t kDeflateLimit = 1032;              // deflate cannot expand a byte to more than this many
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // zlib counts in 32 bits

// Little-endian numbers at a place whose bounds were checked.
std::uint64_t number(Span data, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(data[at + i]);
  return value;
}
std::uint16_t u16(Span data, std::size_t at) {
  return static_cast<std::uint16_t>(number(data, at, 2));
}
std::uint32_t u32(Span data, std::size_t at) {
  return static_cast<std::uint32_t>(number(data, at, 4));
}
std::uint64_t u64(Span data, std::size_t at) {
  return number(data, at, 8);
}

template <class... Args>
[[noreturn]] void damaged(const std::string& where, fmt::format_string<Args...> text, Args&&... args) {
  input_error("{}: damaged zip archive: {}", where, fmt::format(text, std::forward<Args>(args)...));
}

// The end record is the last thing in the file but for a comment of up to 65535 bytes.
std::optional<std::size_t> find_end(Span archive) {
  if (archive.size() < kEndSize) return {};
  const std::size_t last = archive.size() - kEndSize, first = last > 0xffff ? last - 0xffff : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    if (u32(archive, at) == kEndSignature && at + kEndSize + u16(archive, at + 20) == archive.size()) return at;
  }
  return {};
}

struct Directory {
  std::uint64_t begin = 0, size = 0, count = 0;
  std::uint64_t end = 0;         // where the end records begin
  std::uint64_t end_record = 0;  // the last one
};

// A number of the end record, or the one of its zip64 form. Both must be the same unless the first says that it does not fit.
std::uint64_t agreed(std::uint64_t small, std::uint64_t none, std::uint64_t large, const std::string& where) {
  if (small != none && small != large) damaged(where, "its two end records differ");
  return large;
}

Directory find_directory(Span archive, const std::string& where) {
  const auto end = find_end(archive);
  if (!end) input_error("{}: not a zip archive, or truncated: it has no central directory", where);
  Directory found{.begin = u32(archive, *end + 16),
                  .size = u32(archive, *end + 12),
                  .count = u16(archive, *end + 10),
                  .end = *end,
                  .end_record = *end};
  if (u16(archive, *end + 4) != 0 || u16(archive, *end + 6) != 0) input_error("{}: zip archives in parts are not read", where);
  if (*end < kLocatorSize || u32(archive, *end - kLocatorSize) != kLocatorSignature) {
    if (found.count == 0xffff || found.begin == kInZip64) damaged(where, "its zip64 end record is missing");
    return found;
  }
  const std::uint64_t at = u64(archive, *end - kLocatorSize + 8);
  if (*end - kLocatorSize < kEnd64Size || at > *end - kLocatorSize - kEnd64Size || u32(archive, at) != kEnd64Signature) {
    damaged(where, "its zip64 end record is not where it should be");
  }
  if (u64(archive, at + 4) != *end - kLocatorSize - at - 12) damaged(where, "its zip64 end record has another size than it says");
  found.count = agreed(found.count, 0xffff, u64(archive, at + 32), where);
  found.size = agreed(found.size, kInZip64, u64(archive, at + 40), where);
  found.begin = agreed(found.begin, kInZip64, u64(archive, at + 48), where);
  found.end = at;
  return found;
}

// Numbers that did not fit are in the extra field 1, in this order.
void read_zip64(Span extra, ZipMember& member, const std::string& where) {
  std::array<std::uint64_t*, 3> wanted{&member.size, &member.compressed_size, &member.header};
  if (std::none_of(wanted.begin(), wanted.end(), [](const std::uint64_t* value) { return *value == kInZip64; })) return;
  for (std::size_t at = 0; extra.size() - at >= 4;) {
    const std::uint16_t id = u16(extra, at), size = u16(extra, at + 2);
    at += 4;
    if (size > extra.size() - at) break;
    if (id == 1) {
      std::size_t read = 0;
      for (std::uint64_t* value : wanted) {
        if (*value != kInZip64) continue;
        if (size - read < 8) damaged(where, "the zip64 numbers of {} are cut off", member.name);
        *value = u64(extra, at + read);
        read += 8;
      }
      return;
    }
    at += size;
  }
  damaged(where, "{} has no zip64 numbers", member.name);
}

// Reads the directory; `visit` gets each member with the flags that the directory has for it. Gives where the directory ends.
std::uint64_t read_directory(Span archive, const Directory& directory, const std::string& where,
                             const std::function<void(ZipMember, std::uint16_t)>& visit) {
  std::uint64_t at = directory.begin;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (at > directory.end || directory.end - at < kDirectorySize || u32(archive, at) != kDirectorySignature) {
      damaged(where, "entry {} of {} in its directory is not one", i + 1, directory.count);
    }
    const std::size_t name_size = u16(archive, at + 28), extra_size = u16(archive, at + 30);
    const std::size_t entry_size = kDirectorySize + name_size + extra_size + u16(archive, at + 32);
    if (directory.end - at < entry_size) damaged(where, "its directory is cut off");
    ZipMember member{.name = std::string(as_text(archive.subspan(at + kDirectorySize, name_size))),
                     .method = u16(archive, at + 10),
                     .crc = u32(archive, at + 16),
                     .compressed_size = u32(archive, at + 20),
                     .size = u32(archive, at + 24),
                     .header = u32(archive, at + 42)};
    read_zip64(archive.subspan(at + kDirectorySize + name_size, extra_size), member, where);
    const std::uint16_t flags = u16(archive, at + 8);
    if ((flags & kEncrypted) != 0) input_error("{}: {} is encrypted, which is not read", where, member.name);
    visit(std::move(member), flags);
    at += entry_size;
  }
  return at;
}

// Inflates in pieces of at most a megabyte, handed to `take`; false unless they are `size` bytes in all.
bool inflate_pieces(Span data, std::uint64_t size, const std::function<void(Span)>& take) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(size + 1, 1 << 20));
  z_stream stream{};
  HOLDFAST_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK);
  std::uint64_t made = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      const std::size_t next = std::min(data.size(), kMostAtOnce);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data()));
      stream.avail_in = static_cast<uInt>(next);
      data = data.subspan(next);
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t got = piece.size() - stream.avail_out;
    made += got;
    if (made > size) break;
    take(Span(piece).first(got));
    if (status == Z_BUF_ERROR && stream.avail_in == 0 && !data.empty()) status = Z_OK;
  }
  const bool all_read = stream.avail_in == 0 && data.empty();
  inflateEnd(&stream);
  return status == Z_STREAM_END && made == size && all_read;
}

std::uint32_t checksum(std::uint32_t before, Span data) {
  return static_cast<std::uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

void refuse_unbelievable_size(const ZipMember& member, std::size_t packed, const std::string& where) {
  if (member.size > (packed + 1) * kDeflateLimit) damaged(where, "{} claims {} bytes from {}", member.name, member.size, packed);
}

[[noreturn]] void unknown_packing(const ZipMember& member, const std::string& where) {
  input_error("{}: {} is packed by method {}; only stored and deflated members are read", where, member.name, member.method);
}

// The bytes of a record behind its data: a descriptor repeats checksum and sizes, the latter in 4 or 8 bytes each.
std::size_t descriptor_size(Span archive, std::uint64_t at, const ZipMember& member, const std::string& where) {
  for (const std::size_t width : {std::size_t{4}, std::size_t{8}}) {
    const std::size_t size = 8 + 2 * width;
    if (archive.size() - at < size || u32(archive, at) != kDescriptorSignature) continue;
    if (u32(archive, at + 4) == member.crc && number(archive, at + 8, width) == member.compressed_size &&
        number(archive, at + 8 + width, width) == member.size) {
      return size;
    }
  }
  damaged(where, "what follows {} does not repeat the checksum and sizes of the directory", member.name);
}

struct Extent {
  std::uint64_t begin = 0, end = 0;
  const ZipMember* member = nullptr;
};

// The whole record of a member, its local header held against the directory.
Extent check_record(Span archive, const ZipMember& member, std::uint16_t flags, const std::string& where) {
  const Span packed = packed_bytes(archive, member, where);
  const std::uint64_t at = member.header;
  const std::size_t name_size = u16(archive, at + 26);
  if (as_text(archive.subspan(at + kLocalSize, name_size)) != member.name || u16(archive, at + 8) != member.method ||
      u16(archive, at + 6) != flags) {
    damaged(where, "the header of {} differs from what the directory says of it", member.name);
  }
  ZipMember local{.name = member.name, .compressed_size = u32(archive, at + 18), .size = u32(archive, at + 22), .header = 0};
  read_zip64(archive.subspan(at + kLocalSize + name_size, u16(archive, at + 28)), local, where);
  const std::uint32_t local_crc = u32(archive, at + 14);
  const bool has_descriptor = (flags & kHasDescriptor) != 0;
  // With a descriptor the numbers may be missing, which zeros say.
  const auto agrees = [&](std::uint64_t own, std::uint64_t expected) { return own == expected || (has_descriptor && own == 0); };
  if (!agrees(local_crc, member.crc) || !agrees(local.compressed_size, member.compressed_size) ||
      !agrees(local.size, member.size)) {
    damaged(where, "the header of {} differs from what the directory says of it", member.name);
  }
  std::uint64_t end = static_cast<std::uint64_t>(packed.data() - archive.data()) + packed.size();
  if (has_descriptor) end += descriptor_size(archive, end, member, where);
  return {at, end, &member};
}

void check_contents(Span archive, const ZipMember& member, std::uint64_t most_unpacked, const std::string& where) {
  const Span packed = packed_bytes(archive, member, where);
  std::uint32_t crc = 0;
  if (member.is_stored()) {
    if (member.size != member.compressed_size)
      damaged(where, "{} claims {} bytes and has {}", member.name, member.size, member.compressed_size);
    crc = checksum(0, packed);
  } else if (member.method == 8) {
    refuse_unbelievable_size(member, packed.size(), where);
    if (member.size > most_unpacked)
      input_error("{}: {} inflates to {} bytes; at most {} are allowed", where, member.name, member.size, most_unpacked);
    if (!inflate_pieces(packed, member.size, [&](Span piece) { crc = checksum(crc, piece); }))
      damaged(where, "{} does not inflate to its {} bytes", member.name, member.size);
  } else {
    unknown_packing(member, where);
  }
  if (crc != member.crc) damaged(where, "{} has a wrong checksum", member.name);
}

// Torch's reader finds "Data.pkl" when it looks for "data.pkl".
std::string small_letters(std::string text) {
  for (char& letter : text) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  return text;
}

}  // namespace zip

std::vector<ZipMember> parse_zip(std::span<const std::byte> archive, const std::string& where) {
  std::vector<ZipMember> members;
  zip::read_directory(archive, zip::find_directory(archive, where), where, [&](ZipMember member, std::uint16_t) {
    if (!member.name.ends_with('/')) members.push_back(std::move(member));  // names of folders end so
  });
  return members;
}

std::vector<ZipMember> check_zip(std::span<const std::byte> archive, const std::string& where, std::uint64_t most_unpacked) {
  const zip::Directory directory = zip::find_directory(archive, where);
  if (directory.end_record + zip::kEndSize != archive.size()) zip::damaged(where, "it does not end with its end record");
  std::vector<ZipMember> members;
  std::vector<std::uint16_t> flags;
  std::unordered_set<std::string> names;
  const std::uint64_t end = zip::read_directory(archive, directory, where, [&](ZipMember member, std::uint16_t flag) {
    if (std::any_of(member.name.begin(), member.name.end(), [](unsigned char letter) { return letter < ' ' || letter == 127; }))
      zip::damaged(where, "the name of record {} has a control character", members.size() + 1);
    if (!names.insert(zip::small_letters(member.name)).second)
      zip::damaged(where, "the name {} is there twice (capitals and small letters count as one)", member.name);
    members.push_back(std::move(member));
    flags.push_back(flag);
  });
  if (end != directory.end || directory.begin + directory.size != end)
    zip::damaged(where, "its directory has another size than it says");

  std::vector<zip::Extent> extents;
  for (std::size_t i = 0; i < members.size(); ++i) extents.push_back(zip::check_record(archive, members[i], flags[i], where));
  std::sort(extents.begin(), extents.end(), [](const zip::Extent& a, const zip::Extent& b) { return a.begin < b.begin; });
  std::uint64_t covered = 0;
  for (const zip::Extent& extent : extents) {
    if (extent.begin < covered)
      zip::damaged(where, "{} begins at byte {}, inside another record", extent.member->name, extent.begin);
    covered = extent.end;
  }
  if (covered > directory.begin) zip::damaged(where, "its last record reaches into its directory");
  if (!extents.empty() && extents.front().begin != 0) zip::damaged(where, "it does not begin with its first record");
  for (const ZipMember& member : members) zip::check_contents(archive, member, most_unpacked, where);
  return members;
}

std::span<const std::byte> packed_bytes(std::span<const std::byte> archive, const ZipMember& member, const std::string& where) {
  const std::uint64_t at = member.header;
  if (archive.size() < zip::kLocalSize || at > archive.size() - zip::kLocalSize ||
      zip::u32(archive, at) != zip::kLocalSignature) {
    zip::damaged(where, "{} has no header at byte {}", member.name, at);
  }
  const std::uint64_t begin = at + zip::kLocalSize + zip::u16(archive, at + 26) + zip::u16(archive, at + 28);
  if (begin > archive.size() || member.compressed_size > archive.size() - begin) {
    input_error("{}: truncated zip archive: {} should hold {} bytes", where, member.name, member.compressed_size);
  }
  return archive.subspan(begin, member.compressed_size);
}

std::vector<std::byte> extract(std::span<const std::byte> archive, const ZipMember& member, const std::string& where) {
  const auto data = packed_bytes(archive, member, where);
  std::vector<std::byte> out;
  if (member.is_stored() && member.size == member.compressed_size) {
    out.assign(data.begin(), data.end());
  } else if (member.method == 8) {
    zip::refuse_unbelievable_size(member, data.size(), where);
    out.reserve(member.size);
    if (!zip::inflate_pieces(data, member.size, [&](zip::Span piece) { out.insert(out.end(), piece.begin(), piece.end()); }))
      zip::damaged(where, "{} does not inflate to its {} bytes", member.name, member.size);
  } else {
    zip::unknown_packing(member, where);
  }
  if (zip::checksum(0, out) != member.crc) zip::damaged(where, "{} has a wrong checksum", member.name);
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

}  // namespace holdfast
