// What ig_norm and ig_sum_norm have in common: their options, their terms, and the settings of the two paths, that of the inner
// maximisation and that of the loss.
#pragma once

#include <vector>

#include "holdfast/train/objective.h"
#include "inner_maximum.h"
#include "path_penalty.h"

namespace holdfast {

class PathObjective : public Objective {
 public:
  // The penalty's weight, the inner maximisation's options and the paths'.
  static std::vector<OptionSpec> options_with(OptionSpec weight);

  std::vector<Term> terms(double progress) const final;  // ce, penalty, robust_accuracy

 protected:
  // `weights`: see Objective.
  PathObjective(const Options& options, const std::vector<std::string>& weights);

  const double weight_;
  const InnerMaximum inner_;
  const Path::Settings inner_path_, path_;
};

}  // namespace holdfast
