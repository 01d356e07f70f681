#include "progress_line.h"

#include <cmath>

#include <fmt/format.h>

namespace holdfast {
namespace {

constexpr double kBytesInMegabyte = 1e6;

std::string format_duration(double seconds) {
  if (seconds < 59.5) return seconds < 9.95 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

// Three digits are enough to read: 0.0123, 4.57, 812, 15300.
std::string format_rate(double rate) {
  return rate >= 100 ? fmt::format("{:.0f}", rate) : fmt::format("{:.3g}", rate);
}

}  // namespace

std::string to_string(const ProgressLine& line) {
  const bool bytes = line.unit == "B";
  const std::string unit = line.unit.empty() ? "" : bytes ? " MB" : " " + line.unit;
  const double scale = bytes ? 1 / kBytesInMegabyte : 1;
  const auto amount = [&](std::int64_t count) {
    return bytes ? fmt::format("{:.1f}", static_cast<double>(count) * scale) : fmt::format("{}", count);
  };

  std::string text = line.what + ":";
  // The share is rounded down: 100 % means that all of it is done.
  if (line.total > 0)
    text += fmt::format(" {:.0f} %", std::floor(100.0 * static_cast<double>(line.done) / static_cast<double>(line.total)));
  if (!line.only_share) {
    text += " " + amount(line.done);
    if (line.total > 0) text += "/" + amount(line.total);
    text += unit;
  }

  const double rate = line.seconds > 0 ? static_cast<double>(line.done - line.before) / line.seconds : 0;
  if (rate > 0 && !line.only_share) text += fmt::format(", {}{}/s", format_rate(rate * scale), unit);
  std::optional<double> left = line.left;
  if (!line.only_share && rate > 0 && line.total > line.done) left = static_cast<double>(line.total - line.done) / rate;
  if (line.finished) {
    text += ", " + format_duration(line.seconds);
  } else if (left) {
    text += fmt::format(", {} left", format_duration(*left));
  }
  return line.note.empty() ? text : text + ", " + line.note;
}

bool log_line_due(double seconds_since_last, std::int64_t done_since_last, std::int64_t total) {
  return seconds_since_last >= 30 && static_cast<double>(done_since_last) >= 0.1 * static_cast<double>(total);
}

}  // namespace holdfast
