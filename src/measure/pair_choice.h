// Which pairs of features a measure of ranking looks at: its options k, i and j.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/method.h"
#include "holdfast/data/layout.h"

namespace holdfast::measure {

// All pairs across rank k, or one pair of ranks.
struct PairChoice {
  std::int64_t k = 8, i = 0, j = 0;

  static std::vector<OptionSpec> options();
  // `name` is the measure's, for messages.
  static PairChoice from(const Options& options, const std::string& name);
  // Throws kUsage when a map of this layout has too few features.
  void check(const Layout& layout, const std::string& name) const;
};

}  // namespace holdfast::measure
