#include "pair_choice.h"

namespace holdfast::measure {

std::vector<OptionSpec> PairChoice::options() {
  return {{"k", 8, at_least(1), "size of the top"},
          {"i", 0, at_least(0), "with j: one pair of ranks instead of all pairs across rank k; 1 is the most important"},
          {"j", 0, at_least(0), "the lower rank of the pair"}};
}

PairChoice PairChoice::from(const Options& options, const std::string& name) {
  const PairChoice choice{options.integer("k"), options.integer("i"), options.integer("j")};
  if ((choice.i > 0 || choice.j > 0) && !(0 < choice.i && choice.i < choice.j))
    usage_error("{}: a pair of ranks needs 1 <= i < j", name);
  return choice;
}

void PairChoice::check(const Layout& layout, const std::string& name) const {
  const std::int64_t features = layout.features();
  if (j > features) usage_error("{}: the map has {} features; choose j <= {}", name, features, features);
  if (j == 0 && k >= features) usage_error("{}: the map has {} features; choose k < {}", name, features, features);
}

}  // namespace holdfast::measure
