// Whether a dataset's files are there and have the bytes they should.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/data/source.h"

namespace holdfast::data {

struct FileCheck {
  enum class State { kGood, kUnverified, kMissing, kWrong };
  std::string path;
  State state = State::kMissing;
  std::string message;  // one sentence
};

inline bool usable(const FileCheck& file) {
  return file.state == FileCheck::State::kGood || file.state == FileCheck::State::kUnverified;
}

struct DatasetCheck {
  std::string folder;  // where the files lie, or should
  std::vector<FileCheck> files;
  bool good() const;  // nothing missing, nothing wrong
};

// Reads every file of the set that was found; when none is complete, of the one with the most files present.
DatasetCheck check_dataset(const Source& source, const std::string& data_folder);

// Where a publisher's file has only a well-known md5 (32 digits), Source::File::sha256 holds that.
// A file's digest of the kind that another one is, "md5" or "sha256".
std::string digest_name(const std::string& digest);
std::string digest_like(const std::string& digest, const std::string& path);
// What is kept beside a fetched file that has no known digest.
inline constexpr const char* kPinEnding = ".sha256";

// One file, or the several that a path with `*` stands for. `shown` is the folder's name in sums over several files.
FileCheck check_file(const std::string& folder, const Source::File& file, const std::string& shown);

}  // namespace holdfast::data
