// Files by name, wherever they lie: in a folder, a .tar.gz or a .zip. Image datasets are read through this, so that an
// archive need not be unpacked.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/files.h"
#include "holdfast/core/stages.h"

namespace holdfast::data {

class FileTree {
 public:
  virtual ~FileTree() = default;

  std::size_t size() const { return names_.size(); }
  // Below the root, with slashes, sorted by bytes: the order does not depend on the file system.
  const std::string& name(std::size_t index) const { return names_[index]; }
  // The file's name in messages.
  std::string where(std::size_t index) const { return root_ + "/" + names_[index]; }
  // Thread-safe.
  virtual Bytes read(std::size_t index) const = 0;

 protected:
  FileTree(std::string root) : root_(std::move(root)) {}

  std::string root_;
  std::vector<std::string> names_;
};

// A folder with all below it, or an archive by its name's ending: .tar.gz, .tgz, .tar, .zip. Throws kInput.
std::unique_ptr<FileTree> open_tree(const std::string& path);

}  // namespace holdfast::data
