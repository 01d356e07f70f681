#include "reproduce_cells.h"

#include <algorithm>
#include <cmath>

#include "holdfast/core/torch.h"
#include "holdfast/experiment/audit.h"
#include "holdfast/experiment/cell_facts.h"
#include "holdfast/experiment/measure_all.h"
#include "samples.h"

namespace holdfast {
namespace {

Samples samples_of(const CellSubject& subject) {
  std::vector<std::int64_t> rows = subject.data->data.rows(subject.part);
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(subject.samples)));
  return samples_of(subject.data->data, rows);
}

std::string subject_key(const CellSubject& subject) {
  return fmt::format("{}; {}, first {} of {}", subject.key, explainers().options(subject.explainer).canonical(), subject.samples,
                     subject.part);
}

// Where the value lies between another sample's map (0) and the own (1); undefined where maps of all samples are alike.
std::vector<double> specific_values(const Assessment& assessment, Direction direction) {
  const double perfect = direction == Direction::kHigherIsMoreAlike ? 1 : 0;
  const double between = assessment.between.value_or(std::nan(""));
  std::vector<double> result;
  for (const double value : assessment.values) {
    result.push_back(perfect == between ? std::nan("") : (value - between) / (perfect - between));
  }
  return result;
}

Json metric_json(const std::string& call, const CellResult& result, const Schema& schema, const std::vector<std::int64_t>& labels,
                 std::uint64_t seed) {
  const auto metric = metrics().make(call);
  const MapBatch clean = fold_maps(result.original_maps, schema), moved = fold_maps(result.perturbed_maps, schema);
  const Levels levels = compute_levels(*metric, clean, labels, {.seed = seed});
  const Assessment assessment = assess(*metric, clean, moved, levels, seed);
  return {{"name", assessment.metric},
          {"values", assessment.values},
          {"chance", assessment.chance ? Json(*assessment.chance) : Json()},
          {"between", assessment.between ? Json(*assessment.between) : Json()},
          {"specific", specific_values(assessment, metric->direction())},
          {"distinct_top_sets", assessment.distinct_top_sets}};
}

// A training may end with a network that says the same of every input (too much weight decay, say): there is nothing to explain.
bool is_constant(const CellSubject& subject) {
  const at::Tensor logits =
      predict(*subject.model, rows_of(subject).inputs, subject.data->data.schema.layout, TileOptions{.threads = 1});
  return (logits - logits.slice(0, 0, 1)).abs().max().item<double>() == 0;
}

// The cell of such a network: undefined, and no failure of the run.
Json undefined_cell(const CellSubject& subject, const AttackChoice& choice) {
  const auto count = static_cast<std::size_t>(rows_of(subject).ids.size(0));
  const std::vector<double> none(count, std::nan(""));
  Json list = Json::array();
  for (const std::string& metric : choice.metrics) {
    list.push_back({{"name", metrics().options(metric).canonical()},
                    {"values", none},
                    {"chance", nullptr},
                    {"between", nullptr},
                    {"specific", none},
                    {"distinct_top_sets", 0}});
  }
  return {{"metrics", list},     {"first_swap", std::vector<std::int64_t>(count, -1)},
          {"sensitivity", none}, {"flipped", 0},
          {"auc", 0.5},          {"attacked_auc", 0.5},
          {"late_gain", 0}};
}

Json attack_json(const CellSubject& subject, const AttackChoice& choice, std::uint64_t seed) {
  if (is_constant(subject)) return undefined_cell(subject, choice);
  const CellResult result = attacked(subject, choice, seed);
  const Schema& schema = subject.data->data.schema;
  const at::Tensor labels = rows_of(subject).labels;
  Json list = Json::array(), swaps = Json::array();
  for (const std::string& metric : choice.metrics) list.push_back(metric_json(metric, result, schema, to_vector(labels), seed));
  double flipped = 0;
  for (const SampleOutcome& sample : result.samples) {
    swaps.push_back(sample.first_swap);
    flipped += sample.label_flips > 0 ? 1 : 0;
  }
  const double count = static_cast<double>(result.samples.size());
  return {{"metrics", list},
          {"first_swap", swaps},
          {"sensitivity", sensitivities(result.logits, result.perturbed_logits)},
          {"flipped", flipped / count},
          {"auc", auc(result.logits, labels).mean},
          {"attacked_auc", auc(result.perturbed_logits, labels).mean},
          {"late_gain", mean_late_gain(result)}};
}

Json measure_json(const CellSubject& subject, const std::string& call, double epsilon, std::uint64_t seed) {
  const auto measure = measures().make(call);
  const auto explainer = explainers().make(subject.explainer);
  const SubjectRows rows = rows_of(subject);
  if (is_constant(subject))
    return {{"values", std::vector<double>(static_cast<std::size_t>(rows.ids.size(0)), std::nan(""))}, {"parts", Json::object()}};
  const MeasureTask task{
      .model = *subject.model, .explainer = *explainer, .samples = samples_of(subject), .seed = seed, .epsilon = epsilon};
  check_measure(*measure, task);
  const Measurement measured = measure_all(*measure, task, {.threads = 1});
  Json parts = Json::object();
  for (const auto& [name, values] : measured.parts) parts[name] = values;
  return {{"values", measured.values}, {"parts", parts}};
}

}  // namespace

SubjectRows rows_of(const CellSubject& subject) {
  const Dataset& dataset = subject.data->data;
  std::vector<std::int64_t> rows = dataset.rows(subject.part);
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(subject.samples)));
  return {dataset.inputs_of(rows), dataset.labels_of(rows), at::tensor(rows, at::kLong)};
}

at::Tensor background_of(const ExperimentData& data) {
  std::vector<std::int64_t> rows = data.data.train;
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(kBackgroundRows)));
  return rows.empty() ? at::Tensor() : data.data.inputs_of(rows);
}

CellResult attacked(const CellSubject& subject, const AttackChoice& choice, std::uint64_t seed) {
  const Schema& schema = subject.data->data.schema;
  const auto explainer = explainers().make(subject.explainer);
  const auto attack = attacks().make(choice.attack);
  const auto metric = metrics().make(choice.metrics.front());
  const ThreatModel threat = ThreatModel::make({.norm = choice.norm, .epsilons = {choice.epsilon}, .box = choice.box}, schema);
  const AttackTask task{.model = *subject.model,
                        .explainer = *explainer,
                        .metric = *metric,
                        .threat = threat,
                        .samples = samples_of(subject),
                        .seed = seed,
                        .select = choice.select};
  check_cell(*attack, task);
  return run_cell(*attack, task, {.threads = 1});
}

Job attack_job(const CellSubject& subject, const AttackChoice& choice, std::uint64_t seed) {
  std::string key = fmt::format("{}; attack {} {} epsilon {} select {} seed {}", subject_key(subject),
                                attacks().options(choice.attack).canonical(), to_string(choice.norm), choice.epsilon,
                                to_string(choice.select), seed);
  if (choice.box) key += fmt::format(" box {} to {}", choice.box->first, choice.box->second);
  for (const std::string& metric : choice.metrics) key += "; " + metrics().options(metric).canonical();
  return {key, [=] { return attack_json(subject, choice, seed); }};
}

Job measure_job(const CellSubject& subject, const std::string& measure, double epsilon, std::uint64_t seed) {
  return {fmt::format("{}; measure {} epsilon {} seed {}", subject_key(subject), measures().options(measure).canonical(), epsilon,
                      seed),
          [=] { return measure_json(subject, measure, epsilon, seed); }};
}

}  // namespace holdfast
