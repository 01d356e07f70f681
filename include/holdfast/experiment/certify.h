// What is proven about a cell: every certificate that applies to its model, explainer, metric and threat, and why the others do
// not. A certificate is one lower bound of the metric a sample: no allowed point of the ball is worse.
//
//     certified_overlap   margins of the ranking over the ball; seconds             saliency of small chains and smooth networks
//     exact               the minimum itself, by branch and bound                   saliency of small ReLU networks
//     smoothed_overlap    randomised smoothing, true with probability 1 - alpha     smooth_top of any explainer and model
//
// Bounds of P@k are bounds of lens_precision and lens_recall with the same k, which are never lower.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/stages.h"
#include "holdfast/experiment/grid.h"

namespace holdfast::experiment {

// A certificate that does not apply: why, and what would.
struct Inapplicable {
  std::string name, why;
};

struct Certificates {
  std::vector<Certificate> proven;
  std::vector<Inapplicable> others;
  at::Tensor found = {};             // [B, sample...]: the points of the exact search, where it ran
  std::vector<double> found_values;  // and the metric there
};

// All of them, from `start` on where the exact search has one: [B, sample...] or undefined.
Certificates certify(const Cell& cell, const TileOptions& tiles, const at::Tensor& start = {}, Progress* progress = nullptr);

// The highest of several certificates, sample by sample, under the name of the one with the highest mean; nothing of none.
std::optional<Certificate> best_of(const std::vector<Certificate>& certificates);

// The answer of `holdfast certify --json`. Each epsilon of the trial is attacked and certified: {"epsilon", "certificates":
// [{"name", "mean", "values", "parts"}], "best": {"name", "mean", "values"}, "attacked": the same, "inapplicable": [{"name",
// "why"}]}. "best" is null where nothing applies. "attacked" has the lowest values that the attack or the exact search found.
// These keys are the largest epsilon's; where there are several, "curve" has them all. The trial has one explainer, metric and
// attack.
Json certify_subject(const Subject& subject, const Trial& trial, std::uint64_t seed, const TileOptions& tiles);

}  // namespace holdfast::experiment
