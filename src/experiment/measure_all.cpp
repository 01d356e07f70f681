#include "holdfast/experiment/measure_all.h"

#include <cmath>

#include "holdfast/core/torch.h"
#include "model_tiles.h"

namespace holdfast::experiment {
namespace {

MeasureTask part_of(const MeasureTask& task, const Tile& tile) {
  MeasureTask part = task;
  part.samples = samples_for(task.samples, tile, task.model);
  if (task.endpoints.defined()) part.endpoints = inputs_for(task.endpoints, tile, task.model);
  return part;
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

// The mean of the values that are defined; NaN, which JSON writes as null, where there are none.
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

void check_measure(const Measure& measure, const MeasureTask& task) {
  MeasureTask checked = task;
  checked.samples = with_any_targets(task.samples);
  measure.check(checked);
  check_samples_apart(task.model, task.samples);
}

Measurement measure_all(const Measure& measure, const MeasureTask& task, const TileOptions& tiles, Progress* progress) {
  MeasureTask whole = task;
  whole.samples = prepared(task.samples, task.model);
  const std::int64_t samples = task.samples.count();
  const std::int64_t size = tile_size(tiles, task.samples.layout(), task.model);
  std::vector<Measurement> parts(static_cast<std::size_t>(tile_count(samples, size)));
  run_tiles(
      task.model, samples, size, tiles.threads,
      [&](const Tile& tile) {
        if (tile.begin == 0) check_tile_apart(task.model, task.samples.inputs, tile.end);
        return measure.run(part_of(whole, tile));
      },
      [&](const Tile& tile, Measurement part) {
        parts[static_cast<std::size_t>(tile.index)] = std::move(part);
        if (progress != nullptr) progress->advance(tile.size());
      });
  return join(std::move(parts));
}

Interval measured_interval(const Measure& measure, const Measurement& measured, std::uint64_t seed) {
  const auto [low, high] = measure.range();
  return mean_interval(measured.values, seed, low, high);
}

Json to_json(const Measure& measure, const Measurement& measured, std::uint64_t seed) {
  const Interval interval = measured_interval(measure, measured, seed);
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

}  // namespace holdfast::experiment
