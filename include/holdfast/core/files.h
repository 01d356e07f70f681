// Reading whole files, and writing them so that a reader never sees half of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

using Bytes = std::vector<std::byte>;

bool file_exists(const std::string& path);
bool folder_exists(const std::string& path);
// Throws kInput: "cannot read X: No such file or directory".
Bytes read_bytes(const std::string& path);
std::string read_text(const std::string& path);

// Decompresses gzip data; what it may grow to is limited. Throws kInput naming `where` when it is truncated or damaged.
Bytes gunzip(std::span<const std::byte> data, const std::string& where, std::size_t limit = std::size_t{1} << 32);
// read_bytes, decompressed when the name ends in .gz.
Bytes read_maybe_gz(const std::string& path);

// Writes to a temporary name beside `path`, syncs and renames. Throws kFailure (disk full, read-only) and leaves
// nothing behind. A device or pipe such as /dev/stdout is written to directly.
void write_atomic(const std::string& path, std::span<const std::span<const std::byte>> parts);  // one behind the other
void write_atomic(const std::string& path, std::span<const std::byte> data);
void write_atomic(const std::string& path, std::string_view text);

// Removes what writers that were killed left in the folder and below it, but for folders of these names. Only for a folder that
// nobody is writing to.
void remove_temporaries(const std::string& folder, const std::vector<std::string>& but = {});

// Makes the folder and its parents; throws kFailure.
void make_folders(const std::string& path);
// Removes the folder and all it holds; nothing when it is not there. Throws kFailure.
void remove_folder(const std::string& path);
// Throws kInput unless `path` can be made or written to: checked before work starts.
void check_writable_folder(const std::string& path);

std::string sha256_hex(std::span<const std::byte> data);
std::string sha256_of_file(const std::string& path);  // without reading the whole of it into memory

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

}  // namespace holdfast
