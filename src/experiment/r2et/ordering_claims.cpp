// What orderings of methods say about the paper's claims.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "claims.h"

namespace holdfast::experiment::paper::r2et {
namespace {

// One way to read "R2ET is best".
struct Reading {
  bool softplus, accurate;
  std::string encoding;  // of tables; empty: there are none

  std::string name() const {
    return fmt::format("{}{}{}", softplus ? "R2ET with softplus" : "R2ET with ReLU", encoding.empty() ? "" : ", " + encoding,
                       accurate ? fmt::format(", methods within {} of Vanilla's AUC alone", kAucLoss) : "");
  }
};

std::vector<Reading> readings_of(const std::vector<Ordering>& orderings) {
  std::vector<std::string> encodings;
  for (const Ordering& ordering : orderings) {
    const std::string& encoding = ordering.setting.encoding;
    if (!encoding.empty() && std::ranges::find(encodings, encoding) == encodings.end()) encodings.push_back(encoding);
  }
  if (encodings.empty()) encodings.emplace_back();
  std::vector<Reading> readings;
  for (const bool softplus : {false, true}) {
    readings.push_back({softplus, false, encodings.front()});
    readings.push_back({softplus, true, encodings.front()});
    for (std::size_t i = 1; i < encodings.size(); ++i) readings.push_back({softplus, false, encodings[i]});
  }
  return readings;
}

// The leads of a reading, dataset by dataset.
struct Leads {
  Tally tally = {};
  std::vector<Case> cases = {};
};

Leads leads_of(const std::vector<Ordering>& orderings, const Reading& reading, std::uint64_t seed) {
  Leads found;
  for (const Ordering& ordering : orderings) {
    if (!ordering.setting.encoding.empty() && ordering.setting.encoding != reading.encoding) continue;
    const Lead ahead = lead(ordering, reading.softplus, reading.accurate, seed);
    if (ahead.variant.empty()) {  // none of R2ET's has kept its AUC
      ++found.tally.all;
      ++found.tally.against;
      continue;
    }
    if (ahead.other.empty()) continue;
    found.tally.add_above(ahead.value, 0);
    found.cases.push_back({fmt::format("{}: {} minus {}", ordering.setting.dataset, ahead.variant, ahead.other), ahead.value});
  }
  return found;
}

// On how many tables the linear model is at least as good as every variant of R2ET.
std::string linear_in_words(const Comparison& group) {
  int tables = 0, as_good = 0;
  for (const Ordering& ordering : group.orderings) {
    const std::size_t linear = ordering.place_of("linear"),
                      r2et = highest(ordering, [&](std::size_t i) { return ordering.methods[i].is_r2et(); });
    if (std::max(linear, r2et) == ordering.methods.size()) continue;
    ++tables;
    as_good += ordering.means[linear] >= ordering.means[r2et] ? 1 : 0;
  }
  if (tables == 0) return "";
  return fmt::format(
      " The linear model, which is not counted, is at least as good {} as every R2ET variant in {} of {} tables (by the means).",
      group.under, as_good, tables);
}

// P@k of R2ET and R2ET-mm without the Hessian term minus with it, mean of the two, paired by network.
Value without_hessian_term(const Ordering& ordering, bool softplus) {
  // Pairs with and without the term of which both count.
  std::vector<std::vector<double>> without, with;
  for (const std::string name : {"R2ET", "R2ET-mm"}) {
    const std::string suffix = softplus ? ", softplus" : "";
    const std::size_t one = ordering.place_of(name + "\\H" + suffix), other = ordering.place_of(name + suffix);
    if (!ordering.counts(one) || !ordering.counts(other)) continue;
    without.push_back(ordering.member_means(one));
    with.push_back(ordering.member_means(other));
  }
  if (with.empty()) return {};
  const auto mean_of = [](const std::vector<std::vector<double>>& methods) {
    std::vector<double> means(methods.front().size(), 0);
    for (const std::vector<double>& one : methods) {
      for (std::size_t i = 0; i < means.size(); ++i) means[i] += one[i] / static_cast<double>(methods.size());
    }
    return means;
  };
  return difference_over_seeds(mean_of(without), mean_of(with));
}

double deviation(const std::vector<double>& values) {
  const double mean = defined_mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::string text(std::int64_t number) {
  return std::to_string(number);
}

}  // namespace

Finding judge_best(const std::vector<Comparison>& groups, std::uint64_t seed) {
  std::vector<ClaimPart> as_claimed, further;  // readings of the paper's own setting, and the others
  std::vector<std::string> unders;
  std::string readings_text, linear;
  Tally shown;
  for (const Comparison& group : groups) {
    const std::vector<Reading> readings = readings_of(group.orderings);
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const Leads found = leads_of(group.orderings, readings[i], seed);
      const bool papers = !readings[i].accurate && (readings[i].encoding.empty() || readings[i].encoding == "one-hot");
      (papers ? as_claimed : further)
          .push_back(part_of_most(fmt::format("{}, {}", readings[i].name(), group.under), found.tally));
      readings_text += fmt::format(" {}, {}: {}", readings[i].name(), group.under, found.tally.words());
      readings_text += papers ? fmt::format(" ({}).", words(found.cases)) : ".";
      if (i > 0) continue;
      shown.in_favour += found.tally.in_favour;
      shown.against += found.tally.against;
      shown.likely += found.tally.likely;
      shown.all += found.tally.all;
    }
    unders.push_back(group.under);
    linear += linear_in_words(group);
  }
  // Another reading may take from a claim that holds, not add to one that does not.
  if (combined(as_claimed) == Judgement::kHolds) {
    for (const ClaimPart& one : further) {
      if (one.judgement == Judgement::kDoesNotHold) as_claimed.push_back(one);
    }
  }
  const std::string why = fmt::format(
      "Number: share of datasets ({}; {} in all) where the best R2ET variant with ReLU is ahead of the best other method of "
      "the paper, tables as in the paper, from the share where the whole paired interval is above 0 to the share where it is "
      "not below 0. Most is more than half. The claim is about the tables as in the paper, with either activation, and holds "
      "in part alone where another reading refutes it.{}{}",
      fmt::join(unders, " and "), shown.all, readings_text, linear);
  return found_in(as_claimed, {{"best", why}}, shown.share());
}

Finding judge_hessian_only(const Comparison& group, double limit, std::uint64_t seed) {
  Tally tally;
  std::vector<Case> cases;
  for (const Ordering& ordering : group.orderings) {
    const std::size_t vanilla = ordering.place_of("Vanilla");
    if (!is_papers_encoding(ordering.setting) || vanilla == ordering.methods.size()) continue;
    for (const char* name : {"Est-H", "Exact-H", "SSR"}) {
      const std::size_t place = ordering.place_of(name);
      if (place == ordering.methods.size() || !ordering.counts(place)) continue;
      const Value gain = difference_over_seeds(ordering.values[place], ordering.values[vanilla], seed);
      cases.push_back({fmt::format("{}, {}", ordering.setting.dataset, name), gain});
      tally.add_below(gain, limit, cases.back().name);
    }
  }
  return {judge_all(tally),
          {{"cases", text(tally.all)},
           {"under", group.under},
           {"gain", fmt::format("{}", limit)},
           {"tally", tally.words()},
           {"gains", words(cases)}},
          tally.share(),
          {},
          what_settles(judge_all(tally), tally),
          times_of(judge_all(tally), tally)};
}

Finding judge_mse(const std::vector<Ordering>& er, const std::vector<Ordering>& mse, double limit, std::uint64_t seed) {
  Tally weaker, keep;
  for (std::size_t i = 0; i < er.size(); ++i) {
    if (!is_papers_encoding(er[i].setting)) continue;
    for (std::size_t j = 0; j < er[i].methods.size(); ++j) {
      if (!is_as_printed(er[i].methods[j]) || !er[i].counts(j)) continue;
      weaker.add_above(difference_over_seeds(mse[i].values[j], er[i].values[j], seed), 0);
      keep.add_above(over_seeds(mse[i].values[j], seed), limit);
    }
  }
  return found_in({part_of_most("mse moves rankings less than er", weaker),
                   part_of_most("more than half of the models keep the limit under mse", keep)},
                  {{"models", text(keep.all)},
                   {"keep", keep.words()},
                   {"weaker", weaker.words()},
                   {"likely", text(weaker.likely)},
                   {"compared", text(weaker.all)}},
                  keep.share());
}

Finding judge_hessian_term(const std::vector<Ordering>& er) {
  std::vector<ClaimPart> parts;
  std::string parts_text;
  Value number;
  for (const bool softplus : {false, true}) {
    std::vector<Case> few, many;
    for (const Ordering& ordering : er) {
      if (!is_papers_encoding(ordering.setting)) continue;
      const Value gain = without_hessian_term(ordering, softplus);
      const bool is_table = ordering.setting.is_table();
      (is_table ? few : many).push_back({ordering.setting.dataset, is_table ? gain : negative(gain)});
    }
    const std::string activation = softplus ? "softplus" : "ReLU";
    parts.insert(parts.end(), {part_mean_above("without the term better on tables, " + activation, few, 0),
                               part_mean_above("with the term better on images and graphs, " + activation, many, 0)});
    if (!softplus) number = mean_over(few);
    parts_text += fmt::format(
        " With {}: tables, without minus with the term, {} (mean {}); images and graphs, with minus without, {} "
        "(mean {}).",
        activation, words(few), words(mean_over(few)), words(many), words(mean_over(many)));
  }
  return found_in(parts, {{"parts", parts_text}}, number);
}

Finding judge_unstable(const std::vector<Ordering>& er, std::uint64_t seed) {
  Tally below;
  std::vector<Case> cases;
  std::vector<double> spreads;  // logarithms of AT's deviation over R2ET\H's, by dataset
  for (const Ordering& ordering : er) {
    if (!is_papers_encoding(ordering.setting)) continue;
    const std::size_t at = ordering.place_of("AT"), vanilla = ordering.place_of("Vanilla"), r2et = ordering.place_of("R2ET\\H");
    if (!ordering.counts(at) || !ordering.counts(r2et)) continue;
    cases.push_back({ordering.setting.dataset, difference_over_seeds(ordering.values[at], ordering.values[vanilla], seed)});
    below.add_below(cases.back().value, 0);
    const double own = deviation(ordering.member_means(at)), other = deviation(ordering.member_means(r2et));
    spreads.push_back(own > 0 && other > 0 ? std::log(own / other) : std::nan(""));
  }
  const Value spread = over_seeds(spreads);
  Value factor{.value = std::exp(spread.value)};
  if (spread.low) factor.low = std::exp(*spread.low);
  if (spread.high) factor.high = std::exp(*spread.high);
  const Judgement lower = below.in_favour >= 2                 ? Judgement::kHolds
                          : below.in_favour + below.open() < 2 ? Judgement::kDoesNotHold
                                                               : Judgement::kNotDecided;
  return found_in(
      {{"AT is below Vanilla on two datasets", lower, lower == Judgement::kNotDecided ? below.what_decides() : ""},
       part_above("AT differs more from seed to seed than R2ET\\H", spread, 0)},
      {{"datasets", text(below.all)}, {"tally", below.words()}, {"factor", words(factor)}, {"differences", words(cases)}},
      below.share());
}

Finding judge_l2(const std::vector<Case>& datasets, double some, double much) {
  const Value share = mean_over(datasets);
  return {surely_above(share, much)                                ? Judgement::kHolds
          : surely_below(share, some)                              ? Judgement::kDoesNotHold
          : surely_above(share, some) && surely_below(share, much) ? Judgement::kHoldsInPart
                                                                   : Judgement::kNotDecided,
          {{"much", fmt::format("{}", much)}, {"some", fmt::format("{}", some)}, {"datasets", words(datasets)}},
          share,
          {},
          surely_below(share, some) || surely_above(share, much) ? "" : what_decides(share, share.value < some ? some : much)};
}

Finding judge_thickest(const std::vector<Ordering>& all_robust, const std::vector<Ordering>& all_thick, double alike,
                       std::uint64_t seed) {
  Tally tally;
  std::vector<std::string> leaders;
  std::vector<Case> taus;
  for (std::size_t d = 0; d < all_robust.size(); ++d) {
    const Ordering &robust = all_robust[d], &thick = all_thick[d];
    if (!is_papers_encoding(robust.setting)) continue;
    if (best(robust) == "-" || best(thick) == "-") continue;
    const std::size_t best_one = robust.place_of(best(robust)), thickest = thick.place_of(best(thick));
    bool surely_all = true, maybe_one = false;
    for (std::size_t i = 0; i < robust.methods.size(); ++i) {
      if (!is_of_paper(robust.methods[i]) || !robust.counts(i) ||
          surely_below(difference_over_seeds(robust.values[i], robust.values[best_one], seed), 0))
        continue;
      const Value gap = difference_over_seeds(thick.values[i], thick.values[thickest], seed);
      surely_all = surely_all && surely_above(gap, -alike);
      maybe_one = maybe_one || !surely_below(gap, -alike);
    }
    const Value gap = difference_over_seeds(thick.values[best_one], thick.values[thickest], seed);
    ++tally.all;
    tally.likely += gap.value >= -alike ? 1 : 0;
    tally.in_favour += surely_all ? 1 : 0;
    tally.against += maybe_one ? 0 : 1;
    if (surely_all) tally.for_it.push_back(robust.setting.dataset);
    if (!maybe_one) tally.against_it.push_back(robust.setting.dataset);
    if (!surely_all && maybe_one) tally.needed.push_back(seeds_needed(gap, -alike));
    leaders.push_back(fmt::format("{}: {}, thickest {}", robust.setting.dataset, best(robust), best(thick)));
    taus.push_back({robust.setting.dataset, agreement(thick, robust, seed)});
  }
  return {judge_all(tally),
          {{"datasets", text(tally.all)},
           {"alike", fmt::format("{}", alike)},
           {"tally", tally.words()},
           {"leaders", fmt::format("{}", fmt::join(leaders, "; "))},
           {"taus", words(taus)}},
          tally.share(),
          {},
          what_settles(judge_all(tally), tally),
          times_of(judge_all(tally), tally)};
}

}  // namespace holdfast::experiment::paper::r2et
