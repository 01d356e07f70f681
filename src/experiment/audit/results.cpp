#include <algorithm>
#include <cmath>

#include "../model_tiles.h"
#include "files.h"
#include "holdfast/core/method.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/cell_facts.h"
#include "holdfast/measure/prediction.h"
#include "holdfast/measure/proportion.h"

namespace holdfast::experiment {
namespace {

// Not of a model that gives a value.
bool has_classes(const at::Tensor& logits, const at::Tensor& labels) {
  return labels.defined() && logits.size(1) > 1;
}

Json interval_json(const Interval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}, {"count", interval.count}};
}

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Json ends(const Interval& interval) {
  return {interval.low, interval.high};
}

// The mean of |p_c(x) - p_c(x')|, c the explained class.
Interval mean_change(const Row& row) {
  std::vector<double> changes;
  for (const SampleOutcome& sample : row.result.samples) changes.push_back(std::abs(sample.confidence - sample.confidence_after));
  return mean_interval(changes, row.cell.seed, 0, 1);
}

// What attacks met on the way, in a few numbers.
Json attack_facts(const Row& row) {
  const CellResult& result = row.result;
  const at::Tensor& labels = row.cell.subject.samples.labels;
  std::int64_t flipped = 0, swapped = 0, evaluations = 0, most_evaluations = 0, projections = 0, non_finite = 0;
  std::vector<double> first_swaps, margins_used;
  for (const SampleOutcome& sample : result.samples) {
    flipped += sample.label_flips > 0 ? 1 : 0;
    evaluations += sample.evaluations;
    most_evaluations = std::max(most_evaluations, sample.evaluations);
    projections += sample.projections;
    non_finite += sample.non_finite;
    if (std::isfinite(sample.clean_margin) && sample.clean_margin > 0) {
      margins_used.push_back(1 - sample.margin / sample.clean_margin);
    }
    if (sample.first_swap >= 0) {
      ++swapped;
      first_swaps.push_back(static_cast<double>(sample.first_swap));
    }
  }
  const double count = static_cast<double>(result.samples.size());
  const Interval flips = proportion_interval(flipped, std::ssize(result.samples));
  const Interval swaps = proportion_interval(swapped, std::ssize(result.samples));
  const Interval change = mean_change(row);
  return {{"flips", {{"samples", flipped}, {"share", flips.mean}, {"interval", ends(flips)}}},
          {"swapped_share", swaps.mean},
          {"swapped_interval", ends(swaps)},
          {"median_first_swap", median(first_swaps)},
          {"evaluations", static_cast<double>(evaluations) / count},
          {"most_evaluations", most_evaluations},
          {"projections", static_cast<double>(projections) / count},
          {"non_finite", non_finite},
          {"median_margin_used", median(margins_used)},
          {"sensitivity", change.mean},
          {"sensitivity_interval", ends(change)},
          {"auc", has_classes(result.perturbed_logits, labels) ? interval_json(auc(result.perturbed_logits, labels)) : Json()},
          {"no_gradient", no_gradient_json(result)},
          {"verified", to_json(result.verified)}};
}

}  // namespace

RowSummary summarise(const Row& row) {
  RowSummary summary{.dataset = row.cell.subject.dataset,
                     .model = row.cell.subject.model_name,
                     .explainer = row.cell.explainer->name(),
                     .attack = row.cell.attack->name(),
                     .metric = row.cell.metric->name(),
                     .threat = row.cell.threat,
                     .direction = row.cell.metric->direction(),
                     .mean = row.assessment.value.mean,
                     .random = row.random,
                     .values = row.assessment.values};
  for (const SampleOutcome& sample : row.result.samples) summary.first_swap.push_back(sample.first_swap);
  return summary;
}

Json output_facts(const Model& model, const ModelOptions& reading) {
  Json facts = Json::object();
  if (model.output_kind() != OutputKind::kLogits) facts["output"] = output_kind_name(model.output_kind());
  if (reading.output_kind != OutputKind::kAuto) facts["output_kind"] = output_kind_name(reading.output_kind);
  if (!reading.output_name.empty()) facts["output_name"] = reading.output_name;
  if (!reading.embedding.empty()) facts["embedding"] = reading.embedding;
  return facts;
}

Json model_facts(const std::string& name, const Model& model, const ModelOptions& reading) {
  Json facts{{"model", name}};
  facts.update(output_facts(model, reading));
  if (const auto parameters = model.parameter_count()) facts["parameters"] = *parameters;
  return facts;
}

Json model_json(const AuditModel& model, const AuditData& data, const at::Tensor& logits) {
  Json json{{"name", model.name}, {"dataset", data.name}};
  json.update(model.facts);
  const at::Tensor& labels = data.samples.labels;
  const bool classifies = has_classes(logits, labels);
  json["accuracy"] = classifies ? interval_json(accuracy(logits, labels)) : Json();
  json["auc"] = classifies ? interval_json(auc(logits, labels)) : Json();
  return json;
}

Json row_json(const Row& row, const std::string& arrays) {
  const Cell& cell = row.cell;
  Json json{{"dataset", cell.subject.dataset},
            {"model", cell.subject.model_name},
            {"explainer", cell.explainer->name()},
            {"attack", cell.attack->name()},
            {"threat", to_json(cell.threat)},
            {"select", to_string(cell.attack->selects(cell.select))},
            {"metric", cell.metric->name()},
            {"direction", cell.metric->direction() == Direction::kHigherIsMoreAlike ? "higher" : "lower"}};
  Json similarity = to_json(row.assessment);
  similarity.erase("name");
  similarity.erase("values");
  json.update(similarity);
  json.update(attack_facts(row));
  json.update(ensemble_json(row.result, *cell.metric));
  const std::optional<Interval> certified =
      row.certified ? std::optional(mean_interval(row.certified->values, cell.seed, 0, 1)) : std::nullopt;
  json["certified"] = certified ? Json(certified->mean) : Json();
  json["certified_interval"] = certified ? ends(*certified) : Json();
  json["certified_by"] = row.certified ? Json(row.certified->name) : Json();
  json["random"] = row.random ? to_json(*row.random) : Json();
  json["arrays"] = arrays;
  return json;
}

std::vector<std::optional<std::string>> beaten_by(const std::vector<RowSummary>& rows) {
  const auto is_random = [](const RowSummary& row) { return parse_method_call(row.attack).name == "random"; };
  const auto same_subject = [](const RowSummary& a, const RowSummary& b) {
    return a.dataset == b.dataset && a.model == b.model && a.explainer == b.explainer && a.metric == b.metric &&
           to_json(a.threat) == to_json(b.threat);
  };
  std::vector<std::optional<std::string>> beaten;
  for (const RowSummary& row : rows) {
    std::optional<std::string>& by = beaten.emplace_back();
    if (is_random(row) || std::isnan(row.mean)) continue;
    double worst = row.mean;
    const auto hold_against = [&](const std::string& attack, double mean) {
      if (!(row.direction == Direction::kHigherIsMoreAlike ? mean < worst : mean > worst)) return;
      worst = mean;
      by = attack;
    };
    if (row.random) hold_against(row.random->attack, row.random->value.mean);
    for (const RowSummary& other : rows) {
      if (is_random(other) && same_subject(row, other)) hold_against(other.attack, other.mean);
    }
  }
  return beaten;
}

}  // namespace holdfast::experiment
