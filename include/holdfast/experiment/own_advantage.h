// Whether an attacked explanation is about its own sample: own advantage of metric/levels.h, for which the model is asked.
//
// For each sample kDraws times: a row of the data and another sample of the same predicted class are drawn. The features of the
// top set of the sample's attacked map are taken from that row, one-hot groups whole, and then those of the other sample's. Both
// meet the same rows, so that what they change is compared like with like.
#pragma once

#include <optional>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/experiment/explain_all.h"
#include "holdfast/metric/levels.h"
#include "holdfast/model/model.h"

namespace holdfast::experiment {

inline constexpr std::int64_t kOwnDraws = 10;
// Of more samples, so many that are drawn are looked at: 20 passes each bound what this costs.
inline constexpr std::int64_t kMostOwnSamples = 1000;

// Mean |p(x) - p(x with the features replaced)| of each sample; NaN where no other sample has its class, and for samples that
// were not looked at.
struct OwnEffects {
  std::vector<double> own, other;
};

// `samples` have targets; `predicted` is the class of each clean sample and `sets` the top set of its attacked map, features of
// the folded maps that `map_schema` describes. Rows are those of the background, or the samples themselves where there is none.
OwnEffects own_effects(const Model& model, const Samples& samples, const std::vector<std::int64_t>& predicted,
                       const std::vector<std::vector<std::int64_t>>& sets, const Schema& map_schema, std::uint64_t seed,
                       const TileOptions& tiles);

}  // namespace holdfast::experiment
