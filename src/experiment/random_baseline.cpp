#include "holdfast/experiment/random_baseline.h"

#include <algorithm>

#include "holdfast/core/method.h"

namespace holdfast {
namespace {

constexpr std::int64_t kMostPoints = 300, kFewestPoints = 10;
// Samples with at most so many features and explanations of fewer passes are cheap.
constexpr std::int64_t kCheapFeatures = 256, kManyPasses = 10;

}  // namespace

std::optional<std::string> random_baseline_call(const CellTask& task, const CellResult& found) {
  if (parse_method_call(task.attack.name()).name == "random") return std::nullopt;
  const std::int64_t passes = task.explainer.evaluations(task.schema);
  std::int64_t samples = kMostPoints;
  if (task.schema.layout.features() > kCheapFeatures || passes >= kManyPasses) {
    std::int64_t spent = 0;
    for (const SampleOutcome& sample : found.samples) spent = std::max(spent, sample.evaluations);
    samples = std::clamp(spent / (10 * passes), kFewestPoints, kMostPoints);
  }
  return fmt::format("random(samples={},from=sphere)", samples);
}

RandomBaseline run_random_baseline(const CellTask& task, const std::string& call, const TileOptions& tiles,
                                   const TileStore* store) {
  const std::unique_ptr<Attack> random = attacks().make(call);
  const CellTask other{.model = task.model,
                       .explainer = task.explainer,
                       .attack = *random,
                       .metric = task.metric,
                       .threat = task.threat,
                       .schema = task.schema,
                       .inputs = task.inputs,
                       .targets = task.targets,
                       .sample_ids = task.sample_ids,
                       .seed = task.seed,
                       .baseline = task.baseline,
                       .background = task.background};
  const CellResult result = run_cell(other, tiles, /*progress=*/nullptr, store);
  std::vector<double> values;
  for (const SampleOutcome& sample : result.samples) values.push_back(sample.value);
  const auto [low, high] = std::minmax({task.metric.floor(), task.metric.perfect()});
  return {.attack = random->name(),
          .samples = attacks().options(call).integer("samples"),
          .value = mean_interval(values, task.seed, low, high)};
}

bool beats(const RandomBaseline& random, double mean, Direction direction) {
  return direction == Direction::kHigherIsMoreAlike ? random.value.mean < mean : random.value.mean > mean;
}

Json to_json(const RandomBaseline& random) {
  return {{"attack", random.attack},
          {"samples", random.samples},
          {"mean", random.value.mean},
          {"low", random.value.low},
          {"high", random.value.high}};
}

}  // namespace holdfast
