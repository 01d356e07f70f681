#include "audit_results.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "holdfast/core/method.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/cell_facts.h"
#include "holdfast/measure/prediction.h"
#include "holdfast/measure/proportion.h"
#include "optional_json.h"
#include "samples.h"

namespace holdfast {
namespace {

Json to_json(const Interval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}, {"count", interval.count}};
}

// What rows share that can be held against each other.
constexpr std::array kSubject{"dataset", "model", "explainer", "metric", "threat"};

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

// |p_c(x) - p_c(x')|, c the explained class.
Interval mean_change(const CellResult& result, std::uint64_t seed) {
  const at::Tensor before = confidence(result.logits, result.targets), after = confidence(result.moved_logits, result.targets);
  const at::Tensor change = (before - after).abs().contiguous();
  return mean_interval(std::span(change.const_data_ptr<double>(), static_cast<std::size_t>(change.numel())), seed, 0, 1);
}

// What attacks met on the way, in a few numbers.
Json attack_facts(const CellResult& result, const AuditData& data, std::uint64_t seed) {
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
  const Interval change = mean_change(result, seed);
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
          {"auc", data.labels.defined() ? to_json(auc(result.moved_logits, data.labels)) : Json()},
          {"no_gradient", no_gradient_json(result)},
          {"verified", holdfast::to_json(result.verified)}};
}

}  // namespace

Json model_json(const AuditModel& subject, const AuditData& data, const at::Tensor& logits) {
  Json json{{"name", subject.name}, {"dataset", data.name}};
  json.update(subject.facts);
  json["accuracy"] = data.labels.defined() ? to_json(accuracy(logits, data.labels)) : Json();
  json["auc"] = data.labels.defined() ? to_json(auc(logits, data.labels)) : Json();
  return json;
}

Json row_json(const GridRow& row, const Assessment& assessment, const CellResult& result,
              const std::optional<RandomBaseline>& random, const std::string& arrays, std::uint64_t seed) {
  const std::int64_t samples = static_cast<std::int64_t>(assessment.values.size());
  Json json{{"dataset", row.data.name},
            {"model", row.subject.name},
            {"explainer", row.explainer->name()},
            {"attack", row.attack->name()},
            {"threat", to_json(row.threat)},
            {"select", to_string(row.attack->selects(row.data.trial.select))},
            {"metric", row.metric->name()},
            {"direction", row.metric->direction() == Direction::kHigherIsMoreAlike ? "higher" : "lower"},
            {"mean", assessment.value.mean},
            {"low", assessment.value.low},
            {"high", assessment.value.high},
            {"count", assessment.value.count},
            {"undefined", samples - assessment.value.count},
            {"median", median(assessment.values)},
            {"chance", optional_json(assessment.chance)},
            {"adjusted", optional_json(assessment.adjusted)},
            {"between", optional_json(assessment.between)},
            {"between_same_class", optional_json(assessment.between_same_class)},
            {"specific", optional_json(assessment.specific)},
            {"distinct_top_sets", assessment.distinct_top_sets},
            {"tied_share", assessment.tied_share},
            {"tied_perturbed", assessment.tied_perturbed},
            {"chance_is_exact", assessment.chance_is_exact},
            {"found", optional_json(assessment.found)},
            {"found_perturbed", optional_json(assessment.found_perturbed)}};
  json.update(attack_facts(result, row.data, seed));
  json.update(ensemble_json(result, *row.metric));
  json["random"] = random ? holdfast::to_json(*random) : Json();
  json["arrays"] = arrays;
  return json;
}

Json flag_beaten(Json rows) {
  const auto is_random = [](const Json& row) { return parse_method_call(row.at("attack").get<std::string>()).name == "random"; };
  const auto same_subject = [](const Json& a, const Json& b) {
    return std::all_of(kSubject.begin(), kSubject.end(), [&](const char* key) { return a.at(key) == b.at(key); });
  };
  for (Json& row : rows) {
    row["beaten_by"] = nullptr;
    if (is_random(row) || !row.at("mean").is_number()) continue;
    double worst = row.at("mean");
    const auto hold_against = [&](const Json& random) {
      if (!random.is_object() || !random.at("mean").is_number()) return;
      const double mean = random.at("mean");
      if (!(row.at("direction") == "higher" ? mean < worst : mean > worst)) return;
      worst = mean;
      row["beaten_by"] = random.at("attack");
    };
    hold_against(row.at("random"));
    for (const Json& other : rows) {
      if (is_random(other) && same_subject(row, other)) hold_against(other);
    }
  }
  return rows;
}

}  // namespace holdfast
