// What is removed from a sample at a time: a feature with all its channels, or a whole one-hot group. Free of torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/data/schema.h"

namespace holdfast::measure {

class Units {
 public:
  // One for each feature of a folded map; with `whole_groups` the columns of a group are one.
  Units(const Schema& schema, bool whole_groups);

  std::int64_t count() const { return count_; }
  // The units of a folded map, most important first, ties to the lower one; a group counts the sum of its columns, as a pixel
  // that of its channels.
  std::vector<std::int64_t> ranked(std::span<const double> folded) const;
  // Whether a folded map ranks anything: it is finite, and not all units count the same.
  bool ranks(std::span<const double> folded) const;
  // For each element of a sample, the place of its unit in `order`; -1 for context.
  void places(std::span<const std::int64_t> order, std::span<std::int32_t> place_of_element) const;
  // Which elements of a sample belong to the units of these features of a folded map: 1, the others 0.
  std::vector<std::uint8_t> elements_of(std::span<const std::int64_t> features) const;

 private:
  static constexpr std::size_t kNoUnit = static_cast<std::size_t>(-1);  // of context
  std::size_t unit_of_element(std::size_t element) const;
  std::vector<double> importance(std::span<const double> folded) const;

  Layout layout_;
  std::vector<std::int64_t> feature_of_element_;  // of layouts that are not plain
  std::int64_t count_ = 0;
  std::vector<std::int64_t> unit_of_feature_;
};

}  // namespace holdfast::measure
