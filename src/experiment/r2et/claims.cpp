#include "claims.h"

#include <cmath>

#include <fmt/format.h>

namespace holdfast::r2et {
namespace {

// P@k of R2ET and R2ET-mm without the Hessian term minus with it, mean of the two, paired by member.
Value without_hessian_term(const Ordering& ordering, bool softplus) {
  const auto mean_of = [&](const std::string& first, const std::string& second) {
    const std::string suffix = softplus ? ", softplus" : "";
    const std::vector<double> one = ordering.member_means(ordering.place_of(first + suffix)),
                              other = ordering.member_means(ordering.place_of(second + suffix));
    std::vector<double> means;
    for (std::size_t i = 0; i < one.size(); ++i) means.push_back((one[i] + other[i]) / 2);
    return means;
  };
  return difference_over_seeds(mean_of("R2ET\\H", "R2ET-mm\\H"), mean_of("R2ET", "R2ET-mm"));
}

double deviation(const std::vector<double>& values) {
  const double mean = defined_mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

Verdict judge_mse(const std::vector<Ordering>& er, const std::vector<Ordering>& mse, std::uint64_t seed) {
  Tally weaker, keep;
  for (std::size_t i = 0; i < er.size(); ++i) {
    if (!as_encoded(er[i].setting.encoding)) continue;
    for (std::size_t j = 0; j < er[i].methods.size(); ++j) {
      if (!as_printed(*er[i].methods[j])) continue;
      weaker.add_above(difference_over_seeds(mse[i].values[j], er[i].values[j], seed), 0);
      keep.add_above(over_seeds(mse[i].values[j], seed), 0.9);
    }
  }
  return make_verdict(
      "R1", "the MSE attack moves rankings less than ERAttack; more than half the models keep P@k >= 90 % under MSE",
      combined({judge_most(weaker), judge_most(keep)}),
      fmt::format(
          "Number: share of {} models (dataset and method, R2ET with ReLU, tables as in the paper) whose P@k under mse is "
          "at least .9, from the share whose whole interval is to the share whose interval is not below; {}. The paper's "
          "own table 1 has 31 of 69. That mse leaves a higher P@k than er: {} (paired intervals); by the means in {} of "
          "{} models.",
          keep.all, keep.words(), weaker.words(), weaker.likely, weaker.all),
      keep.share(), fewest_members(er));
}

Verdict judge_hessian_term(const std::vector<Ordering>& er) {
  std::vector<std::string> parts;
  std::string text;
  Value number;
  for (const bool softplus : {false, true}) {
    std::vector<Case> few, many;
    for (const Ordering& ordering : er) {
      if (!as_encoded(ordering.setting.encoding)) continue;
      const Value gain = without_hessian_term(ordering, softplus);
      (ordering.setting.tabular ? few : many)
          .push_back({ordering.setting.dataset, ordering.setting.tabular ? gain : negative(gain)});
    }
    parts.insert(parts.end(), {judge_mean_above(few, 0), judge_mean_above(many, 0)});
    if (!softplus) number = mean_over(few);
    text += fmt::format(
        " With {}: tables, without minus with the term, {} (mean {}); images and graphs, with minus without, {} "
        "(mean {}).",
        softplus ? "softplus" : "ReLU", words(few), words(mean_over(few)), words(many), words(mean_over(many)));
  }
  return make_verdict(
      "R3", "with few features the \\H variants win, with many features the Hessian term helps", combined(parts),
      "Number: P@k under er of R2ET\\H and R2ET-mm\\H (ReLU) minus that of R2ET and R2ET-mm, paired by seed, mean "
      "over tables as in the paper. The claim is four parts: two kinds of data, two activations." +
          text,
      number, fewest_members(er));
}

Verdict judge_unstable(const std::vector<Ordering>& er, std::uint64_t seed) {
  Tally below;
  std::vector<Case> cases;
  std::vector<double> spreads;  // logarithms of AT's deviation over R2ET\H's, by dataset
  for (const Ordering& ordering : er) {
    if (!as_encoded(ordering.setting.encoding)) continue;
    const std::size_t at = ordering.place_of("AT"), vanilla = ordering.place_of("Vanilla"), r2et = ordering.place_of("R2ET\\H");
    cases.push_back({ordering.setting.dataset, difference_over_seeds(ordering.values[at], ordering.values[vanilla], seed)});
    below.add_below(cases.back().value, 0);
    const double own = deviation(ordering.member_means(at)), other = deviation(ordering.member_means(r2et));
    spreads.push_back(own > 0 && other > 0 ? std::log(own / other) : std::nan(""));
  }
  const Value spread = over_seeds(spreads);
  Value factor{.value = std::exp(spread.value)};
  if (spread.low) factor.low = std::exp(*spread.low);
  if (spread.high) factor.high = std::exp(*spread.high);
  const std::string lower = below.in_favour >= 2 ? "holds" : below.in_favour + below.open() < 2 ? "does not hold" : "not decided";
  return make_verdict(
      "R7", "AT is unstable (the claim's other half, its cost: r2et/cost)", combined({lower, judge_above(spread, 0)}),
      fmt::format(
          "Number: share of {} datasets (tables as in the paper) where AT's P@k under er is below Vanilla's, from the share "
          "where the whole paired interval is to the share where it is not above; {}. Read as: it is on at least two, and "
          "its deviation over seeds is larger than R2ET\\H's (ReLU), by a factor of {} in the geometric mean "
          "over datasets, interval over these. AT minus Vanilla: {}.",
          below.all, below.words(), words(factor), words(cases)),
      below.share(), fewest_members(er));
}

}  // namespace holdfast::r2et
