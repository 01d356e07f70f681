#include "holdfast/core/log.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>

#include <time.h>
#include <unistd.h>

#include "holdfast/core/listener.h"
#include "holdfast/core/printable.h"
#include "status_line.h"

namespace holdfast {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames{"debug", "info", "warning", "error"};

LogLevel level_of_environment() {
  const char* name = std::getenv("HOLDFAST_LOG");
  if (name == nullptr || *name == '\0') return LogLevel::kInfo;
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  print_line(fmt::format("warning: HOLDFAST_LOG={} is not one of debug, info, warning, error", name));
  return LogLevel::kInfo;
}

std::atomic<LogLevel>& current_level() {
  static std::atomic<LogLevel> level{level_of_environment()};
  return level;
}

std::mutex listener_mutex;
std::shared_ptr<Listener> current_listener;

}  // namespace

void set_listener(std::shared_ptr<Listener> listener) {
  const std::lock_guard lock(listener_mutex);
  current_listener = std::move(listener);
}

std::shared_ptr<Listener> listener() {
  const std::lock_guard lock(listener_mutex);
  return current_listener;
}

void log_reached(const char* what) {
  if (log_level() > LogLevel::kDebug) return;
  // The 22nd field: when the process started, in ticks since the machine did. The second one ends with a parenthesis.
  std::ifstream file("/proc/self/stat");
  file.ignore(std::numeric_limits<std::streamsize>::max(), ')');
  std::string field;
  for (int i = 3; i <= 22; ++i) file >> field;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double started = std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  log_debug("{:.2f} s: {}", static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 - started, what);
}

void set_log_level(LogLevel level) {
  current_level() = level;
}

LogLevel log_level() {
  return current_level();
}

void log_line(LogLevel level, const std::string& message) {
  if (level < log_level() || level == LogLevel::kSilent) return;
  if (const std::shared_ptr<Listener> hearing = listener(); hearing && level == LogLevel::kWarning) {
    hearing->warned(message);
    return;
  }
  // What is normal needs no label.
  // A warning or an error is one line, whatever the names in it hold.
  const std::string shown = printable(message, /*lines=*/level <= LogLevel::kInfo);
  print_line(level == LogLevel::kInfo ? shown : fmt::format("{}: {}", kLevelNames[static_cast<std::size_t>(level)], shown));
}

}  // namespace holdfast
