// The archive of a TorchScript file, checked before torch sees a byte of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/files.h"
#include "holdfast/core/zip.h"

namespace holdfast::model::torchscript {

class Archive {
 public:
  // Reads the whole file and checks it: the zip archive (core/zip.h), the names of its records, and every pickle against the
  // records of its tensors. Throws kInput in one sentence. The bytes are kept: what was checked is what is loaded, whatever
  // happens to the file.
  static Archive open(const std::string& path);
  static Archive check(Bytes bytes, const std::string& path);

  const std::string& path() const { return path_; }
  const Bytes& bytes() const { return bytes_; }
  // Name ("code/__torch__.py") and text of every source.
  std::vector<std::pair<std::string, std::string>> sources() const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

 private:
  const ZipMember* find(std::string_view name) const;
  void check_names() const;
  void check_pickles() const;

  std::string path_;
  Bytes bytes_;
  std::vector<ZipMember> members_;  // their names without the archive's folder, in small letters, as torch's reader compares them
};

}  // namespace holdfast::model::torchscript
