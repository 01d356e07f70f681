#include "holdfast/experiment/own_advantage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/replaced.h"
#include "model_tiles.h"

namespace holdfast::experiment {
namespace own {

using Positions = std::vector<std::int64_t>;

// What is drawn for one sample: kOwnDraws other samples and rows.
struct Draws {
  Positions others, rows;
};

// The samples that are looked at: those with another one of their class, kMostOwnSamples at most.
Positions chosen_samples(const std::map<std::int64_t, Positions>& classes, const Positions& predicted, std::uint64_t seed) {
  Positions chosen;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    if (classes.at(predicted[i]).size() > 1) chosen.push_back(static_cast<std::int64_t>(i));
  }
  const auto most = static_cast<std::size_t>(kMostOwnSamples);
  if (chosen.size() <= most) return chosen;
  RandomStream stream(seed, "own advantage samples");
  for (std::size_t i = 0; i < most; ++i) std::swap(chosen[i], chosen[i + stream.below(chosen.size() - i)]);
  chosen.resize(most);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Draws draw(std::int64_t sample, std::int64_t id, const Positions& same_class, std::int64_t rows, std::uint64_t seed) {
  RandomStream stream(seed, "own advantage", static_cast<std::uint64_t>(id));
  const auto self = static_cast<std::size_t>(std::ranges::lower_bound(same_class, sample) - same_class.begin());
  Draws draws;
  for (std::int64_t i = 0; i < kOwnDraws; ++i) {
    const std::size_t other = stream.below(same_class.size() - 1);
    draws.others.push_back(same_class[other < self ? other : other + 1]);
    draws.rows.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(rows))));
  }
  return draws;
}

std::vector<Positions> sets_of(const std::vector<Positions>& sets, const Positions& samples) {
  std::vector<Positions> chosen;
  for (const std::int64_t sample : samples) chosen.push_back(sets[static_cast<std::size_t>(sample)]);
  return chosen;
}

// Sets of features of the table as sets of their columns; others as they are.
std::vector<Positions> sets_of_columns(std::vector<Positions> sets, const Schema& schema, const Schema& map_schema) {
  if (map_schema.layout == schema.layout) return sets;
  const std::vector<TableFeature> features = schema.table_features();
  for (Positions& set : sets) {
    Positions columns;
    for (const std::int64_t feature : set) {
      const Positions& own = features[static_cast<std::size_t>(feature)].columns;
      columns.insert(columns.end(), own.begin(), own.end());
    }
    set = std::move(columns);
  }
  return sets;
}

// The means over the draws, [B] each.
struct Means {
  at::Tensor own, other;
};

Means measure_tile(const Model& model, const Samples& part, const at::Tensor& rows, const Schema& schema,
                   const std::vector<Positions>& sets, const std::vector<Positions>& own_sets, const std::vector<Draws>& draws) {
  const at::Tensor clean = target_probability(model, part.inputs, part.targets);
  const at::Tensor own_elements = elements_of_features(schema, own_sets);
  Means sums{at::zeros_like(clean), at::zeros_like(clean)};
  for (std::size_t i = 0; i < static_cast<std::size_t>(kOwnDraws); ++i) {
    Positions others, chosen;
    for (const Draws& one : draws) {
      others.push_back(one.others[i]);
      chosen.push_back(one.rows[i]);
    }
    const at::Tensor put_in = rows.index_select(0, at::tensor(chosen, at::kLong).to(rows.device())).to(part.inputs.options());
    sums.own += effect_of_replacing(model, part, clean, own_elements, put_in);
    sums.other += effect_of_replacing(model, part, clean, elements_of_features(schema, sets_of(sets, others)), put_in);
  }
  return {to_cpu(sums.own / kOwnDraws), to_cpu(sums.other / kOwnDraws)};
}

}  // namespace own

OwnEffects own_effects(const Model& model, const Samples& samples, const std::vector<std::int64_t>& predicted,
                       const std::vector<std::vector<std::int64_t>>& sets_of_maps, const Schema& map_schema, std::uint64_t seed,
                       const TileOptions& tiles) {
  const std::vector<own::Positions> sets = own::sets_of_columns(sets_of_maps, *samples.schema, map_schema);
  const auto count = static_cast<std::size_t>(samples.count());
  HOLDFAST_CHECK(predicted.size() == count && sets.size() == count && samples.targets.defined());
  OwnEffects effects{std::vector<double>(count, std::numeric_limits<double>::quiet_NaN()), {}};
  effects.other = effects.own;
  std::map<std::int64_t, own::Positions> classes;
  for (std::size_t i = 0; i < count; ++i) classes[predicted[i]].push_back(static_cast<std::int64_t>(i));
  const own::Positions chosen = own::chosen_samples(classes, predicted, seed);
  if (chosen.empty()) return effects;
  const bool has_background = samples.background.defined() && samples.background.size(0) > 0;
  const at::Tensor rows = has_background ? samples.background : samples.inputs;
  const std::vector<std::int64_t> ids = to_vector(samples.ids);
  const Samples looked_at = samples.select(at::tensor(chosen, at::kLong));
  const std::int64_t size = tile_size(tiles, samples.layout(), model);
  const auto part_of = [&](const Tile& tile) { return own::Positions(chosen.begin() + tile.begin, chosen.begin() + tile.end); };
  const auto measure = [&](const Tile& tile) {
    const own::Positions part = part_of(tile);
    std::vector<own::Draws> draws;
    for (const std::int64_t sample : part) {
      const auto at = static_cast<std::size_t>(sample);
      draws.push_back(own::draw(sample, ids.empty() ? sample : ids[at], classes.at(predicted[at]), rows.size(0), seed));
    }
    return own::measure_tile(model, samples_for(looked_at, tile, model), rows, *samples.schema, sets, own::sets_of(sets, part),
                             draws);
  };
  run_tiles(model, std::ssize(chosen), size, tiles.threads, measure, [&](const Tile& tile, const own::Means& means) {
    const own::Positions part = part_of(tile);
    for (std::size_t i = 0; i < part.size(); ++i) {
      effects.own[static_cast<std::size_t>(part[i])] = means.own.const_data_ptr<double>()[i];
      effects.other[static_cast<std::size_t>(part[i])] = means.other.const_data_ptr<double>()[i];
    }
  });
  return effects;
}

}  // namespace holdfast::experiment
