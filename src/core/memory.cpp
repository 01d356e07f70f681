#include "holdfast/core/memory.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "holdfast/core/files.h"

namespace holdfast {
namespace memory {

std::atomic<std::int64_t> most{kNoMemoryLimit};

// The number that a file of one line holds; nothing where it is missing or says "max".
std::optional<std::int64_t> number_in(const std::string& path) {
  if (!file_exists(path)) return std::nullopt;
  const std::string text = read_text(path);
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc()) return std::nullopt;
  return value;
}

// The number behind a word of a file of lines "word number".
std::optional<std::int64_t> number_of(const std::string& word, const std::string& path) {
  if (!file_exists(path)) return std::nullopt;
  std::istringstream lines(read_text(path));
  for (std::string key; lines >> key; lines.ignore(kNoMemoryLimit, '\n')) {
    std::int64_t value = 0;
    if (key == word && lines >> value) return value;
  }
  return std::nullopt;
}

// Where the files of one version of cgroups lie, and what they are called.
struct Cgroups {
  std::string folder, limit, used, reclaimable;
};

// What one group leaves: its limit less what is used, but for cached files, which give way.
std::int64_t left_in(const Cgroups& names, const std::string& folder) {
  const auto limit = number_in(folder + "/" + names.limit), used = number_in(folder + "/" + names.used);
  if (!limit || !used) return kNoMemoryLimit;
  const std::int64_t cached = number_of(names.reclaimable, folder + "/memory.stat").value_or(0);
  return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *used - cached));
}

// The least that the group at `path` and those around it leave.
std::int64_t left_around(const Cgroups& names, std::filesystem::path path) {
  std::int64_t left = left_in(names, names.folder);
  for (; path.has_relative_path(); path = path.parent_path()) left = std::min(left, left_in(names, names.folder + path.string()));
  return left;
}

}  // namespace memory

std::int64_t parse_memory(const std::string& text, const std::string& where) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  std::erase(unit, ' ');
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char letter) { return std::toupper(letter); });
  if (unit.ends_with("IB")) unit.resize(unit.size() - 2);
  if (unit.ends_with("B")) unit.resize(unit.size() - 1);
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t power = unit.empty() ? 0 : kUnits.find(unit) + 1;
  const double bytes = value * static_cast<double>(std::int64_t{1} << (10 * (unit.size() > 1 ? 0 : power)));
  if (status != std::errc() || unit.size() > 1 || (!unit.empty() && power == 0))
    usage_error("{} {}: a size is expected, as 4G or 512M", where, text);
  constexpr double kLeast = 1 << 20, kMost = 1e18;
  if (!(bytes >= kLeast && bytes <= kMost)) usage_error("{} {}: must be at least 1M", where, text);
  return static_cast<std::int64_t>(bytes);
}

std::string memory_in_words(std::int64_t bytes) {
  double value = static_cast<double>(bytes);
  for (const char* unit : {"bytes", "KiB", "MiB"}) {
    if (value < 1024) return fmt::format("{:.{}f} {}", value, unit[0] == 'b' ? 0 : 1, unit);
    value /= 1024;
  }
  return fmt::format("{:.1f} GiB", value);
}

std::int64_t available_memory(const std::string& root) {
  const memory::Cgroups first{root + "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                              "total_inactive_file"};
  const memory::Cgroups second{root + "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
  const auto free = memory::number_of("MemAvailable:", root + "/proc/meminfo");
  std::int64_t left = free ? 1024 * *free : kNoMemoryLimit;
  const std::string groups = root + "/proc/self/cgroup";
  if (!file_exists(groups)) return left;
  std::istringstream lines(read_text(groups));
  for (std::string line; std::getline(lines, line);) {  // "0::/user.slice" and "4:memory:/docker/abc"
    const std::size_t name = line.find(':') + 1, path = line.find(':', name) + 1;
    if (name == 0 || path == 0) continue;
    const std::string controllers = line.substr(name, path - 1 - name);
    if (controllers.empty()) left = std::min(left, memory::left_around(second, line.substr(path)));
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      left = std::min(left, memory::left_around(first, line.substr(path)));
  }
  return left;
}

void set_memory_limit(std::int64_t bytes) {
  memory::most = bytes;
}
std::int64_t memory_limit() {
  return memory::most;
}

void check_memory(std::size_t bytes, const std::string& where) {
  if (static_cast<std::int64_t>(bytes) < memory_limit()) return;
  throw OutOfMemory(fmt::format("{} takes {}, but only {} of memory may be taken (--memory)", where,
                                memory_in_words(static_cast<std::int64_t>(bytes)), memory_in_words(memory_limit())));
}

}  // namespace holdfast
