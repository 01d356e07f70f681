#include "holdfast/core/progress.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "holdfast/core/listener.h"
#include "holdfast/core/log.h"
#include "progress_line.h"
#include "status_line.h"
#include "time_left.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsBetweenDraws = 0.1;
// A line is drawn this often although nothing was done: the time goes on.
constexpr std::chrono::milliseconds kHeartbeat{500};
constexpr std::int64_t kShares = 1000;  // what work in pieces is counted in

thread_local TileWork* current_tile = nullptr;
// What the thread's last tile showed, until `advance` counts the tile as a whole: between the two the line must not go back.
thread_local double shown_of_last_tile = 0;

}  // namespace

struct Progress::State {
  const std::shared_ptr<Listener> hearing = listener();
  const bool silent = log_level() > LogLevel::kInfo && !hearing;
  const Clock::time_point start = Clock::now();
  std::atomic<std::int64_t> done{0};
  std::atomic<double> parts{0};  // of tiles that are under way
  std::atomic<bool> started{false};

  std::mutex mutex;  // for what follows
  ProgressLine line;
  double last_shown = -kSecondsBetweenDraws;  // seconds since the start; the first look is shown
  std::int64_t last_logged = 0;
  // Of work in pieces: the piece that was begun last, its units, what they are of it, and those that are done.
  std::optional<TimeLeft> pieces;
  std::size_t piece = 0;
  double units = 1, share_of_units = 1, units_done = 0, share_before = 0;

  std::condition_variable_any wake;
  std::jthread heart;  // last: it ends first

  void beat() {
    if (silent || hearing || !stderr_is_terminal()) return;
    heart = std::jthread([this](const std::stop_token& stop) {
      std::mutex idle;
      std::unique_lock lock(idle);
      while (!wake.wait_for(lock, stop, kHeartbeat, [&] { return stop.stop_requested(); })) update();
    });
  }

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start).count(); }

  // Brings the line up to date; the mutex is held.
  void fill(double seconds, bool finished) {
    line.seconds = seconds;
    line.finished = finished;
    if (pieces) {
      pieces->reach(piece, share_before + share_of_units * (units_done + parts) / units);
      // The share never goes back, although what is learned on the way may make the rest longer.
      const auto reached = static_cast<std::int64_t>(std::floor(static_cast<double>(kShares) * pieces->share(seconds)));
      line.done = finished ? reached : std::clamp(reached, line.done, kShares - 1);
      line.left = pieces->seconds(seconds);
    } else {
      line.done = done + static_cast<std::int64_t>(parts.load());
    }
  }

  void update() {
    if (silent) return;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock) return;  // another thread is drawing
    const double seconds = elapsed();
    if ((hearing || stderr_is_terminal()) && seconds - last_shown < kSecondsBetweenDraws) return;
    fill(seconds, false);
    if (hearing) {
      hearing->advanced(line.what, line.done, line.total, line.note, false);
    } else if (stderr_is_terminal()) {
      show_status(to_string(line));
    } else {
      if (!log_line_due(seconds - last_shown, line.done - last_logged, line.total)) return;
      print_line(to_string(line));
      last_logged = line.done;
    }
    last_shown = seconds;
  }

  void finish() {
    heart = {};
    if (silent) return;
    const std::lock_guard lock(mutex);
    fill(elapsed(), true);
    if (hearing) {
      hearing->advanced(line.what, line.done, line.total, line.note, true);
    } else if (stderr_is_terminal()) {
      show_status(to_string(line));
      end_status();
    } else {
      print_line(to_string(line));
    }
  }
};

Progress::Progress(std::string what, std::int64_t total, std::string unit) : state_(std::make_unique<State>()) {
  state_->line.what = std::move(what);
  state_->line.unit = std::move(unit);
  state_->line.total = total;
  state_->beat();
}

Progress::Progress(std::string what, const std::vector<WorkPiece>& pieces) : state_(std::make_unique<State>()) {
  state_->line.what = std::move(what);
  state_->line.total = kShares;
  state_->line.only_share = true;
  state_->pieces.emplace(pieces);
  state_->beat();
}

Progress::~Progress() {
  state_->finish();
}

void Progress::advance(std::int64_t amount) {
  state_->started = true;
  if (state_->pieces) {
    const std::lock_guard lock(state_->mutex);
    state_->units_done += static_cast<double>(amount);
  }
  state_->done += amount;
  state_->parts -= std::exchange(shown_of_last_tile, 0);
  state_->update();
}

void Progress::find_done(std::int64_t amount) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->line.before += amount;
    if (state_->pieces)
      state_->pieces->find_done(state_->piece, state_->share_of_units * static_cast<double>(amount) / state_->units);
  }
  advance(amount);
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

void Progress::begin(std::size_t piece, std::int64_t units, double share) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->pieces->begin(piece, state_->elapsed());
    state_->piece = piece;
    state_->units = static_cast<double>(std::max<std::int64_t>(1, units));
    state_->share_of_units = share;
    state_->units_done = state_->share_before = 0;
  }
  state_->update();
}

bool Progress::go_on(std::int64_t units, double share) {
  if (!state_->pieces) return false;
  const std::lock_guard lock(state_->mutex);
  state_->share_before += state_->share_of_units;
  state_->units = static_cast<double>(std::max<std::int64_t>(1, units));
  state_->share_of_units = share;
  state_->units_done = 0;
  return true;
}

void Progress::finish(std::size_t piece) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->pieces->finish(piece, state_->elapsed());
    if (state_->piece == piece) state_->share_before = 1;
  }
  state_->update();
}

void Progress::add_part(double units) {
  state_->parts += units;
  if (units > 0) state_->update();
}

TileWork::TileWork(Progress* progress, std::int64_t units, double expected)
    : progress_(progress), outer_(current_tile), units_(static_cast<double>(units)), left_(expected) {
  current_tile = this;
}

TileWork::~TileWork() {
  current_tile = outer_;
  if (progress_ == nullptr) return;
  if (std::uncaught_exceptions() > 0) {
    progress_->add_part(-shown_);
  } else {
    shown_of_last_tile = shown_;
  }
}

void TileWork::report(double done) {
  TileWork* tile = current_tile;
  if (tile == nullptr || tile->progress_ == nullptr) return;
  tile->done_ += done;
  tile->left_ = std::max(0.0, tile->left_ - done);
  tile->show();
}

void TileWork::expect(double left) {
  if (current_tile != nullptr) current_tile->left_ = left;
}

// Only forwards, and never all of the tile.
void TileWork::show() {
  constexpr double kStep = 0.002, kMost = 0.99;
  const double share = units_ * std::min(kMost, done_ / std::max(done_ + left_, 1e-12));
  if (share < shown_ + kStep * units_) return;
  progress_->add_part(share - shown_);
  shown_ = share;
}

}  // namespace holdfast
