#include "cells.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/ranges.h>

#include "../model_tiles.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/samples.h"
#include "holdfast/experiment/measure_all.h"
#include "holdfast/experiment/reproduce_statistics.h"

namespace holdfast::experiment::paper {
namespace {

constexpr double kMeasureEvaluations = 1000;  // about; of one kind all are weighed alike

const std::vector<std::int64_t>& positions(const StudiedNetwork& subject) {
  return subject.rows.positions;
}

at::Tensor labels_of(const StudiedNetwork& subject) {
  return subject.data->data.labels_of(positions(subject));
}

std::string subject_key(const StudiedNetwork& subject) {
  return fmt::format("{}; on {}; {}; {}{}", subject.key, subject.data->key, subject.rows.words,
                     explainers().options(subject.explainer).canonical(), subject.explains_labels ? " of labels" : "");
}

// Which of the rows the model classifies rightly, as positions in `rows`.
std::vector<std::size_t> right_ones(const Model& model, const Dataset& data, const std::vector<std::int64_t>& rows) {
  const at::NoGradGuard no_graph;
  const at::Tensor predicted = predicted_class(predict(model, data.inputs_of(rows), data.schema.layout, {.threads = 1}).cpu()),
                   right = predicted.eq(data.labels_of(rows));
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (right[static_cast<std::int64_t>(i)].item<bool>()) found.push_back(i);
  }
  return found;
}

StudiedNetwork with_rows(StudiedNetwork subject, const std::vector<std::size_t>& chosen) {
  std::vector<std::int64_t> rows;
  for (const std::size_t i : chosen) rows.push_back(positions(subject)[i]);
  subject.rows.positions = std::move(rows);
  return subject;
}

// The subject's samples, with the labels as targets where these are explained.
Samples samples_of(const StudiedNetwork& subject) {
  Samples samples = data::samples_of(subject.data->data, positions(subject));
  if (subject.explains_labels) samples.targets = samples.labels;
  return samples;
}

// The attack on one network as a cell of the grid.
Cell cell_of(const StudiedNetwork& subject, const PaperAttack& choice, std::uint64_t seed) {
  const Subject studied{
      .dataset = subject.data->key, .model_name = subject.key, .model = subject.model.get(), .samples = samples_of(subject)};
  const Trial trial{.explainers = {subject.explainer},
                    .attacks = {choice.attack},
                    .metrics = {choice.aim.empty() ? choice.metrics.front() : choice.aim},
                    .threat = choice.threat(),
                    .select = choice.select};
  return make_cells(studied, trial, seed).front();
}

// A training may end with a network that says the same of every input (too much weight decay, say): there is nothing to explain.
bool is_constant(const StudiedNetwork& subject) {
  const at::Tensor logits = predict(*subject.model, inputs_of(subject), subject.data->data.schema.layout, {.threads = 1});
  return (logits - logits.slice(0, 0, 1)).abs().max().item<double>() == 0;
}

// Nothing is defined yet.
AttackedCell empty_cell(const PaperAttack& choice, std::size_t samples) {
  AttackedCell cell;
  if (choice.random_points) cell.random.assign(samples, kUndefined);
  for (const std::string& call : choice.metrics) {
    cell.metrics.push_back({.metric = metrics().options(call).canonical(),
                            .values = std::vector<double>(samples, kUndefined),
                            .chance = std::vector<double>(samples, kUndefined)});
  }
  return cell;
}

bool has_own_levels(const StudiedNetwork& subject) {
  return !subject.explains_labels && subject.data->data.schema.layout.kind == Layout::Kind::kVector;
}

// Puts the numbers of the samples that were attacked in their places among all.
void put(const std::vector<double>& numbers, const std::vector<std::size_t>& places, std::vector<double>& all) {
  for (std::size_t i = 0; i < numbers.size(); ++i) all[places[i]] = numbers[i];
}

// What a metric says of the whole cell. A cell whose labels are explained is a piece of one.
void fill_levels(MetricNumbers& numbers, const MapComparison& found, const StudiedNetwork& subject) {
  numbers.between = found.levels.between;
  numbers.distinct_top_sets = found.levels.distinct_top_sets;
  numbers.tied = std::max(found.assessment.tied_share, found.assessment.tied_perturbed);
  if (!has_own_levels(subject)) return;
  const auto mean = [](const std::optional<Interval>& level) { return level ? level->mean : kUndefined; };
  numbers.effective_sets = mean(found.assessment.effective_sets);
  numbers.own_advantage = mean(found.assessment.own_advantage);
}

void fill_outcomes(AttackedCell& cell, const CellResult& result, const at::Tensor& labels) {
  for (const SampleOutcome& sample : result.samples) {
    cell.first_swap.push_back(sample.first_swap);
    cell.flipped += sample.label_flips > 0 ? 1 : 0;
  }
  cell.flipped /= static_cast<double>(result.samples.size());
  cell.sensitivity = sensitivities(result.logits, result.perturbed_logits);
  cell.auc = auc(result.logits, labels).mean;
  cell.attacked_auc = auc(result.perturbed_logits, labels).mean;
}

// Attacks every sample and explains what the network predicts, or attacks those that are classified rightly, all in one tile.
AttackedCell attack_samples(const StudiedNetwork& subject, const PaperAttack& choice, std::uint64_t seed) {
  const std::size_t count = positions(subject).size();
  AttackedCell cell = empty_cell(choice, count);
  if (!subject.explains_labels && is_constant(subject)) {
    cell.first_swap.assign(count, -1);
    cell.sensitivity.assign(count, kUndefined);
    cell.auc = cell.attacked_auc = 0.5;
    return cell;
  }
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), 0);
  if (subject.explains_labels) places = right_ones(*subject.model, subject.data->data, positions(subject));
  cell.left_out = static_cast<std::int64_t>(count - places.size());
  if (places.empty()) return cell;

  Grid grid({.tiles = {.size = subject.explains_labels ? std::ssize(places) : 0, .threads = 1},
             .random_points = choice.random_points,
             .levels = !subject.explains_labels,
             .warnings = false});
  const Row row = grid.run(cell_of(with_rows(subject, places), choice, seed));
  for (MetricNumbers& numbers : cell.metrics) {
    const bool is_aim = numbers.metric == row.cell.metric->name();
    const MapComparison found =
        is_aim ? static_cast<const MapComparison&>(row) : grid.compare(row, *metrics().make(numbers.metric));
    put(found.assessment.values, places, numbers.values);
    put(found.levels.chance, places, numbers.chance);
    if (!subject.explains_labels) fill_levels(numbers, found, subject);
  }
  if (row.random) put(row.random->values, places, cell.random);
  if (!subject.explains_labels) fill_outcomes(cell, row.result, labels_of(subject));
  return cell;
}

// Between levels of a cell that is cut into pieces: one for each metric.
struct BetweenCell {
  std::vector<double> between;
};
void to_json(Json& json, const BetweenCell& cell) {
  json = cell.between;
}
void from_json(const Json& json, BetweenCell& cell) {
  cell.between = numbers_or_nan(json);
}

BetweenCell levels_of(const StudiedNetwork& subject, const std::vector<std::string>& calls, std::uint64_t seed) {
  const MapBatch clean = clean_maps(subject, seed, 1);
  BetweenCell cell;
  for (const std::string& call : calls) {
    const std::int64_t pairs = subject.data->data.schema.layout.features() > 10000 ? 45 : 300;
    cell.between.push_back(compute_levels(*metrics().make(call), clean, {}, {.pairs = pairs, .seed = seed}).between);
  }
  return cell;
}

BetweenCell between_levels(const StudiedNetwork& subject, const std::vector<std::string>& calls, std::uint64_t seed) {
  const StudiedNetwork right = with_rows(subject, right_ones(*subject.model, subject.data->data, positions(subject)));
  if (positions(right).empty()) return {std::vector<double>(calls.size(), kUndefined)};
  return levels_of(right, calls, seed);
}

// Cuts a cell whose labels are explained: 25 small images keep the passes of an attack busy, of large ones 5 do.
std::vector<StudiedNetwork> pieces_of(const StudiedNetwork& subject) {
  if (!subject.explains_labels) return {subject};
  const std::size_t size = subject.data->data.schema.layout.inputs() > 3 * 64 * 64 ? 5 : 25;
  std::vector<StudiedNetwork> pieces;
  for (std::size_t begin = 0; begin < positions(subject).size(); begin += size) {
    std::vector<std::size_t> own;
    for (std::size_t i = begin; i < std::min(begin + size, positions(subject).size()); ++i) own.push_back(i);
    pieces.push_back(with_rows(subject, own));
    pieces.back().rows.words = fmt::format("rows {}", fmt::join(positions(pieces.back()), " "));
  }
  return pieces;
}

void append(AttackedCell& all, const AttackedCell& piece) {
  for (std::size_t i = 0; i < all.metrics.size(); ++i) {
    const MetricNumbers& more = piece.metrics[i];
    all.metrics[i].values.insert(all.metrics[i].values.end(), more.values.begin(), more.values.end());
    all.metrics[i].chance.insert(all.metrics[i].chance.end(), more.chance.begin(), more.chance.end());
  }
  all.random.insert(all.random.end(), piece.random.begin(), piece.random.end());
  all.left_out += piece.left_out;
}

std::string attack_key(const StudiedNetwork& subject, const PaperAttack& choice, std::uint64_t seed) {
  std::string key = fmt::format("{}; attack {} {} epsilon {} select {} seed {}", subject_key(subject),
                                attacks().options(choice.attack).canonical(), to_string(choice.norm), choice.epsilon,
                                to_string(choice.select), seed);
  if (choice.box) key += fmt::format(" box {} to {}", choice.box->first, choice.box->second);
  if (choice.valid) key += " valid";
  if (choice.switches) key += fmt::format(" switches {}", *choice.switches);
  if (!choice.aim.empty()) key += " aim " + choice.aim;
  for (const std::string& metric : choice.metrics) key += "; " + metrics().options(metric).canonical();
  if (has_own_levels(subject)) key += "; own levels";
  if (choice.random_points) key += "; random points";
  return key;
}

MeasuredCell measure_samples(const StudiedNetwork& subject, const std::string& call, double epsilon, std::uint64_t seed) {
  if (is_constant(subject)) return {std::vector<double>(positions(subject).size(), kUndefined), {}};
  const auto measure = measures().make(call);
  const auto explainer = explainers().make(subject.explainer);
  const MeasureTask task{
      .model = *subject.model, .explainer = *explainer, .samples = samples_of(subject), .seed = seed, .epsilon = epsilon};
  check_measure(*measure, task);
  const Measurement measured = measure_all(*measure, task, {.threads = 1});
  MeasuredCell cell{measured.values, {}};
  for (const auto& [name, values] : measured.parts) cell.parts[name] = values;
  return cell;
}

StudiedNetwork first_of(StudiedNetwork subject, std::int64_t samples) {
  subject.rows.positions.resize(std::min(positions(subject).size(), static_cast<std::size_t>(samples)));
  return subject;
}

// In the place of a cell that was not computed: numbers that differ between cells, so that choices among these differ too.
AttackedCell made_up(const PaperAttack& choice, std::size_t samples, const std::string& key) {
  AttackedCell cell = empty_cell(choice, samples);
  RandomStream random(std::hash<std::string>{}(key), "plan.cell");
  const auto fill = [&](std::vector<double>& numbers, double middle) {
    const double own = middle + random.uniform(-0.05, 0.05);
    for (double& number : numbers) number = own + random.uniform(-0.05, 0.05);
  };
  for (MetricNumbers& numbers : cell.metrics) {
    fill(numbers.values, 0.5);
    fill(numbers.chance, 0.1);
    numbers.between = random.uniform(0.35, 0.4);
    numbers.distinct_top_sets = static_cast<std::int64_t>(samples);
    numbers.tied = 0;
    numbers.effective_sets = random.uniform(2, 4);
    numbers.own_advantage = random.uniform(0.1, 0.2);
  }
  fill(cell.random, 0.6);
  cell.first_swap.assign(samples, 1);
  cell.sensitivity.assign(samples, 0);
  fill(cell.sensitivity, 0.5);
  cell.auc = cell.attacked_auc = 0.9;
  return cell;
}

// As many samples as wanted, of those that were measured.
MeasuredCell repeated(const MeasuredCell& few, std::size_t samples) {
  MeasuredCell cell{{}, few.parts};
  const auto repeat = [&](const std::vector<double>& from, std::vector<double>& numbers) {
    numbers.clear();
    for (std::size_t i = 0; i < samples && !from.empty(); ++i) numbers.push_back(from[i % from.size()]);
  };
  repeat(few.values, cell.values);
  for (const auto& [name, values] : few.parts) repeat(values, cell.parts[name]);
  return cell;
}

}  // namespace

Threat PaperAttack::threat() const {
  return {.norm = norm, .epsilons = {epsilon}, .box = box, .valid = valid, .switches = switches};
}

const MetricNumbers& AttackedCell::of(const std::string& metric) const {
  const auto found = std::ranges::find(metrics, metric::metrics().options(metric).canonical(), &MetricNumbers::metric);
  HOLDFAST_CHECK(found != metrics.end());
  return *found;
}

void to_json(Json& json, const AttackedCell& cell) {
  Json list = Json::array();
  for (const MetricNumbers& one : cell.metrics) {
    list.push_back({{"name", one.metric},
                    {"values", one.values},
                    {"chance", one.chance},
                    {"between", one.between},
                    {"distinct_top_sets", one.distinct_top_sets},
                    {"tied", one.tied},
                    {"effective_sets", one.effective_sets},
                    {"own_advantage", one.own_advantage}});
  }
  json = {{"metrics", list},
          {"first_swap", cell.first_swap},
          {"sensitivity", cell.sensitivity},
          {"random", cell.random},
          {"flipped", cell.flipped},
          {"auc", cell.auc},
          {"attacked_auc", cell.attacked_auc},
          {"left_out", cell.left_out}};
}

void from_json(const Json& json, AttackedCell& cell) {
  for (const Json& one : json.at("metrics")) {
    cell.metrics.push_back({.metric = one.at("name"),
                            .values = numbers_or_nan(one.at("values")),
                            .chance = numbers_or_nan(one.at("chance")),
                            .between = number_or_nan(one.at("between")),
                            .distinct_top_sets = one.at("distinct_top_sets"),
                            .tied = number_or_nan(one.value("tied", Json())),
                            .effective_sets = number_or_nan(one.value("effective_sets", Json())),
                            .own_advantage = number_or_nan(one.value("own_advantage", Json()))});
  }
  cell.first_swap = json.at("first_swap").get<std::vector<std::int64_t>>();
  cell.sensitivity = numbers_or_nan(json.at("sensitivity"));
  cell.random = numbers_or_nan(json.value("random", Json::array()));
  cell.flipped = json.at("flipped");
  cell.auc = number_or_nan(json.at("auc"));
  cell.attacked_auc = number_or_nan(json.at("attacked_auc"));
  cell.left_out = json.at("left_out");
}

void to_json(Json& json, const MeasuredCell& cell) {
  Json parts = Json::object();
  for (const auto& [name, values] : cell.parts) parts[name] = values;
  json = {{"values", cell.values}, {"parts", parts}};
}

void from_json(const Json& json, MeasuredCell& cell) {
  cell.values = numbers_or_nan(json.at("values"));
  for (const auto& [name, values] : json.at("parts").items()) cell.parts[name] = numbers_or_nan(values);
}

SampleRows first_rows(const Dataset& dataset, const std::string& part, std::int64_t count) {
  SampleRows rows{dataset.rows(part), fmt::format("first {} of {}", count, part)};
  rows.positions.resize(std::min(rows.positions.size(), static_cast<std::size_t>(count)));
  return rows;
}

SampleRows spread_rows(const Dataset& dataset, std::int64_t count) {
  const std::vector<std::int64_t> all = dataset.rows(dataset.test.empty() ? "all" : "test");
  const std::size_t chosen = std::min(all.size(), static_cast<std::size_t>(count));
  SampleRows rows{{}, fmt::format("{} spread over the test samples", chosen)};
  for (std::size_t i = 0; i < chosen; ++i) rows.positions.push_back(all[i * all.size() / chosen]);
  return rows;
}

SampleRows class_rows(const Dataset& dataset, std::int64_t count) {
  const std::vector<std::int64_t> all = dataset.rows(dataset.test.empty() ? "all" : "test");
  const std::int64_t each = std::max<std::int64_t>(1, count / dataset.classes());
  SampleRows rows{{}, fmt::format("first {} of each class", each)};
  std::vector<std::int64_t> taken(static_cast<std::size_t>(dataset.classes()));
  for (const std::int64_t row : all) {
    std::int64_t& of_class = taken[static_cast<std::size_t>(dataset.labels[row].item<std::int64_t>())];
    if (of_class < each) rows.positions.push_back(row);
    of_class += of_class < each ? 1 : 0;
  }
  return rows;
}

SampleRows right_rows(const Model& model, const Dataset& dataset, std::int64_t count) {
  const std::vector<std::int64_t> all = dataset.rows(dataset.test.empty() ? "all" : "test");
  const auto enough = static_cast<std::size_t>(count);
  constexpr std::size_t kPart = 50;  // samples that are predicted at once
  SampleRows rows;
  for (std::size_t begin = 0; begin < all.size() && rows.positions.size() < enough; begin += kPart) {
    const std::vector<std::int64_t> part(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                         all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), begin + kPart)));
    const std::vector<std::size_t> right = right_ones(model, dataset, part);
    for (std::size_t i = 0; i < part.size() && rows.positions.size() < enough; ++i) {
      const bool is_right = std::ranges::find(right, i) != right.end();
      is_right ? rows.positions.push_back(part[i]) : void(++rows.passed_over);
    }
  }
  rows.words = fmt::format("rows {}", fmt::join(rows.positions, " "));
  return rows;
}

at::Tensor inputs_of(const StudiedNetwork& subject) {
  return subject.data->data.inputs_of(positions(subject));
}

CellResult attack_maps(const StudiedNetwork& subject, const PaperAttack& choice, std::uint64_t seed, int threads) {
  Grid grid({.tiles = {.size = 1, .threads = threads}, .random_points = false, .levels = false, .warnings = false});
  return grid.run(cell_of(subject, choice, seed)).result;
}

MapBatch clean_maps(const StudiedNetwork& subject, std::uint64_t seed, int threads) {
  const auto explainer = explainers().make(subject.explainer);
  const ExplainTask task{.model = *subject.model, .samples = samples_of(subject), .seed = seed};
  return fold_maps(explain_all(*explainer, task, {.threads = threads}).maps, subject.data->data.schema);
}

namespace {

// So many evaluations of each sample, whose cost grows with its size. Cells of one dataset and call are alike.
WorkPiece work_of(const StudiedNetwork& subject, const std::string& call, double evaluations) {
  const Schema& schema = subject.data->data.schema;
  return {fmt::format("{}\n{}\n{}\n{}", subject.data->data.name, subject.structure, subject.explainer, call),
          evaluations * static_cast<double>(positions(subject).size() * static_cast<std::size_t>(schema.layout.inputs()))};
}

// Of each sample.
double evaluations_of(const StudiedNetwork& subject, const std::string& attack) {
  return attacks().make(attack)->expected_evaluations(*explainers().make(subject.explainer), subject.data->data.schema);
}

Job<AttackedCell> attack_job(const StudiedNetwork& subject, const PaperAttack& choice, std::uint64_t seed) {
  const std::string key = attack_key(subject, choice, seed);
  const double evaluations = evaluations_of(subject, choice.attack);
  const std::size_t samples = positions(subject).size();
  return {key,
          [=] { return attack_samples(subject, choice, seed); },
          work_of(subject, choice.attack + (choice.random_points ? ", random points" : ""), evaluations),
          {.units = std::ssize(positions(subject)),
           .evaluations = evaluations * static_cast<double>(samples),
           .few =
               [=](std::int64_t units) {
                 // What a fresh network says of labels is of no matter.
                 StudiedNetwork few = first_of(subject, units);
                 few.explains_labels = false;
                 return attack_samples(few, choice, seed);
               },
           .stand_in = [=](const AttackedCell&) { return made_up(choice, samples, key); }}};
}

Job<BetweenCell> between_job(const StudiedNetwork& subject, const std::vector<std::string>& calls, std::uint64_t seed) {
  return {fmt::format("between; {}; {}; seed {}", subject_key(subject), fmt::join(calls, " "), seed),
          [=] { return between_levels(subject, calls, seed); },
          work_of(subject, fmt::format("between {}", fmt::join(calls, " ")), 1),
          {.units = std::ssize(positions(subject)),
           .few = [=](std::int64_t units) { return levels_of(first_of(subject, units), calls, seed); },
           .stand_in = [=](const BetweenCell&) { return BetweenCell{std::vector<double>(calls.size(), 0.4)}; }}};
}

}  // namespace

std::size_t CellBatch::attack(const StudiedNetwork& subject, const PaperAttack& choice) {
  attacks_.push_back({subject, choice});
  return attacks_.size() - 1;
}

std::size_t CellBatch::measure(const StudiedNetwork& subject, const std::string& measure, double epsilon) {
  const std::int64_t samples = std::ssize(positions(subject));
  measures_.push_back(
      {fmt::format("{}; measure {} epsilon {} seed {}", subject_key(subject), measures().options(measure).canonical(), epsilon,
                   seed_),
       [=, seed = seed_] { return measure_samples(subject, measure, epsilon, seed); },
       work_of(subject, measure, kMeasureEvaluations),
       {.units = samples,
        .few = [=,
                seed = seed_](std::int64_t units) { return measure_samples(first_of(subject, units), measure, epsilon, seed); },
        .stand_in = [=](const MeasuredCell& few) { return repeated(few, static_cast<std::size_t>(samples)); }}});
  return measures_.size() - 1;
}

void CellBatch::run(ExperimentContext& context, const std::string& label) {
  std::vector<Job<AttackedCell>> jobs;
  std::vector<Job<BetweenCell>> levels;
  for (const auto& [subject, choice] : attacks_) {
    for (const StudiedNetwork& piece : pieces_of(subject)) jobs.push_back(attack_job(piece, choice, seed_));
    if (subject.explains_labels) levels.push_back(between_job(subject, choice.metrics, seed_));
  }
  const std::vector<AttackedCell> done = context.compute(label, jobs);
  const std::vector<BetweenCell> between = context.compute(label + ", levels", levels);
  std::size_t next = 0, next_level = 0;
  for (const auto& [subject, choice] : attacks_) {
    AttackedCell cell = done[next++];
    for (std::size_t i = 1; i < pieces_of(subject).size(); ++i) append(cell, done[next++]);
    for (std::size_t i = 0; subject.explains_labels && i < cell.metrics.size(); ++i)
      cell.metrics[i].between = between[next_level].between[i];
    next_level += subject.explains_labels ? 1 : 0;
    attacked_.push_back(std::move(cell));
  }
  measured_ = context.compute(label + ", measures", measures_);
}

}  // namespace holdfast::experiment::paper
