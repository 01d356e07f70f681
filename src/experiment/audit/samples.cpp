// samples.csv and the arrays of the worst samples.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../model_tiles.h"
#include "files.h"
#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/large_tensor.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::experiment {
namespace {

// Before the sample's outcome, and behind it.
const std::vector<std::string> kNames{"dataset", "model", "explainer", "attack", "metric", "epsilon", "sample", "label"};
const std::vector<std::string> kLevels{"chance", "adjusted", "specific", "lift", "own_effect", "other_effect", "certified"};

std::string number_text(double value) {
  return std::isnan(value) ? "" : fmt::format("{}", value);
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second,
                                const std::vector<std::string>& third) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), third.begin(), third.end());
  return first;
}

// Positions of the samples to keep, the worst for the defender first; undefined values last.
std::vector<std::int64_t> worst_first(const Assessment& assessment, Direction direction, std::int64_t count) {
  std::vector<std::int64_t> order(assessment.values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto badness = [&](std::int64_t i) {
    const double value = assessment.values[static_cast<std::size_t>(i)];
    if (std::isnan(value)) return std::numeric_limits<double>::infinity();
    return direction == Direction::kHigherIsMoreAlike ? value : -value;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return badness(a) < badness(b); });
  order.resize(std::min<std::size_t>(order.size(), static_cast<std::size_t>(count)));
  return order;
}

}  // namespace

std::string samples_header() {
  return format_csv_row(joined(kNames, outcome_columns(), kLevels));
}

std::string sample_lines(const Row& row) {
  const Cell& cell = row.cell;
  const std::vector<std::int64_t> ids = to_vector(cell.subject.samples.ids), labels = to_vector(cell.subject.samples.labels);
  std::string lines;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const SampleOutcome& sample = row.result.samples[i];
    const double chance = row.levels.chance.empty() ? std::nan("") : row.levels.chance[i];
    const auto effect = [&](const std::vector<double>& effects) { return effects.empty() ? "" : number_text(effects[i]); };
    const auto above = [&](double level) { return number_text(above_level(sample.value, level, cell.metric->perfect())); };
    lines += format_csv_row(joined(
        {cell.subject.dataset, cell.subject.model_name, cell.explainer->name(), cell.attack->name(), cell.metric->name(),
         fmt::format("{}", cell.threat.epsilon), fmt::format("{}", ids[i]), labels.empty() ? "" : fmt::format("{}", labels[i])},
        outcome_texts(sample),
        {number_text(chance), above(chance), above(row.levels.between), number_text(sample.value - row.levels.between),
         effect(row.effects.own), effect(row.effects.other), row.certified ? number_text(row.certified->values[i]) : ""}));
  }
  return lines;
}

void write_arrays(const std::string& folder, const Row& row, std::int64_t count) {
  make_folders(folder);
  const Samples& samples = row.cell.subject.samples;
  const std::vector<std::int64_t> worst = worst_first(row.assessment, row.cell.metric->direction(), count);
  const at::Tensor chosen = at::tensor(worst, at::kLong);
  write_tensor(folder + "/inputs.npy", large_select(samples.inputs, chosen));
  write_tensor(folder + "/perturbed.npy", large_select(row.result.perturbed, chosen));
  write_tensor(folder + "/original_maps.npy", large_select(row.result.original_maps, chosen));
  write_tensor(folder + "/perturbed_maps.npy", large_select(row.result.perturbed_maps, chosen));

  const std::vector<std::int64_t> ids = to_vector(samples.ids), labels = to_vector(samples.labels);
  Json described = Json::array();
  for (const std::int64_t i : worst) {
    const std::size_t at = static_cast<std::size_t>(i);
    described.push_back({{"sample", ids[at]},
                         {"label", labels.empty() ? Json() : Json(labels[at])},
                         {"prediction", row.result.samples[at].prediction},
                         {"value", row.assessment.values[at]},
                         {"top_original", row.cell.metric->top_set(row.clean[i])},
                         {"top_perturbed", row.cell.metric->top_set(row.perturbed[i])}});
  }
  write_json(folder + "/samples.json", described);
}

}  // namespace holdfast::experiment
