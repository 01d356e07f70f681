// Files that are opened, read and written piece by piece; core/files.h has whole ones.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "holdfast/core/files.h"

namespace holdfast {

// A descriptor of a regular file for reading, the caller's to close. Throws kInput for anything else: a device has no end.
int open_regular_file(const std::string& path);

// A name beside `path` that nobody else uses, and that remove_temporaries knows. Process numbers would not do: in a container
// every program is number 1.
std::string temporary_name(const std::string& path);

// A file that is written piece by piece, as write_atomic does: it is there when it was finished, and leaves nothing if it was
// not.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);  // throws kFailure
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> data);
  void write(std::string_view text);
  void finish();

 private:
  [[noreturn]] void fail(int error);

  std::string path_, temporary_;  // no temporary name: a device or a pipe
  int descriptor_ = -1;
};

// Throws kInput when a file that is mapped (core/memory.h) was written to meanwhile: what was read of it before is something else
// than what is read of it now. One that was replaced by another of its name is still the old one to those who have it mapped.
void check_mapped_files_unchanged();

// MD5 of a file, for those whose publishers give no other sum.
std::string md5_of_file(const std::string& path);

}  // namespace holdfast
