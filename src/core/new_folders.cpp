#include "holdfast/core/new_folders.h"

#include <unistd.h>

#include <filesystem>

#include "holdfast/core/files.h"

namespace holdfast {

NewFolders::NewFolders(const std::string& path) {
  for (std::filesystem::path folder = path; !folder.empty() && !folder_exists(folder.string()); folder = folder.parent_path()) {
    made_.push_back(folder.string());
  }
  if (made_.empty()) return;
  try {
    make_folders(path);
  } catch (...) {
    remove_empty();
    throw;
  }
}

NewFolders::~NewFolders() {
  remove_empty();
}

void NewFolders::remove_empty() noexcept {
  for (const std::string& folder : made_) ::rmdir(folder.c_str());  // refuses where there is anything
  made_.clear();
}

}  // namespace holdfast
