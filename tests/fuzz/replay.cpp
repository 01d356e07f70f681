// Runs a target over the files of its corpus: good_* must be accepted, bad_* must be refused with an Error that admits no
// bug, anything else (what the fuzzer found) may be either.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

// The message of the Error, or nothing when the file was accepted.
std::string refusal(const std::string& path) {
  try {
    holdfast::fuzz(holdfast::read_bytes(path));
    return "";
  } catch (const holdfast::Error& error) {
    return error.kind() == holdfast::ErrorKind::kBug ? std::string("BUG: ") + error.what() : error.what();
  }
}

bool as_expected(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::string message = refusal(path);
  const bool wrong = message.starts_with("BUG: ") || (name.starts_with("good_") && !message.empty()) ||
                     (name.starts_with("bad_") && message.empty());
  std::printf("%s %s: %s\n", wrong ? "FAILED" : "ok", name.c_str(), message.empty() ? "accepted" : message.c_str());
  return !wrong;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER_OR_FILE\n", arguments[0]);
    return 2;
  }
  std::vector<std::string> files;
  if (std::filesystem::is_directory(arguments[1])) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) files.push_back(entry.path().string());
  } else {
    files.emplace_back(arguments[1]);
  }
  std::sort(files.begin(), files.end());
  const auto failed = std::count_if(files.begin(), files.end(), [](const std::string& file) { return !as_expected(file); });
  if (files.empty()) std::printf("FAILED: %s is empty\n", arguments[1]);
  return failed > 0 || files.empty() ? 1 : 0;
}
