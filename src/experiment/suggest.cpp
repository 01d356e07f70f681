#include "holdfast/experiment/suggest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::experiment {
namespace suggesting {

constexpr std::int64_t kRowsCompared = 512, kSamplesAttacked = 32;
constexpr double kEnoughLiftAsked = kEnoughLift;
constexpr double kHalfOfTheMap = 0.5;
constexpr double kSameValue = 0.1;  // of the standard deviation of the values
constexpr std::int64_t kCurvePoints = 5;

double norm_of(const std::vector<double>& changes, Norm norm) {
  double sum = 0, most = 0;
  for (const double change : changes) {
    sum += norm == Norm::kL2 ? change * change : change;
    most = std::max(most, change);
  }
  return norm == Norm::kL2 ? std::sqrt(sum) : norm == Norm::kL1 ? sum : most;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A number that a person would write: two digits.
double rounded(double value) {
  if (!(value > 0)) return value;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::stod(fmt::format("{:.6g}", std::round(value / unit) * unit));
}

// The step that the values of one feature lie on; 0 where nearly every row has a value of its own, or all have the same.
double step_of(const at::Tensor& column) {
  const at::Tensor sorted = std::get<0>(at::sort(column.to(at::kDouble).contiguous()));
  const double* value = sorted.const_data_ptr<double>();
  std::vector<double> gaps;
  for (std::int64_t i = 1; i < sorted.numel(); ++i) {
    if (value[i] > value[i - 1]) gaps.push_back(value[i] - value[i - 1]);
  }
  if (gaps.empty() || 2 * static_cast<std::int64_t>(gaps.size() + 1) > sorted.numel()) return 0;
  return *std::min_element(gaps.begin(), gaps.end());
}

// Half of the step of every feature, in the norm. Images are bytes: one step for all their elements. Embeddings are not rounded.
double rounding_of(const at::Tensor& rows, const Schema& schema, Norm norm) {
  const std::int64_t elements = rows.size(1);
  if (schema.layout.kind == Layout::Kind::kTokens) return 0;
  if (schema.layout.kind == Layout::Kind::kGrid) {
    const double half = step_of(rows.flatten().slice(0, 0, 65536)) / 2;
    return norm_of(std::vector<double>(static_cast<std::size_t>(elements), half), norm);
  }
  std::vector<char> in_group(static_cast<std::size_t>(elements), 0);
  for (const Group& group : schema.groups) {
    for (const std::int64_t column : group.columns) in_group[static_cast<std::size_t>(column)] = 1;
  }
  std::vector<double> halves;
  for (std::int64_t i = 0; i < elements; ++i) {
    if (in_group[static_cast<std::size_t>(i)]) continue;  // a category is not rounded
    const bool is_known =
        static_cast<std::size_t>(i) < schema.features.size() && schema.features[static_cast<std::size_t>(i)].step > 0;
    halves.push_back((is_known ? schema.features[static_cast<std::size_t>(i)].step : step_of(rows.select(1, i))) / 2);
  }
  return norm_of(halves, norm);
}

// The distance of every row to the nearest one that differs from it.
std::vector<double> nearest_distances(const at::Tensor& rows, Norm norm) {
  const double power = norm == Norm::kL2 ? 2 : norm == Norm::kL1 ? 1 : std::numeric_limits<double>::infinity();
  // Not by a product of matrices, which leaves a little between rows that are alike.
  const at::Tensor all = at::cdist(rows, rows, power, /*compute_mode=*/2);
  const at::Tensor others = at::where(all > 0, all, at::full_like(all, std::numeric_limits<double>::infinity()));
  const at::Tensor nearest = std::get<0>(others.min(1)).contiguous();
  std::vector<double> found;
  for (std::int64_t i = 0; i < nearest.numel(); ++i) {
    if (const double distance = nearest.const_data_ptr<double>()[i]; std::isfinite(distance)) found.push_back(distance);
  }
  if (found.empty()) input_error("the samples are all alike; two that differ are needed to choose an epsilon");
  return found;
}

// The smallest number of features that hold half of a map, the median over the maps; a quarter of the features at most, so that a
// random map has little of it.
std::int64_t choose_k(const MapBatch& maps) {
  std::vector<double> counts;
  for (std::int64_t i = 0; i < maps.count; ++i) {
    std::vector<double> values(maps[i].values.begin(), maps[i].values.end());
    std::sort(values.begin(), values.end(), std::greater<>());
    const double half = kHalfOfTheMap * std::accumulate(values.begin(), values.end(), 0.0);
    double sum = 0;
    std::size_t count = 0;
    while (count < values.size() && sum < half) sum += values[count++];
    counts.push_back(static_cast<double>(std::max<std::size_t>(count, 1)));
  }
  const std::int64_t most = std::max<std::int64_t>(1, maps.schema->layout.features() / 4);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(median(counts)), 1, most);
}

// What may be perturbed, as rows of doubles: a sample each, or the embedding of a word where samples are tokens, because then
// each token has a ball of its own. Numbers of context are left out.
at::Tensor some_rows(const Samples& samples) {
  const Layout& layout = samples.layout();
  const at::Tensor all =
      samples.background.defined() ? at::cat({samples.inputs, samples.background.to(samples.inputs)}) : samples.inputs;
  const at::Tensor rows = all.slice(0, 0, kRowsCompared).to(at::kCPU, at::kDouble);
  if (layout.kind == Layout::Kind::kTokens) {
    const at::Tensor tokens = rows.flatten(0, 1);
    const at::Tensor ranked = tokens.select(1, tokens.size(1) - 1).gt(0.5).nonzero().flatten();
    return tokens.index_select(0, ranked).slice(1, 0, layout.stride).slice(0, 0, kRowsCompared).contiguous();
  }
  if (layout.context == 0) return rows.flatten(1).contiguous();
  std::vector<std::int64_t> kept;
  const std::vector<std::int64_t> features = layout.element_features();
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (features[i] >= 0) kept.push_back(static_cast<std::int64_t>(i));
  }
  return rows.flatten(1).index_select(1, at::tensor(kept)).contiguous();
}

// How far a value may move and count as the same: a part of how far the samples' values lie apart.
double tolerance_of(const Subject& subject, const SuggestOptions& options) {
  const Samples some = subject.samples.slice(0, std::min(kRowsCompared, subject.samples.count()));
  const at::Tensor values = predict(*subject.model, some.inputs, some.layout(), options.tiles).to(at::kDouble);
  const double spread = values.std(0, /*unbiased=*/false).item<double>();
  if (!(spread > 0))
    input_error("{} gives all samples the same value: say by a tolerance what counts as the same", subject.model_name);
  return rounded(kSameValue * spread);
}

void look_at_curve(const Subject& subject, const SuggestOptions& options, Suggestion& found) {
  Subject few = subject;
  few.samples = subject.samples.slice(0, std::min(kSamplesAttacked, subject.samples.count()));
  const std::unique_ptr<Explainer> explainer = explainers().make(options.explainer);
  const bool by_gradient = explainer->is_differentiable() && subject.model->capabilities().double_backward;
  Trial trial{.explainers = {options.explainer},
              .attacks = {by_gradient ? "er(steps=20)" : "random(samples=50,from=sphere)"},
              .metrics = {found.metric()},
              .threat = found.threat};
  const double low = found.threat.epsilons.front(), high = found.threat.epsilons.back();
  trial.threat.epsilons.clear();
  for (std::int64_t i = 0; i < kCurvePoints; ++i)
    trial.threat.epsilons.push_back(low * std::pow(high / low, static_cast<double>(i) / (kCurvePoints - 1)));
  Grid grid({.tiles = options.tiles, .random_points = false, .warnings = false});
  for (const Cell& cell : make_cells(few, trial, options.seed)) {
    const Row row = grid.run(cell);
    found.curve.push_back({cell.threat.epsilon, row.assessment.value.mean});
    found.between = row.levels.between;
  }
}

void explain_choice(const Subject& subject, const SuggestOptions& options, Suggestion& found) {
  const Threat& threat = found.threat;
  auto& reasons = found.reasons;
  const Layout& layout = subject.samples.layout();
  reasons.push_back(fmt::format("The norm is {}: {}.", to_string(threat.norm),
                                options.norm                 ? "you chose it"
                                : threat.norm == Norm::kLinf ? "for images it says how far any single pixel may move"
                                                             : "it adds up small changes of many features"));
  if (found.noise)
    reasons.push_back(fmt::format("Measuring again changes a sample by {:.3g}, from the noise that you gave.", *found.noise));
  if (found.rounding > 0)
    reasons.push_back(fmt::format("The values lie on steps; rounding them changes a sample by up to {:.3g}.", found.rounding));
  if (!found.noise && found.rounding == 0)
    reasons.push_back(
        "No rounding is seen in the values and no noise was given; the smallest epsilon is a hundredth of the largest.");
  const bool of_words = layout.kind == Layout::Kind::kTokens;
  reasons.push_back(
      fmt::format("Half of the {} have another one within {:.3g}; half of that makes the two alike, which is the "
                  "largest epsilon worth asking for.",
                  of_words ? "words' embeddings" : "samples", found.neighbour));
  reasons.push_back(fmt::format("The epsilons are {:g} (a change that says nothing), {:g} and {:g} (halfway to the next {}).",
                                threat.epsilons[0], threat.epsilons[1], threat.epsilons[2], of_words ? "word" : "sample"));
  if (threat.tolerance && subject.model->output_kind() == OutputKind::kValue) {
    reasons.push_back(
        options.tolerance
            ? fmt::format("The model gives a value, which counts as the same within {:g}: you chose it.", *threat.tolerance)
            : fmt::format("The model gives a value, which counts as the same within {:g}, a tenth of the standard "
                          "deviation of its values: choose what is the same to you.",
                          *threat.tolerance));
  }
  if (threat.valid) reasons.push_back("The schema has categories or steps: only rows that can occur are tried (valid).");
  const std::int64_t features =
      explainers().make(options.explainer)->map_schema(*subject.samples.schema).layout.features();  // valid_effect: not columns
  reasons.push_back(
      fmt::format("k is {}: so many of the {} features hold half of an explanation; a random map would share {:.2g} of them.",
                  found.k, features, static_cast<double>(found.k) / static_cast<double>(features)));
  std::vector<std::string> points;
  for (const CurvePoint& point : found.curve) points.push_back(fmt::format("{:.3g} at {:.2g}", point.value, point.epsilon));
  reasons.push_back(fmt::format("A quick attack on {} samples leaves of {}: {}. Two different samples share {:.3g}.",
                                std::min(kSamplesAttacked, subject.samples.count()), found.metric(), fmt::join(points, ", "),
                                found.between));
  reasons.push_back(
      fmt::format("The gate asks for {:g} above what two different samples share: less than that says little about a "
                  "sample. Start there, and raise it once it is met.",
                  kEnoughLiftAsked));
}

}  // namespace suggesting

std::string Suggestion::metric() const {
  return fmt::format("top_k(k={})", k);
}

Suggestion suggest_threat(const Subject& subject, const SuggestOptions& options) {
  using namespace suggesting;
  const Samples& samples = subject.samples;
  const Schema& schema = *samples.schema;
  if (samples.count() < 2) input_error("{} samples were given; two that differ are needed to choose an epsilon", samples.count());
  if (options.tolerance && !(*options.tolerance > 0 && std::isfinite(*options.tolerance)))
    usage_error("tolerance: {} must be a number above 0", *options.tolerance);
  if (options.noise && !(*options.noise >= 0 && std::isfinite(*options.noise)))
    usage_error("noise: {} must be a number of at least 0", *options.noise);
  const bool is_image = schema.layout.kind == Layout::Kind::kGrid;
  Suggestion found;
  found.threat.norm = options.norm.value_or(is_image ? Norm::kLinf : Norm::kL2);
  found.threat.tolerance = options.tolerance;
  if (!options.tolerance && subject.model->output_kind() == OutputKind::kValue)
    found.threat.tolerance = tolerance_of(subject, options);
  const at::Tensor rows = some_rows(samples);
  found.rounding = rounding_of(rows, schema, found.threat.norm);
  if (options.noise)
    found.noise = norm_of(std::vector<double>(static_cast<std::size_t>(rows.size(1)), *options.noise), found.threat.norm);
  found.neighbour = median(nearest_distances(rows, found.threat.norm));
  const double high = rounded(found.neighbour / 2);
  const double nothing = std::max(found.rounding, found.noise.value_or(0));
  const double low = rounded(nothing > 0 && nothing < high ? nothing : high / 100);
  found.threat.epsilons = {low, rounded(std::sqrt(low * high)), high};
  const double smallest = samples.inputs.min().item<double>(), largest = samples.inputs.max().item<double>();
  if (schema.range && smallest >= schema.range->first && largest <= schema.range->second)
    found.threat.box = schema.range;
  else if (is_image && smallest >= 0 && largest <= 1)
    found.threat.box = {0.0, 1.0};
  found.threat.valid =
      !schema.groups.empty() || std::ranges::any_of(schema.features, [](const Feature& feature) { return feature.step > 0; });

  const std::unique_ptr<Explainer> explainer = explainers().make(options.explainer);
  Samples few = samples.slice(0, std::min(kSamplesAttacked, samples.count()));
  const ExplainedBatch explained =
      explain_all(*explainer, {.model = *subject.model, .samples = few, .seed = options.seed}, options.tiles);
  found.k = choose_k(fold_maps(explained.maps, schema));
  look_at_curve(subject, options, found);
  found.gates = {fmt::format("{}.lift >= {:g}", found.metric(), kEnoughLiftAsked)};
  explain_choice(subject, options, found);
  return found;
}

Json to_json(const Suggestion& suggestion) {
  Json curve = Json::array();
  for (const CurvePoint& point : suggestion.curve) curve.push_back({{"epsilon", point.epsilon}, {"value", point.value}});
  return {{"threat", to_json(suggestion.threat)},
          {"k", suggestion.k},
          {"metric", suggestion.metric()},
          {"gates", suggestion.gates},
          {"rounding", suggestion.rounding},
          {"noise", optional_json(suggestion.noise)},
          {"neighbour", suggestion.neighbour},
          {"between", suggestion.between},
          {"curve", curve},
          {"reasons", suggestion.reasons}};
}

std::string to_text(const Suggestion& suggestion) {
  const Threat& threat = suggestion.threat;
  std::string text;
  for (const std::string& reason : suggestion.reasons) text += reason + "\n";
  text += fmt::format("\n  --norm {} --epsilon {:g}{}{}{} --metric '{}'", to_string(threat.norm), fmt::join(threat.epsilons, ","),
                      threat.box ? fmt::format(" --box {:g},{:g}", threat.box->first, threat.box->second) : "",
                      threat.valid ? " --valid" : "", threat.tolerance ? fmt::format(" --tolerance {:g}", *threat.tolerance) : "",
                      suggestion.metric());
  for (const std::string& gate : suggestion.gates) text += fmt::format(" --gate '{}'", gate);
  return text + "\n";
}

}  // namespace holdfast::experiment
