#include "holdfast/data/verify.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "holdfast/core/file_stream.h"

namespace holdfast::data {
namespace {

using State = FileCheck::State;

std::size_t present(const std::string& folder, const std::vector<Source::File>& files) {
  std::size_t count = 0;
  for (const Source::File& file : files) count += matching_files(folder, file.path).size();
  return count;
}

// Gives the files a user most likely means when no set is complete.
std::vector<Source::File> nearest_set(const Source& source, const std::string& folder) {
  std::vector<Source::File> best = source.files;
  for (const auto& files : source.alternatives) {
    if (present(folder, files) > present(folder, best)) best = files;
  }
  return best;
}

std::string digest_of(const std::vector<std::string>& paths, bool several, const std::string& shown, const std::string& like) {
  if (!several) return digest_like(like, paths.front());
  std::string lines;
  for (const std::string& path : paths) {
    lines += fmt::format("{}  {}/{}\n", sha256_of_file(path), shown, std::filesystem::path(path).filename().string());
  }
  return sha256_hex(as_bytes(lines));
}

}  // namespace

std::string digest_name(const std::string& digest) {
  constexpr std::size_t kMd5Digits = 32;
  return digest.size() == kMd5Digits ? "md5" : "sha256";
}

std::string digest_like(const std::string& digest, const std::string& path) {
  return digest_name(digest) == "md5" ? md5_of_file(path) : sha256_of_file(path);
}

bool DatasetCheck::good() const {
  return !files.empty() && std::all_of(files.begin(), files.end(), &usable);
}

FileCheck check_file(const std::string& folder, const Source::File& file, const std::string& shown) {
  const std::string path = (std::filesystem::path(folder) / file.path).string();
  const std::vector<std::string> paths = matching_files(folder, file.path);
  const bool several = file.path.find('*') != std::string::npos;
  const auto count = static_cast<std::int64_t>(paths.size());
  if (count < file.count) {
    return {file.path, State::kMissing,
            several ? fmt::format("{}: {} files of {} are there", path, count, file.count) : fmt::format("{} is missing", path)};
  }
  std::vector<std::string> known = file.sha256;
  if (known.empty() && file_exists(path + kPinEnding)) known.push_back(read_text(path + kPinEnding));
  if (known.empty()) return {file.path, State::kUnverified, fmt::format("{} is there; no checksum of it is known", path)};
  const std::string digest = digest_of(paths, several, shown, known.front());
  if (std::find(known.begin(), known.end(), digest) != known.end()) return {file.path, State::kGood, {}};
  return {file.path, State::kWrong,
          fmt::format("{}{} has {} {}, not {}", path, several ? " (all of them)" : "", digest_name(known.front()), digest,
                      fmt::join(known, " or "))};
}

DatasetCheck check_dataset(const Source& source, const std::string& data_folder) {
  const Found found = find_source(source, data_folder);
  DatasetCheck check{.folder = found ? found.folder : (std::filesystem::path(data_folder) / source.folder).string()};
  for (const Source::File& file : found ? found.files : nearest_set(source, check.folder)) {
    check.files.push_back(check_file(check.folder, file, source.folder));
  }
  return check;
}

}  // namespace holdfast::data
