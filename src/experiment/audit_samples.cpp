#include "audit_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "samples.h"

namespace holdfast {
namespace {

const std::vector<std::string> kColumns{"dataset",   "model",      "explainer",  "attack",           "metric",      "sample",
                                        "label",     "prediction", "confidence", "confidence_after", "norm",        "value",
                                        "chance",    "adjusted",   "specific",   "first_swap",       "label_flips", "evaluations",
                                        "iteration", "component",  "epsilon"};

std::string number_text(double value) {
  return std::isnan(value) ? "" : fmt::format("{}", value);
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
  return format_csv_row(kColumns);
}

std::string sample_lines(const GridRow& row, const CellResult& result, const Levels& levels) {
  const std::vector<std::int64_t> ids = to_vector(row.data.ids);
  const std::vector<std::int64_t> labels = to_vector(row.data.labels);
  const std::vector<std::int64_t> predictions = to_vector(predicted_class(result.logits));
  const at::Tensor before = confidence(result.logits, result.targets);
  const at::Tensor after = confidence(result.moved_logits, result.targets);
  const at::Tensor norms = row.threat.distance(result.perturbed, row.data.inputs).contiguous();
  std::string lines;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const SampleOutcome& sample = result.samples[i];
    const double chance = levels.chance.empty() ? std::nan("") : levels.chance[i];
    const auto above = [&](double level) { return number_text(above_level(sample.value, level, row.metric->perfect())); };
    lines += format_csv_row({row.data.name,
                             row.subject.name,
                             row.explainer->name(),
                             row.attack->name(),
                             row.metric->name(),
                             fmt::format("{}", ids[i]),
                             labels.empty() ? "" : fmt::format("{}", labels[i]),
                             fmt::format("{}", predictions[i]),
                             number_text(before.const_data_ptr<double>()[i]),
                             number_text(after.const_data_ptr<double>()[i]),
                             number_text(norms.const_data_ptr<double>()[i]),
                             number_text(sample.value),
                             number_text(chance),
                             above(chance),
                             above(levels.between),
                             sample.first_swap < 0 ? "" : fmt::format("{}", sample.first_swap),
                             fmt::format("{}", sample.label_flips),
                             fmt::format("{}", sample.evaluations),
                             fmt::format("{}", sample.iteration),
                             sample.component,
                             fmt::format("{}", row.threat.epsilon)});
  }
  return lines;
}

void write_arrays(const std::string& folder, const FoldedRow& folded, std::int64_t count) {
  const auto& [row, result, assessment, clean, moved] = folded;
  make_folders(folder);
  const std::vector<std::int64_t> worst = worst_first(assessment, row.metric->direction(), count);
  const at::Tensor chosen = at::tensor(worst, at::kLong);
  write_tensor(folder + "/inputs.npy", row.data.inputs.index_select(0, chosen));
  write_tensor(folder + "/perturbed.npy", result.perturbed.index_select(0, chosen));
  write_tensor(folder + "/original_maps.npy", result.original_maps.index_select(0, chosen));
  write_tensor(folder + "/perturbed_maps.npy", result.moved_maps.index_select(0, chosen));

  const std::vector<std::int64_t> ids = to_vector(row.data.ids);
  const std::vector<std::int64_t> labels = to_vector(row.data.labels);
  const std::vector<std::int64_t> predictions = to_vector(predicted_class(result.logits));
  Json samples = Json::array();
  for (const std::int64_t i : worst) {
    const std::size_t at = static_cast<std::size_t>(i);
    samples.push_back({{"sample", ids[at]},
                       {"label", labels.empty() ? Json() : Json(labels[at])},
                       {"prediction", predictions[at]},
                       {"value", assessment.values[at]},
                       {"top_original", row.metric->top_set(clean[i])},
                       {"top_perturbed", row.metric->top_set(moved[i])}});
  }
  write_json(folder + "/samples.json", samples);
}

}  // namespace holdfast
