// A survey of people (Kamath et al., AAAI 2024, table 1): do two maps of one picture look alike, and which metric says what
// people say? The pairs are the kept samples of an audit of images: the map before and after an attack.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::experiment {

// The pairs of a run, each with the values of the metrics that answers are held against:
//     {"id", "title", "pairs": [{"id", "arrays", "place", "dataset", "metrics": {"top_k(k=50)": 0.3, ...}}]}
// Metrics are top_k and lens_precision with windows 1 to 3, at the k of the pair's own metric (else a tenth of the features), and
// lens_spearman. Throws kInput for a run without images.
Json make_survey(const std::string& run);

// What the answers of several people say (web/src/survey.ts writes the files):
//     {"people", "answers", "unsure",
//      "sides": [{"metric", "with", "share", "low", "high", "count"}]: of the pairs on which the metric and top_k disagree (at
//      least
//          .5 is similar), the share of answers that side with the metric; exact 95 % intervals
//      "agreement": {"kappa", "share", "pairs"}: Fleiss' kappa over the pairs that several people answered
//      "prediction": [{"metric", "auc", "low", "high", "count"}], best first: how often a pair that was called similar has the
//      larger
//          value than one that was not; DeLong intervals}
// Throws kInput naming the file for answers to another survey or a person who is there twice.
Json score_survey(const std::vector<std::string>& files);

}  // namespace holdfast::experiment
