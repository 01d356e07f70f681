#include "work_plan.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <queue>

#include <fmt/ranges.h>

#include "holdfast/core/clock.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor_memory.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/train_many.h"
#include "reproduce_shared.h"

namespace holdfast::experiment {
namespace {

constexpr double kEnough = 0.05;        // seconds: a trial that takes longer is not made larger
constexpr std::int64_t kFewUnits = 2;   // of the first trial
constexpr std::int64_t kMoreSteps = 8;  // of a second trial of a training
constexpr std::size_t kTriedRows = 500;

// Messages and progress of what is only tried are nobody's business.
class Silence {
 public:
  Silence() : before_(log_level()) { set_log_level(std::max(before_, LogLevel::kError)); }
  ~Silence() { set_log_level(before_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  LogLevel before_;
};

// Counts this process alone: what else the machine does now says nothing about the run.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What the process has in memory now, data and libraries included; 0 where that cannot be known.
std::int64_t resident_memory() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  return file >> all >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

// What decides the time of trainings that are made together: seeds and the values of weights do not.
std::string kind_of(const Dataset& dataset, const std::vector<TrainOptions>& together) {
  TrainOptions first = together.front();
  first.seed = 0;
  Json json = to_json(first);
  for (const char* call : {"recipe", "objective"}) json[call] = parse_method_call(json.at(call).get<std::string>()).name;
  json.erase("retrain");
  // Folds of one dataset differ by a sample.
  return fmt::format("{} {} {} {}", dataset.name, static_cast<std::int64_t>(dataset.train.size()) / first.batch_size,
                     together.size(), json.dump());
}

std::int64_t steps_of_an_epoch(const Dataset& dataset, const TrainOptions& options) {
  return static_cast<std::int64_t>(train::epoch_batches(dataset.train, options.batch_size, options.seed, 0).size());
}

// The trainings with so many steps, and without a look at validation samples.
void train_for_trial(const Dataset& dataset, std::vector<TrainOptions> together, std::int64_t steps) {
  Dataset part = dataset;
  const auto rows = static_cast<std::size_t>(steps * together.front().batch_size);
  if (rows < part.train.size()) part.train.resize(rows);
  part.validation.clear();
  part.test.clear();
  for (TrainOptions& one : together) {
    one.epochs = 1;
    one.snapshots.clear();
    one.early_stopping = {};
    one.retrain = {};  // the network to start from need not be there yet
    one.folder.clear();
  }
  if (together.size() > 1) {
    (void)train_many(part, together, 1, "plan");
  } else {
    (void)train_network(part, together.front());
  }
}

}  // namespace

template <class Work>
double WorkPlan::time(const Work& work) {
  throw_if_interrupted();
  const Silence silence;
  const TileThread one_thread;
  const std::int64_t before = tensor_memory();
  reset_peak_tensor_memory();
  const double start = on_processor_ ? processor_seconds() : 0;
  const auto start_of_wall = std::chrono::steady_clock::now();
  work();
  const double seconds = on_processor_ ? processor_seconds() - start : seconds_since(start_of_wall);
  piece_memory_ = std::max(piece_memory_, peak_tensor_memory() - before);
  return seconds;
}

// Tries more and more units until the trial takes long enough. Two trials tell what each unit adds.
const WorkPlan::Tried& WorkPlan::tried(const Job<Json>& job) {
  const auto [place, is_new] = tried_.try_emplace(job.work.kind);
  Tried& found = place->second;
  if (!is_new) return found;
  const auto run = [&](std::int64_t units) {
    return time([&] { found.result = job.trial.few ? job.trial.few(units) : job.compute(); });
  };
  const std::int64_t all = job.trial.few ? job.trial.units : 1;
  std::int64_t units = std::min(kFewUnits, all), before = 0;
  double seconds = run(units), seconds_before = 0;
  while (units < all && seconds < kEnough) {
    before = std::exchange(units, std::min(all, units * 8));
    seconds_before = std::exchange(seconds, run(units));
  }
  found.each =
      std::clamp((seconds - seconds_before) / static_cast<double>(units - before), 0.0, seconds / static_cast<double>(units));
  found.fixed = seconds - found.each * static_cast<double>(units);
  // Jobs that cannot be tried in part are alike.
  if (!job.trial.few) found = {.fixed = seconds, .each = 0, .result = std::move(found.result)};
  return found;
}

void WorkPlan::add_seconds(double seconds) {
  HOLDFAST_CHECK(!phases_.empty());
  phases_.back().push_back(seconds);
}

void WorkPlan::add_cell(const std::string& path, const Job<Json>& job) {
  const Tried& one = tried(job);
  if (!cells_.insert(path).second) return;
  evaluations_ += job.trial.evaluations;
  add_seconds(one.fixed + one.each * static_cast<double>(job.trial.units));
}

Json WorkPlan::stand_in(const Job<Json>& job) const {
  const Json& result = tried_.at(job.work.kind).result;
  return job.trial.stand_in ? job.trial.stand_in(result) : result;
}

// Of a look at the validation samples, which ends every epoch: tried on a part of them.
double WorkPlan::validation_seconds(const Dataset& dataset, const TrainOptions& options) {
  std::vector<std::int64_t> rows = dataset.validation;
  const auto [place, is_new] =
      validation_seconds_.try_emplace(fmt::format("{} {} {}", dataset.name, options.architecture, rows.size() / 10), 0);
  if (!is_new || rows.empty()) return place->second;
  const auto all = static_cast<double>(rows.size());
  rows.resize(std::min(rows.size(), kTriedRows));
  const Network network = architectures().make(options.architecture)->build(options.seed).to(options.device);
  const double seconds =
      time([&] { (void)prediction_quality(measure::predict(network, dataset.inputs_of(rows), 1), dataset.labels_of(rows)); });
  return place->second = seconds * all / static_cast<double>(rows.size());
}

// Tries a step, and a few more where that was quick: what they add is the time of a step. Trainings that stop early take less.
double WorkPlan::seconds_of(const Dataset& dataset, const std::vector<TrainOptions>& together) {
  const TrainOptions& first = together.front();
  const auto run = [&](std::int64_t steps) { return time([&] { train_for_trial(dataset, together, steps); }); };
  const std::int64_t all = steps_of_an_epoch(dataset, first);
  if (objectives().make(first.objective)->fits()) return run(all);
  double fixed = 0, a_step = run(1);
  if (all > 1 && a_step < kEnough) {
    const double once = run(1);  // the first one waited for files and threads too
    const std::int64_t more = std::min(all, kMoreSteps) - 1;
    a_step = std::clamp((run(1 + more) - once) / static_cast<double>(more), 0.0, once);
    fixed = once - a_step;
  }
  const double looks = static_cast<double>(together.size()) * validation_seconds(dataset, first);
  return fixed + static_cast<double>(first.epochs) * (static_cast<double>(all) * a_step + looks);
}

void WorkPlan::add_trainings(const Dataset& dataset, const std::vector<TrainOptions>& together) {
  const std::string kind = kind_of(dataset, together);
  if (!training_seconds_.contains(kind)) training_seconds_[kind] = seconds_of(dataset, together);
  for (const TrainOptions& one : together) {
    networks_.insert(one.folder);
    steps_ += static_cast<double>(one.epochs * steps_of_an_epoch(dataset, one));
  }
  add_seconds(training_seconds_.at(kind));
}

double WorkPlan::Part::seconds(std::int64_t workers) const {
  double all = 0;
  for (const std::vector<double>& pieces : phases) {
    std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
    for (std::int64_t i = 0; i < workers; ++i) free_at.push(0);
    double last = 0;
    for (const double piece : pieces) {
      const double done = free_at.top() + piece;
      free_at.pop();
      free_at.push(done);
      last = std::max(last, done);
    }
    all += last;
  }
  return all;
}

WorkPlan::Part& WorkPlan::Part::operator+=(const Part& other) {
  networks += other.networks;
  networks_kept += other.networks_kept;
  cells += other.cells;
  cells_kept += other.cells_kept;
  steps += other.steps;
  evaluations += other.evaluations;
  phases.insert(phases.end(), other.phases.begin(), other.phases.end());
  return *this;
}

WorkPlan::Part WorkPlan::take_part() {
  const auto since = [](const std::set<std::string>& all, std::size_t& before) {
    return static_cast<std::int64_t>(all.size() - std::exchange(before, all.size()));
  };
  return {.networks = since(networks_, networks_before_),
          .networks_kept = since(kept_networks_, networks_kept_before_),
          .cells = since(cells_, cells_before_),
          .cells_kept = since(kept_cells_, cells_kept_before_),
          .steps = std::exchange(steps_, 0),
          .evaluations = std::exchange(evaluations_, 0),
          .phases = std::exchange(phases_, {})};
}

namespace {

Json part_json(const WorkPlan::Part& part, int threads) {
  Json seconds = Json::object();
  for (const std::int64_t machines : {1, 2, 4, 8}) seconds[std::to_string(machines)] = part.seconds(threads * machines);
  return {{"networks", {{"train", part.networks}, {"kept", part.networks_kept}}},
          {"steps", part.steps},
          {"cells", {{"compute", part.cells}, {"kept", part.cells_kept}}},
          {"evaluations", part.evaluations},
          {"seconds", seconds}};
}

}  // namespace

Json plan_experiments(const std::vector<ReproduceOptions>& runs) {
  HOLDFAST_CHECK(!runs.empty());
  WorkPlan plan(runs.front().device);
  WorkPlan::Part total;
  Json experiments = Json::array(), notes = Json::array();
  int threads = 1;
  std::int64_t memory = 0;
  for (const ReproduceOptions& options : runs) {
    const auto experiment = make_experiment(options.experiment);
    ExperimentContext context(options.scale, options.seed, options.threads, options.device, folders_of(options), options.only,
                              nullptr, &plan);
    check_looks(options.looks);
    context.looks = options.looks;
    threads = context.threads;
    const ExperimentResult result = experiment->run(context);
    if (is_empty(options, *experiment, context, result)) continue;
    memory = std::max(memory, resident_memory() + threads * plan.piece_memory());
    const WorkPlan::Part part = plan.take_part();
    Json entry = part_json(part, threads);
    entry["experiment"] = experiment->name();
    experiments.push_back(std::move(entry));
    total += part;
    for (const std::string& note : context.notes()) {
      if (std::ranges::find(notes, Json(note)) == notes.end()) notes.push_back(note);
    }
  }
  return {{"kind", "plan"},
          {"scale", to_string(runs.front().scale)},
          {"seed", runs.front().seed},
          {"device", runs.front().device.str()},
          {"threads", threads},
          {"experiments", experiments},
          {"total", part_json(total, threads)},
          {"memory", memory},
          {"notes", notes}};
}

}  // namespace holdfast::experiment
