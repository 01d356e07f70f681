// Runs every target over the files of its corpus: good_* must be accepted, bad_* must be refused with an Error that admits no
// bug, anything else (what the fuzzer found) may be either.
//   fuzz_replay CORPUS_FOLDER       the folder has one folder for each target
//   fuzz_replay TARGET FILE...      these files only
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

struct Target {
  std::string name;
  void (*run)(std::span<const std::byte> input);
};

const std::vector<Target>& targets() {
  static const std::vector<Target> all{
#define HOLDFAST_FUZZ_TARGET(name) {#name, holdfast::fuzz_##name},
#include "fuzz_targets.inc"
#undef HOLDFAST_FUZZ_TARGET
  };
  return all;
}

// The message of the Error, or nothing when the file was accepted.
std::string refusal(const Target& target, const std::string& path) {
  try {
    target.run(holdfast::read_bytes(path));
    return "";
  } catch (const holdfast::Error& error) {
    return error.kind() == holdfast::ErrorKind::kBug ? std::string("BUG: ") + error.what() : error.what();
  }
}

bool as_expected(const Target& target, const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  // Printed before the call: a crash is a crash of this file.
  std::printf("%s %s: ", target.name.c_str(), name.c_str());
  std::fflush(stdout);
  const std::string message = refusal(target, path);
  const bool wrong = message.starts_with("BUG: ") || (name.starts_with("good_") && !message.empty()) ||
                     (name.starts_with("bad_") && message.empty());
  std::printf("%s%s\n", wrong ? "FAILED: " : "", message.empty() ? "accepted" : message.c_str());
  return !wrong;
}

// How many of the files did not behave as their names say. No files at all is one failure.
long count_failures(const Target& target, std::vector<std::string> files) {
  std::sort(files.begin(), files.end());
  if (files.empty()) std::printf("%s FAILED: there is no file\n", target.name.c_str());
  return files.empty()
             ? 1
             : std::count_if(files.begin(), files.end(), [&](const std::string& file) { return !as_expected(target, file); });
}

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().string());
  return files;
}

long replay_all(const std::filesystem::path& corpus) {
  long failures = 0;
  for (const Target& target : targets()) failures += count_failures(target, files_in(corpus / target.name));
  return failures;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2) return replay_all(arguments[1]) > 0 ? 1 : 0;
  for (const Target& target : targets()) {
    if (count > 2 && target.name == arguments[1]) return count_failures(target, {arguments + 2, arguments + count}) > 0 ? 1 : 0;
  }
  std::fprintf(stderr, "usage: %s CORPUS_FOLDER, or %s TARGET FILE...\n", arguments[0], arguments[0]);
  return 2;
}
