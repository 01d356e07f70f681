#include "holdfast/experiment/grid.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "holdfast/core/large_tensor.h"
#include "holdfast/core/log.h"
#include "holdfast/core/method.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/cell_facts.h"
#include "holdfast/experiment/measure_all.h"
#include "holdfast/experiment/run_folder.h"
#include "model_tiles.h"

namespace holdfast::experiment {
namespace {

constexpr std::int64_t kMostPoints = 300, kFewestPoints = 10;
// Samples with at most so many features and explanations of fewer passes are cheap.
constexpr std::int64_t kCheapFeatures = 256, kManyPasses = 10;

// Canonical calls, each once: top_k and top_k(k=8) are one metric.
template <class Product>
std::vector<std::string> distinct(const Registry<Product>& registry, const std::vector<std::string>& calls) {
  std::vector<std::string> names;
  for (const std::string& call : calls) {
    std::string name = registry.make(call)->name();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

// What cells share whose clean maps are compared by one metric.
std::string maps_key(const Cell& cell, const Metric& metric) {
  return cell.subject.model_name + '\n' + cell.subject.dataset + '\n' + cell.explainer->name() + '\n' + metric.name();
}

RandomPoints summarised(const Cell& cell, const std::string& name, const std::string& call, const CellResult& result) {
  std::vector<double> values;
  for (const SampleOutcome& sample : result.samples) values.push_back(sample.value);
  const auto [low, high] = std::minmax({cell.metric->floor(), cell.metric->perfect()});
  const Interval value = mean_interval(values, cell.seed, low, high);
  return {.attack = name, .samples = attacks().options(call).integer("samples"), .values = std::move(values), .value = value};
}

// What own advantage is made of; nothing for metrics of whole maps.
OwnEffects effects_of(const Row& row, const Metric& metric, const TileOptions& tiles) {
  if (!metric.top_count()) return {};
  Samples samples = row.cell.subject.samples;
  samples.targets = row.result.targets;
  std::vector<std::int64_t> predicted;
  for (const SampleOutcome& sample : row.result.samples) predicted.push_back(sample.prediction);
  std::vector<std::vector<std::int64_t>> sets;
  for (std::int64_t i = 0; i < row.perturbed.count; ++i) sets.push_back(metric.top_set(row.perturbed[i]));
  return own_effects(*row.cell.subject.model, samples, predicted, sets, *row.perturbed.schema, row.cell.seed, tiles);
}

std::optional<Interval> advantage_of(const OwnEffects& effects, std::uint64_t seed) {
  const Interval found = own_advantage(effects.own, effects.other, seed);
  return std::isnan(found.mean) ? std::nullopt : std::optional(found);
}

// Padding and special tokens are not ranked: every sample needs k others.
void check_ranked_tokens(const std::string& name, const Samples& samples, const Metric& metric) {
  if (samples.layout().kind != Layout::Kind::kTokens || !metric.top_count()) return;
  const at::Tensor ranked = samples.inputs.select(2, samples.inputs.size(2) - 1).sum(1);
  const std::int64_t shortest = ranked.argmin().item<std::int64_t>(), count = ranked[shortest].item<std::int64_t>();
  if (*metric.top_count() > count)
    usage_error("{}: {}: sample {} has {} to rank; choose k <= {}, or leave the sample out", name, metric.name(), shortest,
                counted(count, "token"), count);
}

std::optional<TileStore> store_in(const std::string& folder) {
  return folder.empty() ? std::nullopt : std::optional<TileStore>(folder);
}

}  // namespace

void check_calls(const Trial& trial) {
  for (const std::string& call : trial.explainers) (void)explainers().make(call);
  for (const std::string& call : trial.attacks) (void)attacks().make(call);
  for (const std::string& call : trial.metrics) (void)metrics().make(call);
  for (const std::string& call : trial.measures) (void)measures().make(call);
}

Json to_json(const Trial& trial) {
  Json json{{"explainers", trial.explainers}, {"attacks", trial.attacks},        {"metrics", trial.metrics},
            {"measures", trial.measures},     {"threat", to_json(trial.threat)}, {"select", to_string(trial.select)}};
  if (trial.precision != Precision::kFloat32) json["precision"] = to_string(trial.precision);
  return json;
}

std::unique_ptr<Metric> metric_for(const std::string& call, const Explainer& explainer, const Schema& schema) {
  MethodCall written = parse_method_call(call);
  std::unique_ptr<Metric> metric = metrics().make(call);
  const std::optional<std::int64_t> usual = explainer.usual_top(schema);
  if (!metric->top_count() || written.gives("k") || !usual) return metric;
  written.options.emplace_back("k", fmt::format("{}", *usual));
  std::string text;
  for (const auto& [name, value] : written.options) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return metrics().make(fmt::format("{}({})", written.name, text));
}

void check_samples(const std::string& name, const Samples& samples, const Trial& trial) {
  for (const std::string& explainer : trial.explainers) {
    const std::unique_ptr<Explainer> made = explainers().make(explainer);
    for (const std::string& call : trial.metrics) {
      const std::unique_ptr<Metric> metric = metric_for(call, *made, *samples.schema);
      metric->check(made->map_schema(*samples.schema));
      check_ranked_tokens(name, samples, *metric);
    }
  }
  for (const double epsilon : trial.threat.epsilons) (void)ThreatModel::make(trial.threat, *samples.schema, epsilon);
  const auto& box = trial.threat.box;
  if (!box) return;
  for_each_part(samples.inputs, [&](std::int64_t begin, const at::Tensor& part) {
    const at::Tensor outside = ((part < box->first) | (part > box->second)).flatten(1).any(1);
    if (!outside.any().item<bool>()) return;
    const std::int64_t first = outside.to(at::kInt).argmax().item<std::int64_t>();
    const double low = part[first].min().item<double>();
    input_error("{}: sample {} has value {:g}, outside the box {:g},{:g}", name, begin + first,
                low < box->first ? low : part[first].max().item<double>(), box->first, box->second);
  });
}

AttackTask Cell::task(const at::Tensor& start) const {
  return {.model = *subject.model,
          .explainer = *explainer,
          .metric = *metric,
          .threat = threat,
          .samples = subject.samples,
          .seed = seed,
          .start = start,
          .select = select,
          .precision = precision,
          .trace = trace};
}

namespace {

void check_precision(Precision precision, at::Device device) {
  if (precision != Precision::kFloat32 && device.is_cpu())
    usage_error("precision: {} is for GPUs, and the model computes on the CPU; leave it away", to_string(precision));
}

}  // namespace

std::vector<Cell> make_cells(const Subject& subject, const Trial& trial, std::uint64_t seed, bool trace) {
  check_precision(trial.precision, subject.model->device());
  std::vector<Cell> cells;
  for (const std::string& explainer : distinct(explainers(), trial.explainers)) {
    std::vector<std::string> resolved;
    for (const std::string& call : trial.metrics)
      resolved.push_back(metric_for(call, *explainers().make(explainer), *subject.samples.schema)->name());
    for (const std::string& metric : distinct(metrics(), resolved)) {
      for (const std::string& attack : distinct(attacks(), trial.attacks)) {
        for (const double epsilon : trial.threat.epsilons) {
          cells.push_back({.subject = subject,
                           .explainer = explainers().make(explainer),
                           .attack = attacks().make(attack),
                           .metric = metrics().make(metric),
                           .threat = ThreatModel::make(trial.threat, *subject.samples.schema, epsilon),
                           .seed = seed,
                           .select = trial.select,
                           .precision = trial.precision,
                           .trace = trace,
                           .starts_from_previous = epsilon != trial.threat.epsilons.front()});
          check_cell(*cells.back().attack, cells.back().task());
        }
      }
    }
  }
  return cells;
}

std::optional<std::string> random_points_call(const Cell& cell, const CellResult& found) {
  if (parse_method_call(cell.attack->name()).name == "random") return std::nullopt;
  const Schema& schema = *cell.subject.samples.schema;
  const std::int64_t passes = cell.explainer->evaluations(schema);
  std::int64_t points = kMostPoints;
  if (schema.layout.features() > kCheapFeatures || passes >= kManyPasses) {
    std::int64_t spent = 0;
    for (const SampleOutcome& sample : found.samples) spent = std::max(spent, sample.evaluations);
    points = std::clamp(spent / (10 * passes), kFewestPoints, kMostPoints);
  }
  return fmt::format("random(samples={},from=sphere)", points);
}

CellWork expected_work(const Cell& cell, bool random_points) {
  // Attacks put many rows through a model at once, random points one a sample: an evaluation takes about twice as long.
  constexpr double kOfAPoint = 2;
  const Schema& schema = *cell.subject.samples.schema;
  CellWork work{.attack = cell.attack->expected_evaluations(*cell.explainer, schema)};
  if (!random_points) return work;
  CellResult guess;
  guess.samples.push_back({.evaluations = static_cast<std::int64_t>(work.attack)});
  if (const auto call = random_points_call(cell, guess))
    work.random_points = kOfAPoint * attacks().make(*call)->expected_evaluations(*cell.explainer, schema);
  return work;
}

bool RandomPoints::beat(double mean, Direction direction) const {
  return direction == Direction::kHigherIsMoreAlike ? value.mean < mean : value.mean > mean;
}

void warn_if_beaten(const Row& row) {
  if (row.is_beaten())
    log_warning("{}: {} harms more; do not read its value as robustness", row.cell.attack->name(), row.random->attack);
}

Json to_json(const RandomPoints& random) {
  return {{"attack", random.attack},
          {"samples", random.samples},
          {"mean", random.value.mean},
          {"low", random.value.low},
          {"high", random.value.high}};
}

namespace {

// What a warning of ties says: as much as its percentages show.
std::string ties_key(const Row& row) {
  return fmt::format("{} {:.3g} {:.3g}", row.assessment.metric, row.assessment.tied_share, row.assessment.tied_perturbed);
}

}  // namespace

Row Grid::run(const Cell& cell, Progress* progress) {
  const std::string store_folder = options_.folder.empty() ? "" : tile_folder(options_.folder, done_++);
  Row row;
  row.cell = cell;
  const CellWork work = expected_work(cell, options_.random_points);
  const std::int64_t samples = cell.subject.samples.count();
  if (progress != nullptr) progress->begin_part(work.attack / work.total(), samples);
  row.result =
      run_attack(*cell.attack, cell.task(cell.starts_from_previous ? found_before_ : at::Tensor()), progress, store_folder);
  log_reached("attacked and verified");
  found_before_ = row.result.perturbed;
  if (options_.warnings && judges()) warn_of_no_gradient(row.result, cell.attack->name());
  if (progress != nullptr) progress->begin_part(work.random_points / work.total(), samples);
  if (options_.random_points) row.random = random_points(cell, row.result, progress, store_folder);
  log_reached("random points tried");
  if (!judges()) return row;

  const Schema& schema = *cell.subject.samples.schema;
  row.clean = fold_maps(row.result.original_maps, schema);
  row.perturbed = fold_maps(row.result.perturbed_maps, schema);
  static_cast<MapComparison&>(row) = compare(row, *cell.metric);
  if (options_.warnings && ties_said_.insert(ties_key(row)).second) warn_of_ties(row.assessment);
  log_reached("compared");
  if (options_.levels) row.certified = certify_in_passing(row, options_.tiles);
  log_reached("certified");
  return row;
}

Row Grid::run_alone(const Cell& cell) {
  Progress progress(cell.attack->name(), std::vector<WorkPiece>(1));
  progress.begin(0);
  Row row = run(cell, &progress);
  progress.finish(0);
  return row;
}

CellResult Grid::run_attack(const Attack& attack, const AttackTask& task, Progress* progress,
                            const std::string& store_folder) const {
  const std::optional<TileStore> store = store_in(store_folder);
  HOLDFAST_CHECK(options_.ranks == nullptr || store);
  if (options_.ranks != nullptr) return run_cell_together(*options_.ranks, attack, task, options_.tiles, progress, *store);
  return run_cell(attack, task, options_.tiles, progress, store ? &*store : nullptr);
}

MapComparison Grid::compare(const Row& row, const Metric& metric) {
  const std::uint64_t seed = row.cell.seed;
  MapComparison result;
  // Clean maps do not depend on the attack: neither do their levels.
  const std::string key = maps_key(row.cell, metric);
  auto known = levels_.find(key);
  if (known == levels_.end()) {
    BetweenOptions pairs{.seed = seed};
    if (!options_.levels) pairs.pairs = 0;
    known = levels_.emplace(key, compute_levels(metric, row.clean, to_vector(row.result.targets), pairs)).first;
  }
  result.levels = known->second;
  result.assessment = assess(metric, row.clean, row.perturbed, result.levels, seed);
  if (!options_.levels) return result;
  result.effects = effects_of(row, metric, options_.tiles);
  result.assessment.own_advantage = advantage_of(result.effects, seed);
  return result;
}

// Attacks on one subject share them where they cost the same.
std::optional<RandomPoints> Grid::random_points(const Cell& cell, const CellResult& result, Progress* progress,
                                                const std::string& store_folder) {
  const std::optional<std::string> call = random_points_call(cell, result);
  if (!call) return std::nullopt;
  const std::string key = maps_key(cell, *cell.metric) + '\n' + to_json(cell.threat).dump() + '\n' + *call;
  const auto known = random_.find(key);
  if (known != random_.end()) return known->second;
  const std::unique_ptr<Attack> random = attacks().make(*call);
  AttackTask task = cell.task();
  task.select = Select::kWorst;
  task.trace = false;
  const CellResult found = run_attack(*random, task, progress, store_folder.empty() ? "" : store_folder + "/random");
  return random_.emplace(key, summarised(cell, random->name(), *call, found)).first->second;
}

MeasureTask MeasureCell::task() const {
  return {.model = *subject.model, .explainer = *explainer, .samples = subject.samples, .seed = seed, .epsilon = epsilon};
}

std::vector<MeasureCell> make_measure_cells(const Subject& subject, const Trial& trial, std::uint64_t seed) {
  std::vector<MeasureCell> cells;
  std::set<std::string> seen;
  for (const std::string& explainer : trial.explainers) {
    for (const std::string& call : trial.measures) {
      MeasureCell cell{.subject = subject,
                       .explainer = explainers().make(explainer),
                       .measure = measures().make(call),
                       .seed = seed,
                       .epsilon = trial.threat.epsilons.back()};
      if (!seen.insert(cell.explainer_name() + '\n' + cell.measure->name()).second) continue;
      check_measure(*cell.measure, cell.task());
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

}  // namespace holdfast::experiment
