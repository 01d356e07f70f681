#include "holdfast/experiment/measure_all.h"

#include <cmath>

#include "holdfast/core/torch.h"
#include "model_tiles.h"

namespace holdfast {
namespace {

MeasureTask task_of(const MeasureJob& job, const Reference& reference, const Tile& tile) {
  const at::Tensor inputs = inputs_for(job.inputs, tile, job.model);
  return {.model = job.model,
          .explainer = job.explainer,
          .schema = job.schema,
          .inputs = inputs,
          .targets = targets_for(job.targets, tile, job.model, inputs),
          .sample_ids = rows(job.sample_ids, tile),
          .seed = job.seed,
          .epsilon = job.epsilon,
          .endpoints = job.endpoints.defined() ? inputs_for(job.endpoints, tile, job.model) : at::Tensor(),
          .baseline = reference.baseline,
          .background = reference.background};
}

void add(std::vector<double>& to, const std::vector<double>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Measurement join(std::vector<Measurement> tiles) {
  if (tiles.empty()) return {};
  Measurement whole = std::move(tiles.front());
  for (std::size_t i = 1; i < tiles.size(); ++i) {
    add(whole.values, tiles[i].values);
    HOLDFAST_CHECK(tiles[i].parts.size() == whole.parts.size());
    for (std::size_t part = 0; part < whole.parts.size(); ++part) add(whole.parts[part].second, tiles[i].parts[part].second);
  }
  return whole;
}

// Of the values that are defined; NaN, which JSON writes as null, where there are none.
double defined_mean(const std::vector<double>& values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return sum / count;
}

}  // namespace

void check_measure(const Measure& measure, const MeasureJob& job) {
  // Which class is explained decides nothing here; predicting it would be work.
  const at::Tensor targets = job.targets.defined() ? job.targets : at::zeros({job.inputs.size(0)}, at::kLong);
  measure.check({.model = job.model,
                 .explainer = job.explainer,
                 .schema = job.schema,
                 .inputs = job.inputs,
                 .targets = targets,
                 .sample_ids = job.sample_ids,
                 .seed = job.seed,
                 .epsilon = job.epsilon,
                 .endpoints = job.endpoints,
                 .baseline = job.baseline,
                 .background = job.background});
}

Measurement measure_all(const Measure& measure, const MeasureJob& job, const TileOptions& tiles, Progress* progress) {
  check_measure(measure, job);
  check_samples_apart(job.model, job.inputs);
  const Reference reference = reference_for(job.baseline, job.background, job.model);
  const std::int64_t samples = job.inputs.size(0);
  const std::int64_t size = tile_size(tiles, job.schema.layout);
  std::vector<Measurement> parts(static_cast<std::size_t>(tile_count(samples, size)));
  for_each_tile(samples, size, threads_for(job.model, tiles.threads), [&](const Tile& tile) {
    parts[static_cast<std::size_t>(tile.index)] = measure.run(task_of(job, reference, tile));
    if (progress != nullptr) progress->advance(tile.size());
  });
  return join(std::move(parts));
}

Interval mean_interval(const Measure& measure, const Measurement& measured, std::uint64_t seed) {
  const auto [low, high] = measure.range();
  return mean_interval(measured.values, seed, low, high);
}

Json to_json(const Measure& measure, const Measurement& measured, std::uint64_t seed) {
  const Interval interval = mean_interval(measure, measured, seed);
  Json parts = Json::object();
  for (const auto& [name, values] : measured.parts) {
    parts[name] = {{"mean", defined_mean(values)}, {"values", values}};
  }
  return {{"name", measure.name()},
          {"mean", interval.mean},
          {"low", interval.low},
          {"high", interval.high},
          {"median", interval.median},
          {"count", interval.count},
          {"higher_is_better", measure.higher_is_better()},
          {"values", measured.values},
          {"parts", parts}};
}

}  // namespace holdfast
