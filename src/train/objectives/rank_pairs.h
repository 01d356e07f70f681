// Pairs of features, one of the top k and one below it, and the mean of their gaps.
//
//     pairs=all     every i <= k < j: the mean of (I_i - I_j) is sum(top k)/k - sum(rest)/(n-k)
//     pairs=next    the `count` pairs around rank k, (k-m, k+1+m) for m = 0 .. count-1: R2ET-mm. With count = k their sum
//     telescopes to
//                   sum(top k) - sum(ranks k+1 .. 2k), the pairs of the authors' code
// I: magnitudes, channels summed; ranks are the current model's. Linear in n after one selection, never over the pairs.
//
// The papers' sums are these means times the number of pairs, k (n-k) or count; a mean keeps weights comparable between datasets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/method.h"
#include "holdfast/data/layout.h"

namespace holdfast::train {

class RankPairs {
 public:
  // Gives the options top_k, pairs and count.
  static std::vector<OptionSpec> options();
  explicit RankPairs(const Options& options);
  // pairs=next.
  RankPairs(std::int64_t top_k, std::int64_t count);

  // Throws kUsage when the samples have too few features.
  void check(const Layout& layout, const std::string& objective) const;

  // The mean gap of each sample, [B], of signed gradients [B, sample...]; differentiable, ranks and signs held fixed.
  at::Tensor mean_gap(const at::Tensor& gradient, const Layout& layout) const;
  // c with mean_gap = sum(c * gradient): [B, sample...], constant.
  at::Tensor cotangent(const at::Tensor& gradient, const Layout& layout) const;

  // Gives, for each pair of pairs=next from the threshold on, the d with I_i - I_j = sum(d * gradient): [B, count, sample...],
  // constant.
  at::Tensor differences(const at::Tensor& gradient, const Layout& layout) const;

 private:
  struct Positions {
    at::Tensor upper, lower;  // [B, count]
  };
  void check_count() const;
  Positions around_the_threshold(const at::Tensor& magnitudes) const;

  std::int64_t top_k_, count_;
  bool all_;
};

// Maps of features: magnitudes with channels summed, [B, features], of gradients [B, sample...].
at::Tensor folded(const at::Tensor& gradient, const Layout& layout);
// One number a feature, [B, ..., features], as one an input element [B, ..., sample flat]: channels of a pixel share theirs.
at::Tensor spread(const at::Tensor& features, const Layout& layout);

}  // namespace holdfast::train
