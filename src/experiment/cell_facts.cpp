#include "holdfast/experiment/cell_facts.h"

#include <algorithm>
#include <cmath>

#include "holdfast/core/log.h"
#include "holdfast/core/words.h"

namespace holdfast::experiment {
namespace {

template <class Has>
std::int64_t count_samples(const CellResult& result, Has has) {
  return std::count_if(result.samples.begin(), result.samples.end(), has);
}

bool never_followed(const SampleOutcome& sample) {
  return sample.followed == 0 && sample.no_gradient > 0;
}

// The mean of the numbers that are defined; NaN where none is.
template <class Number>
double defined_mean_of(const CellResult& result, Number number) {
  double sum = 0;
  std::int64_t count = 0;
  for (const SampleOutcome& sample : result.samples) {
    if (std::isnan(number(sample))) continue;
    sum += number(sample);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::nan("");
}

}  // namespace

Json components_json(const CellResult& result, bool with_seconds) {
  Json components = Json::array();
  const auto samples = static_cast<double>(result.samples.size());
  for (const ComponentCost& component : result.components) {
    const auto won = count_samples(result, [&](const SampleOutcome& sample) { return sample.component == component.name; });
    components.push_back({{"name", component.name},
                          {"won", static_cast<double>(won) / samples},
                          {"evaluations", static_cast<double>(component.evaluations) / samples}});
    if (with_seconds) components.back()["seconds"] = component.seconds;
  }
  return components;
}

double mean_late_gain(const CellResult& result) {
  return defined_mean_of(result, [](const SampleOutcome& sample) { return sample.late_gain; });
}

double mean_restart_gap(const CellResult& result) {
  return defined_mean_of(result, [](const SampleOutcome& sample) { return sample.restart_gap; });
}

bool has_converged(const CellResult& result, const Metric& metric) {
  const double value = defined_mean_of(result, [](const SampleOutcome& sample) { return sample.value; });
  return restarts_agree(mean_restart_gap(result), metric, value);
}

Json ensemble_json(const CellResult& result, const Metric& metric) {
  if (result.components.empty()) return Json::object();
  const double late = mean_late_gain(result), gap = mean_restart_gap(result);
  return {{"components", components_json(result)},
          {"late_gain", number_json(late)},
          {"restart_gap", number_json(gap)},
          {"converged", std::isnan(gap) ? Json() : Json(has_converged(result, metric))}};
}

Json flips_json(const CellResult& result) {
  const auto flipped = count_samples(result, [](const SampleOutcome& sample) { return sample.label_flips > 0; });
  return {{"samples", flipped}, {"share", static_cast<double>(flipped) / static_cast<double>(result.samples.size())}};
}

Json no_gradient_json(const CellResult& result) {
  const auto broken = [](const SampleOutcome& sample) { return never_followed(sample) && sample.non_finite > 0; };
  return {{"samples", count_samples(result, never_followed)}, {"not_finite", count_samples(result, broken)}};
}

void warn_of_no_gradient(const CellResult& result, const std::string& attack) {
  const Json none = no_gradient_json(result);
  if (none.at("samples") == 0) return;
  log_warning("{}: no gradient to follow in {} of {} ({} not finite)", attack, none.at("samples").get<std::int64_t>(),
              counted(std::ssize(result.samples), "sample"), none.at("not_finite").get<std::int64_t>());
}

Json to_json(const Verification& verified) {
  return {{"moved", verified.moved},
          {"largest_distance", verified.largest_distance},
          {"smallest_margin", verified.smallest_margin},
          {"in_double", verified.in_double}};
}

}  // namespace holdfast::experiment
