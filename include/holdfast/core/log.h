// Messages for people, on standard error. Results go to standard output or to files.
#pragma once

#include <string>
#include <utility>

#include <fmt/core.h>

namespace holdfast {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kSilent };

void set_log_level(LogLevel level);  // kInfo at the start; --quiet sets kWarning; HOLDFAST_LOG=debug|info|warning|error
LogLevel log_level();
// Thread-safe; clears a progress line on a terminal first and draws it again after.
void log_line(LogLevel level, const std::string& message);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::kInfo) log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::kWarning) log_line(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::kDebug) log_line(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

// With HOLDFAST_LOG=debug: what is done, and how many seconds after the program's start.
void log_reached(const char* what);

}  // namespace holdfast
