#include "holdfast/core/progress.h"

#include <atomic>
#include <chrono>
#include <mutex>

#include "holdfast/core/listener.h"
#include "holdfast/core/log.h"
#include "progress_line.h"
#include "status_line.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsBetweenDraws = 0.1;

}  // namespace

struct Progress::State {
  const std::shared_ptr<Listener> hearing = listener();
  const bool silent = log_level() > LogLevel::kInfo && !hearing;
  const Clock::time_point start = Clock::now();
  std::atomic<std::int64_t> done{0};
  std::atomic<bool> started{false};

  std::mutex mutex;  // for what follows
  ProgressLine line;
  double last_shown = -kSecondsBetweenDraws;  // seconds since the start; the first look is shown
  std::int64_t last_logged = 0;

  std::string text(double seconds, bool finished) {
    line.done = done;
    line.seconds = seconds;
    line.finished = finished;
    return to_string(line);
  }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start).count(); }

  void update() {
    if (silent) return;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock) return;  // another thread is drawing
    const double seconds = elapsed();
    if (hearing) {
      if (seconds - last_shown < kSecondsBetweenDraws) return;
      hearing->advanced(line.what, done, line.total, line.note, false);
    } else if (stderr_is_terminal()) {
      if (seconds - last_shown < kSecondsBetweenDraws) return;
      show_status(text(seconds, false));
    } else {
      if (!log_line_due(seconds - last_shown, done - last_logged, line.total)) return;
      print_line(text(seconds, false));
      last_logged = line.done;
    }
    last_shown = seconds;
  }

  void finish() {
    if (silent) return;
    const std::lock_guard lock(mutex);
    if (hearing) {
      hearing->advanced(line.what, done, line.total, line.note, true);
    } else if (stderr_is_terminal()) {
      show_status(text(elapsed(), true));
      end_status();
    } else {
      print_line(text(elapsed(), true));
    }
  }
};

Progress::Progress(std::string what, std::int64_t total, std::string unit) : state_(std::make_unique<State>()) {
  state_->line.what = std::move(what);
  state_->line.unit = std::move(unit);
  state_->line.total = total;
}

Progress::~Progress() {
  state_->finish();
}

void Progress::advance(std::int64_t amount) {
  state_->started = true;
  state_->done += amount;
  state_->update();
}

void Progress::set(std::int64_t done) {
  if (!state_->started.exchange(true)) {
    // What is there at the first look was not done here.
    const std::lock_guard lock(state_->mutex);
    state_->line.before = done;
  }
  state_->done = done;
  state_->update();
}

void Progress::note(std::string text) {
  if (state_->silent) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->line.note = std::move(text);
  }
  state_->update();
}

}  // namespace holdfast
