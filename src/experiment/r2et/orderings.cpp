#include "orderings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/measure/proportion.h"

namespace holdfast::r2et {
namespace {

bool is_r2et(const Method& method) {
  return method.is_r2et();
}

Value from_correlation(const Correlation& found) {
  Value value{.value = found.value, .count = found.count};
  if (!std::isnan(found.low)) {
    value.low = found.low;
    value.high = found.high;
  }
  return value;
}

std::size_t position_of_best(const Ordering& ordering, bool (*counts)(const Method&), bool wanted) {
  std::size_t best = ordering.methods.size();
  for (std::size_t i = 0; i < ordering.methods.size(); ++i) {
    if (ordering.methods[i]->paper.empty() || counts(*ordering.methods[i]) != wanted || std::isnan(ordering.means[i])) continue;
    if (best == ordering.methods.size() || ordering.means[i] > ordering.means[best]) best = i;
  }
  return best;
}

Verdict with_share(Verdict verdict, std::int64_t met, std::int64_t all) {
  const Interval share = proportion_interval(met, all);
  verdict.number = share.mean;
  verdict.low = share.low;
  verdict.high = share.high;
  verdict.verdict = verdict_of_share(share.mean);
  return verdict;
}

}  // namespace

void Ordering::add(const Entry& entry, std::vector<std::vector<double>> by_member, const std::string& column) {
  methods.push_back(entry.method);
  std::vector<double> member_means;
  for (const std::vector<double>& samples : by_member) member_means.push_back(defined_mean(samples));
  means.push_back(defined_mean(member_means));
  published.push_back(r2et::published(column, entry.method->paper, setting.dataset).value_or(std::nan("")));
  values.push_back(std::move(by_member));
}

bool as_printed(const Method& method) {
  return !method.paper.empty() && !(method.is_r2et() && method.is_softplus());
}

bool as_coded(const Method& method) {
  return !method.paper.empty() && !(method.is_r2et() && !method.is_softplus());
}

Value agreement(const Ordering& ordering, bool (*counts)(const Method&), std::uint64_t seed) {
  std::vector<double> ours, theirs;
  for (std::size_t i = 0; i < ordering.methods.size(); ++i) {
    if (!counts(*ordering.methods[i])) continue;
    ours.push_back(ordering.means[i]);
    theirs.push_back(ordering.published[i]);
  }
  return from_correlation(order_agreement(theirs, ours, seed));
}

Value agreement(const Ordering& first, const Ordering& second, std::uint64_t seed) {
  return from_correlation(order_agreement(first.means, second.means, seed));
}

const Method* best(const Ordering& ordering, bool (*counts)(const Method&)) {
  const std::size_t place = position_of_best(ordering, counts, true);
  return place == ordering.methods.size() ? nullptr : ordering.methods[place];
}

Value lead(const Ordering& ordering, bool (*counts)(const Method&), std::uint64_t seed) {
  const std::size_t first = position_of_best(ordering, counts, true), second = position_of_best(ordering, counts, false);
  if (std::max(first, second) == ordering.methods.size()) return {};
  return difference_over_seeds(ordering.values[first], ordering.values[second], seed);
}

Verdict judge_best(const std::vector<Ordering>& orderings, const std::string& under) {
  std::int64_t won = 0, members = 0;
  std::vector<std::string> lost;
  for (const Ordering& ordering : orderings) {
    const Value ahead = lead(ordering, is_r2et, 0);
    members = std::max(members, ordering.setting.members);
    if (ahead.value >= 0) {
      ++won;
    } else {
      lost.push_back(fmt::format("{} by {:.3f}", ordering.setting.name(), -ahead.value));
    }
  }
  Verdict verdict{
      .claim = "R2",
      .says = "R2ET and its variants have the best P@k on most datasets",
      .why = fmt::format("share of {} datasets and encodings where an R2ET variant is best under {}", orderings.size(), under),
      .seeds = members};
  if (!lost.empty()) verdict.why += fmt::format("; behind on {}", fmt::join(lost, ", "));
  verdict.why += "; the linear model is not counted";
  return with_share(std::move(verdict), won, static_cast<std::int64_t>(orderings.size()));
}

Verdict judge_hessian_only(const std::vector<Ordering>& orderings, const std::string& under, std::uint64_t seed) {
  std::int64_t cases = 0, not_above = 0, members = 0;
  for (const Ordering& ordering : orderings) {
    members = std::max(members, ordering.setting.members);
    const auto vanilla = std::find_if(ordering.methods.begin(), ordering.methods.end(),
                                      [](const Method* method) { return method->name == "Vanilla"; });
    if (vanilla == ordering.methods.end()) continue;
    const auto& base = ordering.values[static_cast<std::size_t>(vanilla - ordering.methods.begin())];
    for (std::size_t i = 0; i < ordering.methods.size(); ++i) {
      const std::string& name = ordering.methods[i]->name;
      if (name != "Est-H" && name != "Exact-H" && name != "SSR") continue;
      const Value gain = difference_over_seeds(ordering.values[i], base, seed);
      ++cases;
      not_above += gain.low && *gain.low > 0.02 ? 0 : 1;
    }
  }
  return with_share(
      {.claim = "R4",
       .says = "Hessian-only methods (Est-H, Exact-H, SSR) do not give robust rankings",
       .why = fmt::format("share of {} (dataset, method) whose P@k under {} is not above Vanilla's by more than .02 (95 %)",
                          cases, under),
       .seeds = members},
      not_above, cases);
}

}  // namespace holdfast::r2et
