#include "cells.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/reproduce_statistics.h"
#include "holdfast/measure/proportion.h"
#include "holdfast/train/objective.h"

namespace holdfast::lens {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Samples of a piece of work: as many small images as keep the passes of an attack busy, fewer large ones.
std::size_t piece_size(const ExperimentData& data) {
  return data.data.schema.layout.inputs() > 3 * 64 * 64 ? 5 : 25;
}

std::string base_key(const Attacked& cell) {
  return fmt::format("{}; on {}; rows {}; {}; measures {}", cell.model->key, cell.data->key, fmt::join(cell.rows, " "),
                     cell.explainer, fmt::join(cell.measures, " "));
}

at::Tensor background_of(const Dataset& data) {
  std::vector<std::int64_t> rows = data.train.empty() ? data.rows("all") : data.train;
  rows.resize(std::min<std::size_t>(rows.size(), 20));
  return data.inputs_of(rows);
}

// Which of the rows the model classifies rightly, as positions.
std::vector<std::int64_t> right_ones(const Model& model, const Dataset& data, const std::vector<std::int64_t>& rows) {
  const at::NoGradGuard no_graph;
  const at::Tensor logits = predict(model, data.inputs_of(rows), data.schema.layout, {.threads = 1});
  const at::Tensor predicted = predicted_class(logits.cpu()), labels = data.labels_of(rows);
  std::vector<std::int64_t> right;
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    if (predicted[i].item<std::int64_t>() == labels[i].item<std::int64_t>()) right.push_back(i);
  }
  return right;
}

std::vector<std::int64_t> right_ones(const Attacked& cell) {
  return right_ones(*cell.model->model, cell.data->data, cell.rows);
}

std::vector<std::int64_t> rows_at(const Attacked& cell, const std::vector<std::int64_t>& positions) {
  std::vector<std::int64_t> rows;
  for (const std::int64_t position : positions) rows.push_back(cell.rows[static_cast<std::size_t>(position)]);
  return rows;
}

Json attacked_json(const Attacked& cell, std::uint64_t seed) {
  const Dataset& data = cell.data->data;
  const std::vector<std::int64_t> right = right_ones(cell), rows = rows_at(cell, right);
  Json values = Json::object();
  for (const std::string& measure : cell.measures) values[measure] = std::vector<double>(cell.rows.size(), kNone);
  Json json{{"excluded", cell.rows.size() - right.size()}, {"evaluations", 0}};
  if (!rows.empty()) {
    const auto explainer = explainers().make(cell.explainer);
    const auto attack = attacks().make(cell.attack);
    const auto metric = metrics().make(cell.select);
    const ThreatModel threat = ThreatModel::make({.norm = Norm::kLinf, .epsilons = {cell.epsilon}, .box = std::pair(0.0, 1.0)}, data.schema);
    Samples samples = samples_of(data, rows);
    samples.targets = samples.labels;
    samples.background = background_of(data);
    const AttackTask task{.model = *cell.model->model,
                          .explainer = *explainer,
                          .metric = *metric,
                          .threat = threat,
                          .samples = samples,
                          .seed = seed};
    check_cell(*attack, task);
    const CellResult result = run_cell(*attack, task, {.size = static_cast<std::int64_t>(rows.size()), .threads = 1});
    const MapBatch clean = fold_maps(result.original_maps, data.schema), moved = fold_maps(result.perturbed_maps, data.schema);
    for (const std::string& name : cell.measures) {
      const auto measure = metrics().make(name);
      for (std::size_t i = 0; i < right.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        values[name][static_cast<std::size_t>(right[i])] = measure->compare(clean[at], moved[at]);
      }
    }
    std::int64_t evaluations = 0;
    for (const SampleOutcome& sample : result.samples) evaluations += sample.evaluations;
    json["evaluations"] = evaluations;
  }
  json["values"] = std::move(values);
  return json;
}

Json levels_json(const Attacked& cell, std::uint64_t seed) {
  const Dataset& data = cell.data->data;
  const std::vector<std::int64_t> rows = rows_at(cell, right_ones(cell));
  Json json = Json::object();
  if (rows.empty()) {
    for (const std::string& name : cell.measures) json[name] = {{"chance", nullptr}, {"between", nullptr}};
    return json;
  }
  const auto explainer = explainers().make(cell.explainer);
  Samples samples = samples_of(data, rows);
  samples.targets = samples.labels;
  samples.background = background_of(data);
  const ExplainedBatch explained =
      explain_all(*explainer, {.model = *cell.model->model, .samples = samples, .seed = seed}, {.threads = 1});
  const MapBatch clean = fold_maps(explained.maps, data.schema);
  const bool large = data.schema.layout.features() > 10000;
  for (const std::string& name : cell.measures) {
    const holdfast::Levels base = compute_levels(*metrics().make(name), clean, {}, {.pairs = large ? 45 : 300, .seed = seed});
    json[name] = {{"chance", base.chance.empty() ? kNone : defined_mean(base.chance)}, {"between", base.between}};
  }
  return json;
}

double number_or_none(const Json& number) {
  return number.is_null() ? kNone : number.get<double>();
}

std::vector<Attacked> pieces_of(const Attacked& cell) {
  std::vector<Attacked> pieces;
  const std::size_t size = piece_size(*cell.data);
  for (std::size_t begin = 0; begin < cell.rows.size(); begin += size) {
    Attacked piece = cell;
    const auto first = cell.rows.begin() + static_cast<std::ptrdiff_t>(begin);
    piece.rows.assign(first, first + static_cast<std::ptrdiff_t>(std::min(size, cell.rows.size() - begin)));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

void append(Measured& measured, const Json& piece) {
  for (const auto& [name, values] : piece.at("values").items()) {
    const std::vector<double> more = numbers(values);
    auto& all = measured.values[name];
    all.insert(all.end(), more.begin(), more.end());
  }
  measured.excluded += piece.at("excluded").get<std::int64_t>();
  measured.evaluations += piece.at("evaluations").get<double>();
}

// A cell from its levels and its pieces.
Measured joined(std::vector<Json>::const_iterator levels_of, std::vector<Json>::const_iterator end) {
  Measured measured;
  for (const auto& [name, levels] : levels_of->items())
    measured.levels[name] = {number_or_none(levels.at("chance")), number_or_none(levels.at("between"))};
  for (auto piece = levels_of + 1; piece != end; ++piece) append(measured, *piece);
  const auto rows = static_cast<double>(measured.values.begin()->second.size()) - static_cast<double>(measured.excluded);
  measured.evaluations = rows > 0 ? measured.evaluations / rows : 0;
  return measured;
}

std::vector<std::vector<double>> by_seed(const Group& group, const std::string& measure) {
  std::vector<std::vector<double>> all;
  for (const Measured& measured : group) all.push_back(measured.values.at(measure));
  return all;
}

// Mean of a level over the seeds; nothing where it is undefined.
std::optional<double> level(const Group& group, const std::string& measure, double Levels::*which) {
  std::vector<double> all;
  for (const Measured& measured : group) all.push_back(measured.levels.at(measure).*which);
  const double mean = defined_mean(all);
  return std::isnan(mean) ? std::nullopt : std::optional(mean);
}

// Student's interval of a few seeds reaches past what is possible.
Value inside(Value value, double low, double high) {
  if (value.low) value.low = std::max(*value.low, low);
  if (value.high) value.high = std::min(*value.high, high);
  return value;
}

// The least that a measure can be; the most is 1. Rank correlations can be negative, all others are shares.
double least_of(const std::string& measure) {
  const bool correlation = measure.find("spearman") != std::string::npos || measure.find("kendall") != std::string::npos;
  return correlation ? -1 : 0;
}

std::vector<std::vector<double>> minus(std::vector<std::vector<double>> first, const std::vector<std::vector<double>>& second) {
  for (std::size_t seed = 0; seed < first.size(); ++seed) {
    for (std::size_t i = 0; i < first[seed].size(); ++i) first[seed][i] -= second.at(seed).at(i);
  }
  return first;
}

Value exact_share_below(const std::vector<double>& values, double limit) {
  const auto defined = std::ranges::count_if(values, [](double value) { return !std::isnan(value); });
  if (defined == 0) return {};
  const Interval share = proportion_interval(std::ranges::count_if(values, [&](double value) { return value < limit; }), defined);
  return {.value = share.mean, .low = share.low, .high = share.high, .count = share.count};
}

// Every value with its level taken out, by seed.
std::vector<std::vector<double>> above_level(const Group& group, const std::string& measure, double Levels::*which) {
  std::vector<std::vector<double>> all = by_seed(group, measure);
  for (std::size_t i = 0; i < group.size(); ++i) {
    const double base = group[i].levels.at(measure).*which;
    for (double& value : all[i]) value = base < 1 ? (value - base) / (1 - base) : kNone;
  }
  return all;
}

}  // namespace

Chosen right_rows(const Subject& subject, const ExperimentData& data, std::int64_t wanted) {
  const std::vector<std::int64_t> all = data.data.test.empty() ? data.data.rows("all") : data.data.test;
  const auto enough = static_cast<std::size_t>(wanted);
  constexpr std::size_t kPart = 50;
  Chosen chosen;
  for (std::size_t begin = 0; begin < all.size() && chosen.rows.size() < enough; begin += kPart) {
    const std::vector<std::int64_t> part(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                         all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), begin + kPart)));
    const std::vector<std::int64_t> right = right_ones(*subject.seeds.front().model, data.data, part);
    for (std::size_t i = 0, next = 0; i < part.size() && chosen.rows.size() < enough; ++i) {
      if (next < right.size() && right[next] == static_cast<std::int64_t>(i)) {
        chosen.rows.push_back(part[i]);
        ++next;
      } else {
        ++chosen.passed_over;
      }
    }
  }
  return chosen;
}

std::size_t Plan::add(const Subject& subject, const ExperimentData& data, const Attacked& like) {
  std::vector<Attacked> group;
  for (const TrainedModel& model : subject.seeds) {
    group.push_back(like);
    group.back().model = &model;
    group.back().data = &data;
  }
  groups_.push_back(std::move(group));
  return groups_.size() - 1;
}

std::vector<Group> Plan::run(ExperimentContext& context, const std::string& label) const {
  std::vector<Job> jobs;
  const std::uint64_t seed = context.seed;
  for (const auto& group : groups_) {
    for (const Attacked& cell : group) {
      jobs.push_back({"levels; " + base_key(cell), [cell, seed] { return levels_json(cell, seed); }});
      for (const Attacked& piece : pieces_of(cell)) {
        jobs.push_back({fmt::format("attacked; {}; {}; epsilon {}; worst {}; seed {}", base_key(piece), piece.attack,
                                    piece.epsilon, piece.select, seed),
                        [piece, seed] { return attacked_json(piece, seed); }});
      }
    }
  }
  const std::vector<Json> results = context.compute(label, jobs);
  auto next = results.begin();
  std::vector<Group> measured;
  for (const auto& group : groups_) {
    measured.emplace_back();
    for (const Attacked& cell : group) {
      const auto end = next + 1 + static_cast<std::ptrdiff_t>(pieces_of(cell).size());
      measured.back().push_back(joined(next, end));
      next = end;
    }
  }
  return measured;
}

Value value_of(const Group& group, const std::string& measure, std::uint64_t seed) {
  Value value = inside(over_seeds(by_seed(group, measure), seed), least_of(measure), 1);
  value.chance = level(group, measure, &Levels::chance);
  value.between = level(group, measure, &Levels::between);
  const double specific = over_seeds(above_level(group, measure, &Levels::between), seed).value;
  if (!std::isnan(specific)) value.specific = specific;
  return value;
}

Value adjusted_of(const Group& group, const std::string& measure, std::uint64_t seed) {
  return over_seeds(above_level(group, measure, &Levels::chance), seed);
}

Value difference_of(const Group& first, const std::string& first_measure, const Group& second, const std::string& second_measure,
                    std::uint64_t seed) {
  const double most = 1 - std::min(least_of(first_measure), least_of(second_measure));
  return inside(difference_over_seeds(by_seed(first, first_measure), by_seed(second, second_measure), seed), -most, most);
}

Value gain_of(const Group& group, const std::string& local, const std::string& plain, std::uint64_t seed) {
  return difference_of(group, local, group, plain, seed);
}

Value gain_lead_of(const Group& first, const Group& second, const std::string& local, const std::string& plain,
                   std::uint64_t seed) {
  const auto gains = [&](const Group& group) { return minus(by_seed(group, local), by_seed(group, plain)); };
  return difference_over_seeds(gains(first), gains(second), seed);
}

Value adjusted_gain_of(const Group& group, const std::string& local, const std::string& plain, std::uint64_t seed) {
  return difference_over_seeds(above_chance(group, local), above_chance(group, plain), seed);
}

Value specific_gain_of(const Group& group, const std::string& local, const std::string& plain, std::uint64_t seed) {
  return difference_over_seeds(above_level(group, local, &Levels::between), above_level(group, plain, &Levels::between), seed);
}

Value ratio_of(const Group& group, const std::string& over, const std::string& under) {
  std::vector<double> ratios;
  for (const Measured& measured : group) {
    const double divisor = defined_mean(measured.values.at(under));
    ratios.push_back(divisor > 0 ? defined_mean(measured.values.at(over)) / divisor : kNone);
  }
  return over_seeds(ratios);
}

std::vector<std::vector<double>> above_chance(const Group& group, const std::string& measure) {
  return above_level(group, measure, &Levels::chance);
}

Value mean_of_samples(const std::vector<std::vector<double>>& by_cell, std::uint64_t seed) {
  std::vector<double> means;
  for (std::size_t i = 0; !by_cell.empty() && i < by_cell.front().size(); ++i) {
    std::vector<double> cells;
    for (const std::vector<double>& values : by_cell) cells.push_back(values.at(i));
    means.push_back(defined_mean(cells));
  }
  return over_seeds({means}, seed);
}

Value share_below(const Group& group, const std::string& measure, double limit) {
  std::vector<double> shares;
  Value last;
  for (const std::vector<double>& values : by_seed(group, measure)) {
    last = exact_share_below(values, limit);
    shares.push_back(last.value);
  }
  return shares.size() == 1 ? last : share(over_seeds(shares));
}

std::int64_t excluded_of(const Group& group) {
  std::int64_t sum = 0;
  for (const Measured& measured : group) sum += measured.excluded;
  return sum;
}

void add_counts(std::vector<Value>& values, const Group& group, std::int64_t passed_over) {
  std::int64_t judged = 0;
  for (const Measured& measured : group)
    judged += static_cast<std::int64_t>(measured.values.begin()->second.size()) - measured.excluded;
  values.push_back({.value = static_cast<double>(judged)});
  values.push_back({.value = static_cast<double>(excluded_of(group) + passed_over)});
}

std::vector<double> robust_accuracies(ExperimentContext& context, const Subject& subject, const ExperimentData& data,
                                      const Setting& setting) {
  std::vector<std::int64_t> rows = data.data.test;
  rows.resize(std::min(rows.size(), context.by_scale<std::size_t>(50, 500, 2000)));
  const std::string call = fmt::format("pgd(epsilon={},steps=20,step_size={})", setting.epsilon, setting.epsilon / 8);
  std::vector<Job> jobs;
  for (const TrainedModel& model : subject.seeds) {
    jobs.push_back({fmt::format("robust accuracy; {}; on {}; first {} test samples; {}", model.key, data.key, rows.size(), call),
                    [&model, &data, rows, call] {
                      Network network = *model.model->network();
                      const at::Tensor ids = at::tensor(rows, at::kLong);
                      const TrainBatch batch{.inputs = data.data.inputs_of(rows).to(network.device()),
                                             .labels = data.data.labels_of(rows).to(network.device()),
                                             .sample_ids = ids,
                                             .schema = data.data.schema};
                      const Loss loss = loss_of(*objectives().make(call), network, batch);
                      return Json(loss.parts.at(1).second.item<double>());
                    }});
  }
  std::vector<double> shares;
  for (const Json& share : context.compute("robust accuracy", jobs)) shares.push_back(share.get<double>());
  return shares;
}

std::vector<double> accuracies(const Subject& subject) {
  std::vector<double> all;
  for (const TrainedModel& model : subject.seeds) all.push_back(model.test ? model.test->accuracy.mean : kNone);
  return all;
}

std::vector<double> between_of(const Group& group, const std::string& measure) {
  std::vector<double> levels;
  for (const Measured& one : group) levels.push_back(one.levels.at(measure).between);
  return levels;
}

Value share_difference(const std::vector<double>& first, const std::vector<double>& second) {
  return inside(difference_over_seeds(first, second), -1, 1);
}

Value accuracy_of(const Subject& subject) {
  return share(over_seeds(accuracies(subject)));
}

}  // namespace holdfast::lens
