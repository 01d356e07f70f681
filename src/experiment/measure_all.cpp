#include "holdfast/experiment/measure_all.h"

#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/reproduce_statistics.h"
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

std::int64_t tile_size_of(const MeasureTask& task, const TileOptions& tiles) {
  return tile_size(tiles, task.samples.layout(), task.model);
}

template <class Keep>
void measure_tiles(const Measure& measure, const MeasureTask& task, const TileOptions& tiles, const Keep& keep,
                   SharedTiles* shared = nullptr) {
  MeasureTask whole = task;
  whole.samples = prepared(task.samples, task.model);
  run_tiles(
      task.model, task.samples.count(), tile_size_of(task, tiles), tiles.threads,
      [&](const Tile& tile) {
        if (tile.begin == 0) check_tile_apart(task.model, task.samples.inputs, tile.end);
        return measure.run(part_of(whole, tile));
      },
      keep, shared);
}

// A tile's numbers on their way to rank 0, bit by bit: JSON has neither infinities nor NaN.
std::string packed(const Measurement& part) {
  Json parts = Json::array();
  for (const auto& [name, values] : part.parts) parts.push_back({name, values});
  const std::vector<std::uint8_t> bytes = Json::to_cbor({{"values", part.values}, {"parts", parts}});
  return {bytes.begin(), bytes.end()};
}

Measurement unpacked(const std::string& bytes) {
  const Json json = Json::from_cbor(bytes);
  Measurement part{.values = json.at("values")};
  for (const Json& entry : json.at("parts")) part.parts.emplace_back(entry.at(0), entry.at(1).get<std::vector<double>>());
  return part;
}

}  // namespace

void check_measure(const Measure& measure, const MeasureTask& task) {
  MeasureTask checked = task;
  checked.samples = with_any_targets(task.samples);
  measure.check(checked);
  check_samples_apart(task.model, task.samples);
}

void announce(const Measure& measure, const MeasureTask& task) {
  if (const std::string what = measure.announcement(task); !what.empty()) log_info("{}", what);
}

Measurement measure_all(const Measure& measure, const MeasureTask& task, const TileOptions& tiles, Progress* progress) {
  std::vector<Measurement> parts(static_cast<std::size_t>(tile_count(task.samples.count(), tile_size_of(task, tiles))));
  measure_tiles(measure, task, tiles, [&](const Tile& tile, Measurement part) {
    parts[static_cast<std::size_t>(tile.index)] = std::move(part);
    if (progress != nullptr) progress->advance(tile.size());
  });
  return join(std::move(parts));
}

Measurement measure_together(Communicator& ranks, const std::string& name, const Measure& measure, const MeasureTask& task,
                             const TileOptions& tiles, Progress* progress) {
  const auto key = [&](std::int64_t tile) { return fmt::format("{}/{}", name, tile); };
  SharedTiles shared(ranks, name, task.samples.count(), progress);
  measure_tiles(
      measure, task, tiles, [&](const Tile& tile, const Measurement& part) { ranks.publish(key(tile.index), packed(part)); },
      &shared);
  shared.wait_for_all();
  if (!ranks.leads()) return {};
  std::vector<Measurement> parts;
  for (std::int64_t tile = 0; tile < tile_count(task.samples.count(), tile_size_of(task, tiles)); ++tile)
    parts.push_back(unpacked(ranks.read(key(tile))));
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
