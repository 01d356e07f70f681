// What to ask of a model when nothing is known yet: epsilons, k and a threshold, read off the data and a quick look at the model.
//
//     rounding     half of the step that each feature's values lie on: recording alone changes an input by that much
//     noise        what measuring again changes, where the user knows it
//     neighbours   distance from a sample to its nearest other sample: half of it makes the two alike
//     curve        the metric under a quick attack at epsilons between the two
//
// The smallest epsilon is a change that says nothing (rounding or noise, else a hundredth of the neighbours' distance), the
// largest half of the distance to the nearest other sample (the median), the middle one their geometric mean. Of tokens, the
// distances are those between the embeddings of words. A regression counts as the same within a tenth of its values' standard
// deviation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/experiment/grid.h"

namespace holdfast::experiment {

struct SuggestOptions {
  std::string explainer = "saliency";
  std::optional<Norm> norm = {};         // none: linf for images, l2 for all else
  std::optional<double> noise = {};      // standard deviation of measuring a feature again, in the units of the inputs
  std::optional<double> tolerance = {};  // none: that of a value is proposed too
  std::uint64_t seed = 0;
  TileOptions tiles = {};
};

struct CurvePoint {
  double epsilon = 0, value = 0;
};

struct Suggestion {
  Threat threat;
  std::int64_t k = 1;
  std::vector<std::string> gates;
  double rounding = 0;            // in the threat's norm; 0: no steps are seen
  std::optional<double> noise;    // in the threat's norm
  double neighbour = 0;           // median distance to the nearest other sample
  double between = 0;             // the metric between different samples
  std::vector<CurvePoint> curve;  // rising epsilon
  std::vector<std::string> reasons;

  std::string metric() const;  // "top_k(k=4)"
};

// Throws kInput where fewer than two different samples are given.
Suggestion suggest_threat(const Subject& subject, const SuggestOptions& options);
Json to_json(const Suggestion& suggestion);
// The reasons, and the flags of `holdfast audit` that follow from them.
std::string to_text(const Suggestion& suggestion);

}  // namespace holdfast::experiment
