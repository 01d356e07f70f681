#include "holdfast/data/file_tree.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "holdfast/core/error.h"
#include "holdfast/core/zip.h"
#include "holdfast/data/tar.h"

namespace holdfast::data {
namespace {

namespace fs = std::filesystem;

class FolderTree final : public FileTree {
 public:
  explicit FolderTree(const std::string& path) : FileTree(path) {
    std::error_code error;
    // Folders that are links are followed: data is often linked together from several disks. The system itself refuses a
    // loop of them.
    fs::recursive_directory_iterator entries(path, fs::directory_options::follow_directory_symlink, error);
    for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
      std::error_code ignored;
      if (entries->is_regular_file(ignored)) names_.push_back(entries->path().lexically_relative(path).generic_string());
    }
    if (error) input_error("cannot read {}: {}", path, error.message());
    std::sort(names_.begin(), names_.end());
  }

  Bytes read(std::size_t index) const override { return read_bytes(where(index)); }
};

// Puts members in the order of their names; of two with one name the later stays, as unpacking would have it.
template <class Member>
void sort_by_name(std::vector<Member>& members, std::vector<std::string>& names) {
  std::reverse(members.begin(), members.end());
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.name < b.name; });
  members.erase(std::unique(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.name == b.name; }),
                members.end());
  for (const Member& member : members) names.push_back(member.name);
}

class TarTree final : public FileTree {
 public:
  explicit TarTree(const std::string& path)
      : FileTree(path),
        bytes_(path.ends_with(".tar") ? read_bytes(path) : gunzip(read_bytes(path), path)),
        members_(parse_tar(bytes_, path)) {
    sort_by_name(members_, names_);
  }

  Bytes read(std::size_t index) const override { return {members_[index].data.begin(), members_[index].data.end()}; }

 private:
  Bytes bytes_;
  std::vector<TarMember> members_;
};

class ZipTree final : public FileTree {
 public:
  explicit ZipTree(const std::string& path) : FileTree(path), bytes_(read_bytes(path)), members_(parse_zip(bytes_, path)) {
    sort_by_name(members_, names_);
  }

  Bytes read(std::size_t index) const override { return extract(bytes_, members_[index], root_); }

 private:
  Bytes bytes_;
  std::vector<ZipMember> members_;
};

}  // namespace

std::unique_ptr<FileTree> open_tree(const std::string& path) {
  if (folder_exists(path)) return std::make_unique<FolderTree>(path);
  if (path.ends_with(".tar.gz") || path.ends_with(".tgz") || path.ends_with(".tar")) return std::make_unique<TarTree>(path);
  if (path.ends_with(".zip")) return std::make_unique<ZipTree>(path);
  if (!file_exists(path)) input_error("cannot read {}: no such file or folder", path);
  input_error("{} is neither a folder nor a .tar.gz, .tgz, .tar or .zip archive", path);
}

}  // namespace holdfast::data
