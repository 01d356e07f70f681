#include "holdfast/data/tar.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"

namespace holdfast::data {
namespace {

constexpr std::size_t kBlock = 512;

// The fields of a header block that we read, by offset and length (POSIX.1-1988).
struct Field {
  std::size_t offset, length;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kType{156, 1}, kMagic{257, 5}, kPrefix{345, 155};

std::string_view text_of(std::span<const std::byte> block, Field field) {
  const std::string_view text = as_text(block.subspan(field.offset, field.length));
  return text.substr(0, text.find('\0'));
}

std::uint64_t octal(std::span<const std::byte> block, Field field, const std::string& where) {
  std::uint64_t value = 0;
  bool digits = false;
  for (const char c : text_of(block, field)) {
    if (c == ' ' && !digits) continue;
    if (c == ' ') break;
    if (c < '0' || c > '7') input_error("{}: damaged tar archive: '{}' is not an octal number", where, text_of(block, field));
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
    digits = true;
  }
  return value;
}

void check_header(std::span<const std::byte> block, const std::string& where) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool in_checksum = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    sum += in_checksum ? std::uint64_t{' '} : std::to_integer<std::uint64_t>(block[i]);
  }
  if (sum != octal(block, kChecksum, where)) input_error("{}: damaged tar archive: a header has a wrong checksum", where);
}

// The value of `path` in pax records, each "LENGTH key=value\n"; empty when there is none.
std::string pax_path(std::string_view records) {
  while (!records.empty()) {
    std::size_t length = 0, i = 0;
    while (i < records.size() && records[i] >= '0' && records[i] <= '9' && length <= records.size()) {
      length = length * 10 + static_cast<std::size_t>(records[i++] - '0');
    }
    if (length <= i + 1 || length > records.size()) return {};
    const std::string_view record = records.substr(i + 1, length - i - 2);
    if (record.starts_with("path=")) return std::string(record.substr(5));
    records.remove_prefix(length);
  }
  return {};
}

std::string name_of(std::span<const std::byte> block) {
  const std::string name(text_of(block, kName));
  if (text_of(block, kMagic) != "ustar") return name;
  const std::string_view prefix = text_of(block, kPrefix);
  return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

}  // namespace

std::vector<TarMember> parse_tar(std::span<const std::byte> archive, const std::string& where) {
  std::vector<TarMember> members;
  std::string long_name;  // from a GNU or pax header that precedes the file's own
  std::size_t at = 0;
  while (at + kBlock <= archive.size()) {
    const auto block = archive.subspan(at, kBlock);
    if (block[0] == std::byte{0}) return members;  // the archive ends with two zero blocks; writers differ about the second
    check_header(block, where);
    const std::uint64_t size = octal(block, kSize, where);
    at += kBlock;
    if (size > archive.size() - at)
      input_error("{}: truncated tar archive: {} should hold {} bytes", where, name_of(block), size);
    const auto data = archive.subspan(at, static_cast<std::size_t>(size));
    at += (data.size() + kBlock - 1) / kBlock * kBlock;

    const char type = static_cast<char>(block[kType.offset]);
    if (type == 'L') {
      long_name = as_text(data).substr(0, as_text(data).find('\0'));
    } else if (type == 'x') {
      long_name = pax_path(as_text(data));
    } else {
      std::string name = long_name.empty() ? name_of(block) : long_name;
      const bool regular = (type == '0' || type == '\0') && !name.ends_with('/');  // old archives mark folders only so
      if (regular) members.push_back({std::move(name), data});
      long_name.clear();
    }
  }
  input_error("{}: truncated tar archive: it ends without its closing blocks", where);
}

}  // namespace holdfast::data
