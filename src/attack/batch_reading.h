// Judging, first half: what the maps and logits of a batch of points say, read row by row.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/attack.h"

namespace holdfast::attack {

// Rounding of float32 logits, relative to their size: what another batch size or precision may change.
inline constexpr double kLogitRounding = 1e-5;

class BatchReading {
 public:
  // `with_probabilities`: also the probability of the predicted class, for threat models with a tolerance.
  BatchReading(const Schema& schema, bool with_probabilities) : schema_(schema), with_probabilities_(with_probabilities) {}

  void read(const Explanation& explanation);
  void read_maps(const at::Tensor& maps);

  // The folded map of a row; nothing when it is not finite.
  std::optional<MapView> map(std::int64_t row) const;
  // The predicted class, the lower one on ties.
  std::int64_t predicted(std::int64_t row) const { return predicted_[static_cast<std::size_t>(row)]; }
  // Whether its margin over the runner-up is at least kMargin, plus what float32 cannot tell apart at the size of the logits.
  bool is_certain(std::int64_t row) const { return is_certain_[static_cast<std::size_t>(row)] != 0; }
  // The probability of the predicted class, or the value of a model that gives one, and what rounding of the logits may change
  // of it.
  struct Probability {
    double value = 0, rounding = 0;
  };
  Probability probability(std::int64_t row) const { return probabilities_[static_cast<std::size_t>(row)]; }

 private:
  void read_logits(const at::Tensor& logits);

  const Schema& schema_;
  const bool with_probabilities_;
  std::vector<double> folded_;  // row after row
  bool all_finite_ = true;
  std::vector<std::int64_t> predicted_;
  std::vector<char> is_certain_;
  std::vector<Probability> probabilities_;
};

// The predicted class's logit above the highest of the others.
double margin_of(const double* logits, std::int64_t classes, std::int64_t predicted);

// A plain copy on the CPU; half-precision models are judged in single precision.
at::Tensor on_cpu(const at::Tensor& tensor);

}  // namespace holdfast::attack
