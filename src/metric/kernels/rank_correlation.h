// Kendall's tau-b and Spearman's rho of one map with many others. The original is sorted once.
//
//     tau-b = (C - D) / sqrt((P - X)(P - Y))      P = n(n-1)/2 pairs; C concordant, D discordant; X, Y tied in the one map
//     rho   = correlation of the ranks, equal values with their mean rank
//
// Knight, "A Computer Method for Calculating Kendall's Tau with Ungrouped Data", JASA 1966: in the original's order, D is the
// number of exchanges a merge sort of the other map needs. O(n log n). A map with all values equal has no order: NaN.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace holdfast::metric {

class KendallOriginal {
 public:
  KendallOriginal() = default;
  explicit KendallOriginal(std::span<const double> original) { set(original); }
  void set(std::span<const double> original);  // uses its memory again
  double correlation(std::span<const double> perturbed) const;

  // Numbers of pairs of features; `tied` ones are tied in the perturbed map. Both functions below give the same counts.
  struct Counts {
    std::int64_t discordant = 0, tied = 0, tied_in_both = 0;

    bool operator==(const Counts&) const = default;
  };
  Counts count_by_sorting(std::span<const double> perturbed) const;
  Counts count_all_pairs(std::span<const double> perturbed) const;  // at most 32768 features

 private:
  std::vector<std::uint32_t> order_;                           // ascending
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ties_;  // [first, end) in order_ of equal values, two or more
  std::int64_t tied_pairs_ = 0;
};

class SpearmanOriginal {
 public:
  SpearmanOriginal() = default;
  explicit SpearmanOriginal(std::span<const double> original) { set(original); }
  void set(std::span<const double> original);
  double correlation(std::span<const double> perturbed) const;

 private:
  std::vector<double> ranks_;  // of each feature: twice its mean rank from the middle, a whole number
  double squares_ = 0;         // sum of their squares
};

}  // namespace holdfast::metric
