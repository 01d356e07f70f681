#include "holdfast/core/progress.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>

#include <fmt/format.h>

#include "holdfast/core/log.h"
#include "status_line.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsBetweenDraws = 0.1;
constexpr double kSecondsBetweenLines = 30;

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

// Three digits are enough to read: 0.0123, 4.57, 812, 15300.
std::string format_rate(double rate) { return rate >= 100 ? fmt::format("{:.0f}", rate) : fmt::format("{:.3g}", rate); }

}  // namespace

struct Progress::State {
  State(std::string what_, std::int64_t total_, std::string unit_)
      : what(std::move(what_)), unit(std::move(unit_)), total(total_), bytes(unit == "B") {}

  const std::string what, unit;
  const std::int64_t total;
  const bool bytes;
  const bool silent = log_level() > LogLevel::kInfo;
  const Clock::time_point start = Clock::now();
  std::atomic<std::int64_t> done{0};
  std::atomic<std::int64_t> baseline{-1};  // what was done before the first step here: no part of the rate

  std::mutex mutex;  // for what follows
  std::string note;
  double last_shown = -kSecondsBetweenDraws;  // seconds since the start
  std::int64_t last_logged = 0;

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start).count(); }

  std::string amount(double value) const { return bytes ? fmt::format("{:.1f}", value / 1e6) : fmt::format("{:.0f}", value); }

  // "train   45 % 450/1000 samples, 123 samples/s, 5 s left, loss 0.31"
  std::string line(double seconds, bool last) const {
    const auto now = static_cast<double>(done.load());
    const char* shown_unit = bytes ? "MB" : unit.c_str();
    const char* space = *shown_unit == '\0' ? "" : " ";
    std::string text = what + ":";
    if (total > 0) text += fmt::format(" {:3.0f} % {}/{}{}{}", std::floor(100.0 * now / static_cast<double>(total)), amount(now), amount(static_cast<double>(total)), space, shown_unit);
    else text += fmt::format(" {}{}{}", amount(now), space, shown_unit);
    const double rate = seconds > 0 ? (now - static_cast<double>(std::max<std::int64_t>(baseline, 0))) / seconds : 0;
    if (rate > 0) text += fmt::format(", {}{}{}/s", format_rate(bytes ? rate / 1e6 : rate), space, shown_unit);
    if (last) text += fmt::format(", {}", format_duration(seconds));
    else if (rate > 0 && static_cast<double>(total) > now) text += fmt::format(", {} left", format_duration((static_cast<double>(total) - now) / rate));
    return note.empty() ? text : text + ", " + note;
  }

  void update() {
    if (silent) return;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock) return;  // another thread is drawing
    const double seconds = elapsed();
    if (stderr_is_terminal()) {
      if (seconds - last_shown < kSecondsBetweenDraws) return;
      show_status(line(seconds, false));
    } else {
      const std::int64_t now = done;
      if (seconds - std::max(last_shown, 0.0) < kSecondsBetweenLines || (now - last_logged) * 10 < total) return;
      print_line(line(seconds, false));
      last_logged = now;
    }
    last_shown = seconds;
  }

  void finish() {
    if (silent) return;
    const std::lock_guard lock(mutex);
    if (stderr_is_terminal()) {
      show_status(line(elapsed(), true));
      end_status();
    } else {
      print_line(line(elapsed(), true));
    }
  }
};

Progress::Progress(std::string what, std::int64_t total, std::string unit)
    : state_(std::make_unique<State>(std::move(what), total, std::move(unit))) {
  state_->update();
}

Progress::~Progress() { state_->finish(); }

void Progress::advance(std::int64_t amount) {
  std::int64_t none = -1;
  state_->baseline.compare_exchange_strong(none, 0);
  state_->done += amount;
  state_->update();
}

void Progress::set(std::int64_t done) {
  std::int64_t none = -1;
  state_->baseline.compare_exchange_strong(none, done);
  state_->done = done;
  state_->update();
}

void Progress::note(std::string text) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->note = std::move(text);
  }
  state_->update();
}

}  // namespace holdfast
