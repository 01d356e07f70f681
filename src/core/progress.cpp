#include "holdfast/core/progress.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "holdfast/core/listener.h"
#include "holdfast/core/log.h"
#include "pieces.h"
#include "progress_line.h"
#include "status_line.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsBetweenDraws = 0.1;
// A line is drawn this often although nothing was done: the time goes on.
constexpr std::chrono::milliseconds kHeartbeat{500};
constexpr std::int64_t kShares = 1000;  // what work in pieces is counted in

}  // namespace

struct Progress::State {
  const std::shared_ptr<Listener> hearing = listener();
  const bool silent = log_level() > LogLevel::kInfo && !hearing;
  const Clock::time_point start = Clock::now();
  std::atomic<std::int64_t> done{0};
  std::atomic<double> parts{0};
  std::atomic<bool> started{false};

  std::mutex mutex;  // for what follows
  ProgressLine line;
  double last_look = -kSecondsBetweenDraws, last_logged_at = -kSecondsBetweenDraws;  // seconds since the start
  std::int64_t last_logged = 0;
  std::optional<Pieces> pieces;

  std::condition_variable_any wake;
  std::jthread heart;  // last: it ends first

  bool is_redrawn() const { return hearing || stderr_is_terminal(); }

  void beat() {
    if (silent || hearing || !stderr_is_terminal()) return;
    heart = std::jthread([this](const std::stop_token& stop) {
      std::mutex idle;
      std::unique_lock lock(idle);
      while (!wake.wait_for(lock, stop, kHeartbeat, [&] { return stop.stop_requested(); })) update();
    });
  }

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start).count(); }

  // Brings the line up to date; the mutex is held. What is shown never goes back, although the rest may turn out to be longer.
  void fill(double seconds, bool finished) {
    line.seconds = seconds;
    line.finished = finished;
    if (!pieces) {
      line.done = finished ? done.load() : std::max(line.done, done + static_cast<std::int64_t>(parts.load()));
      return;
    }
    const TimeLeft& time = pieces->reach(parts);
    const auto reached = static_cast<std::int64_t>(std::floor(static_cast<double>(kShares) * time.share(seconds)));
    line.done = finished ? reached : std::clamp(reached, line.done, kShares - 1);
    line.left = time.seconds(seconds);
  }

  void update() {
    if (silent) return;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock) return;  // another thread is drawing
    const double seconds = elapsed();
    if (seconds - last_look < kSecondsBetweenDraws) return;
    last_look = seconds;
    fill(seconds, false);
    if (!is_redrawn() && !log_line_due(seconds - last_logged_at, line.done - last_logged, line.total)) return;
    show();
  }

  void show() {
    if (hearing) {
      hearing->advanced({line.what, line.done, line.total, line.left, line.note, line.finished});
    } else if (stderr_is_terminal()) {
      show_status(to_string(line));
    } else {
      print_line(to_string(line));
      last_logged = line.done;
      last_logged_at = line.seconds;
    }
  }

  void finish() {
    heart = {};
    if (silent) return;
    const std::lock_guard lock(mutex);
    fill(elapsed(), true);
    show();
    if (!hearing && stderr_is_terminal()) end_status();
  }

  template <class Change>
  void change_pieces(const Change& change) {
    if (!pieces) return;
    const std::lock_guard lock(mutex);
    change(*pieces, elapsed());
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
  state_->change_pieces([&](Pieces& pieces, double) { pieces.advance(amount); });
  state_->done += amount;
  state_->update();
}

void Progress::advance_found(std::int64_t amount) {
  state_->change_pieces([&](Pieces& pieces, double) { pieces.advance_found(amount); });
  if (!state_->pieces) {
    const std::lock_guard lock(state_->mutex);
    state_->line.before += amount;
  }
  state_->done += amount;
  state_->update();
}

void Progress::set(std::int64_t done) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->started.exchange(true)) state_->line.before = done;  // at the first look: it was not done here
    state_->line.done = std::min(state_->line.done, done);            // a download may begin again
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

void Progress::add_part(double units) {
  state_->parts += units;
  if (units > 0) state_->update();
}

void Progress::begin(std::size_t piece) {
  state_->change_pieces([&](Pieces& pieces, double now) { pieces.begin(piece, now); });
  state_->update();
}

void Progress::begin_part(double share, std::int64_t units) {
  state_->change_pieces([&](Pieces& pieces, double) { pieces.begin_part(share, units); });
}

void Progress::finish(std::size_t piece) {
  state_->change_pieces([&](Pieces& pieces, double now) { pieces.finish(piece, now); });
  state_->update();
}

}  // namespace holdfast
