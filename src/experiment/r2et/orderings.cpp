#include "orderings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/rng.h"

namespace holdfast::r2et {
namespace {

constexpr double kGain = 0.02;  // over Vanilla: less is not called robust
constexpr int kResamples = 2000;

// By method and member.
using MemberMeans = std::vector<std::vector<double>>;

double kendall(const std::vector<double>& x, const std::vector<double>& y) {
  double agreed = 0, in_x = 0, in_y = 0;  // pairs in the same order minus the others; pairs that are not tied
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int first = (x[i] > x[j]) - (x[i] < x[j]), second = (y[i] > y[j]) - (y[i] < y[j]);
      agreed += first * second;
      in_x += std::abs(first);
      in_y += std::abs(second);
    }
  }
  return in_x > 0 && in_y > 0 ? agreed / std::sqrt(in_x * in_y) : std::nan("");
}

// Means over the drawn members of the drawn methods; all members where none are drawn. The paper's numbers are one member.
std::vector<double> drawn_means(const MemberMeans& all, const std::vector<std::size_t>& methods,
                                const std::vector<std::size_t>& members) {
  std::vector<double> means;
  for (const std::size_t method : methods) {
    std::vector<double> drawn;
    for (const std::size_t member : members) drawn.push_back(all[method][member % all[method].size()]);
    means.push_back(defined_mean(drawn.empty() ? all[method] : drawn));
  }
  return means;
}

Value tau_of(MemberMeans first, MemberMeans second, std::uint64_t seed) {
  for (std::size_t i = first.size(); i-- > 0;) {
    if (!std::isnan(defined_mean(first[i])) && !std::isnan(defined_mean(second[i]))) continue;
    first.erase(first.begin() + static_cast<std::ptrdiff_t>(i));
    second.erase(second.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::vector<std::size_t> methods(first.size());
  for (std::size_t i = 0; i < methods.size(); ++i) methods[i] = i;
  Value tau{.value = kendall(drawn_means(first, methods, {}), drawn_means(second, methods, {})),
            .count = static_cast<std::int64_t>(methods.size())};
  if (methods.size() < 4 || std::isnan(tau.value)) return tau;

  std::vector<std::size_t> members(std::max(first.front().size(), second.front().size()));
  std::vector<double> found;
  for (int i = 0; i < kResamples; ++i) {
    RandomStream random(seed, "r2et.orderings", static_cast<std::uint64_t>(i));
    for (std::size_t& method : methods) method = random.below(first.size());
    for (std::size_t& member : members) member = random.below(members.size());
    const double drawn = kendall(drawn_means(first, methods, members), drawn_means(second, methods, members));
    if (!std::isnan(drawn)) found.push_back(drawn);
  }
  if (found.empty()) return tau;
  std::ranges::sort(found);
  tau.low = found[found.size() / 40];
  tau.high = found[found.size() - 1 - found.size() / 40];
  return tau;
}

bool is_accurate(const Ordering& ordering, std::size_t method) {
  const std::size_t vanilla = ordering.place_of("Vanilla");
  return vanilla == ordering.methods.size() || ordering.areas[method] >= ordering.areas[vanilla] - kAucLoss;
}

template <class Counts>
std::size_t highest(const Ordering& ordering, const Counts& counts) {
  std::size_t best = ordering.methods.size();
  for (std::size_t i = 0; i < ordering.methods.size(); ++i) {
    if (!of_paper(*ordering.methods[i]) || std::isnan(ordering.means[i]) || !counts(i)) continue;
    if (best == ordering.methods.size() || ordering.means[i] > ordering.means[best]) best = i;
  }
  return best;
}

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

struct Read {
  Tally tally = {};
  std::vector<Case> cases = {};
};

Read read(const std::vector<Ordering>& orderings, const Reading& reading, std::uint64_t seed) {
  Read found;
  for (const Ordering& ordering : orderings) {
    if (!ordering.setting.encoding.empty() && ordering.setting.encoding != reading.encoding) continue;
    const Lead ahead = lead(ordering, reading.softplus, reading.accurate, seed);
    if (ahead.variant == nullptr) {  // none of R2ET's has kept its AUC
      ++found.tally.all;
      ++found.tally.against;
      continue;
    }
    if (ahead.other == nullptr) continue;
    found.tally.add_above(ahead.value, 0);
    found.cases.push_back(
        {fmt::format("{}: {} minus {}", ordering.setting.dataset, ahead.variant->name, ahead.other->name), ahead.value});
  }
  return found;
}

// On how many tables the linear model is at least as good as every variant of R2ET.
std::string linear_in_words(const Comparison& group) {
  int tables = 0, as_good = 0;
  for (const Ordering& ordering : group.orderings) {
    const std::size_t linear = ordering.place_of("linear"),
                      r2et = highest(ordering, [&](std::size_t i) { return ordering.methods[i]->is_r2et(); });
    if (std::max(linear, r2et) == ordering.methods.size()) continue;
    ++tables;
    as_good += ordering.means[linear] >= ordering.means[r2et] ? 1 : 0;
  }
  if (tables == 0) return "";
  return fmt::format(
      " The linear model, which is not counted, is at least as good {} as every R2ET variant in {} of {} tables (by the means).",
      group.under, as_good, tables);
}

}  // namespace

void Ordering::add(const Entry& entry, std::vector<std::vector<double>> by_member, const std::string& column) {
  methods.push_back(entry.method);
  values.push_back(std::move(by_member));
  means.push_back(defined_mean(member_means(values.size() - 1)));
  published.push_back(r2et::published(column, entry.method->paper, setting.dataset).value_or(std::nan("")));
  areas.push_back(test_auc(entry).value);
}

std::size_t Ordering::place_of(const std::string& name) const {
  const auto place = std::ranges::find(methods, name, &Method::name);
  return static_cast<std::size_t>(place - methods.begin());
}

std::vector<double> Ordering::member_means(std::size_t method) const {
  std::vector<double> all;
  for (const std::vector<double>& samples : values[method]) all.push_back(defined_mean(samples));
  return all;
}

bool as_printed(const Method& method) {
  return of_paper(method) && !(method.is_r2et() && method.is_softplus());
}

bool as_coded(const Method& method) {
  return of_paper(method) && !(method.is_r2et() && !method.is_softplus());
}

bool of_paper(const Method& method) {
  return !method.paper.empty();
}

bool as_encoded(const std::string& encoding) {
  return encoding.empty() || encoding == "one-hot";
}

std::int64_t fewest_members(const std::vector<Ordering>& orderings) {
  std::int64_t fewest = orderings.empty() ? 0 : orderings.front().setting.members;
  for (const Ordering& ordering : orderings) fewest = std::min(fewest, ordering.setting.members);
  return fewest;
}

Value agreement(const Ordering& ordering, bool (*counts)(const Method&), std::uint64_t seed) {
  MemberMeans ours, theirs;
  for (std::size_t i = 0; i < ordering.methods.size(); ++i) {
    if (!counts(*ordering.methods[i])) continue;
    ours.push_back(ordering.member_means(i));
    theirs.push_back({ordering.published[i]});
  }
  return tau_of(ours, theirs, seed);
}

Value agreement(const Ordering& first, const Ordering& second, std::uint64_t seed) {
  MemberMeans one, other;
  for (std::size_t i = 0; i < first.methods.size(); ++i) {
    if (!of_paper(*first.methods[i])) continue;
    one.push_back(first.member_means(i));
    other.push_back(second.member_means(i));
  }
  return tau_of(one, other, seed);
}

const Method* best(const Ordering& ordering) {
  const std::size_t place = highest(ordering, [](std::size_t) { return true; });
  return place == ordering.methods.size() ? nullptr : ordering.methods[place];
}

Lead lead(const Ordering& ordering, bool softplus, bool accurate, std::uint64_t seed) {
  const auto counts = [&](std::size_t i) { return !accurate || is_accurate(ordering, i); };
  const auto& methods = ordering.methods;
  const std::size_t ours = highest(ordering,
                                   [&](std::size_t i) {
                                     return methods[i]->is_r2et() && methods[i]->is_softplus() == softplus && counts(i);
                                   }),
                    other = highest(ordering, [&](std::size_t i) { return !methods[i]->is_r2et() && counts(i); });
  Lead result;
  if (ours < methods.size()) result.variant = methods[ours];
  if (other < methods.size()) result.other = methods[other];
  if (result.variant != nullptr && result.other != nullptr)
    result.value = difference_over_seeds(ordering.values[ours], ordering.values[other], seed);
  return result;
}

Verdict judge_best(const std::string& claim, const std::string& says, const std::vector<Comparison>& groups, std::uint64_t seed) {
  std::vector<std::string> as_claimed, further, unders;  // readings of the paper's own setting, and the others
  std::string text, linear;
  Tally shown;
  std::int64_t members = 0;
  for (const Comparison& group : groups) {
    const std::vector<Reading> readings = readings_of(group.orderings);
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const Read found = read(group.orderings, readings[i], seed);
      const bool papers = !readings[i].accurate && as_encoded(readings[i].encoding);
      (papers ? as_claimed : further).push_back(judge_most(found.tally));
      text += fmt::format(" {}, {}: {}", readings[i].name(), group.under, found.tally.words());
      text += papers ? fmt::format(" ({}).", words(found.cases)) : ".";
      if (i > 0) continue;
      shown.in_favour += found.tally.in_favour;
      shown.against += found.tally.against;
      shown.likely += found.tally.likely;
      shown.all += found.tally.all;
    }
    unders.push_back(group.under);
    linear += linear_in_words(group);
    members = fewest_members(group.orderings);
  }
  std::string verdict = combined(as_claimed);
  if (verdict == "holds" && !further.empty() && combined(further) != "holds") verdict = "holds in part";
  return make_verdict(
      claim, says, verdict,
      fmt::format(
          "Number: share of datasets ({}; {} in all) where the best R2ET variant with ReLU is ahead of the best other method of "
          "the paper, tables as in the paper, from the share where the whole paired interval is above 0 to the share where it is "
          "not below 0. Most is more than half. The claim is about the tables as in the paper, with either activation, and holds "
          "whole where it does in the other readings too.{}{}",
          fmt::join(unders, " and "), shown.all, text, linear),
      shown.share(), members);
}

Verdict judge_hessian_only(const Comparison& group, const std::string& says, std::uint64_t seed) {
  Tally tally;
  std::vector<Case> cases;
  for (const Ordering& ordering : group.orderings) {
    const std::size_t vanilla = ordering.place_of("Vanilla");
    if (!as_encoded(ordering.setting.encoding) || vanilla == ordering.methods.size()) continue;
    for (const char* name : {"Est-H", "Exact-H", "SSR"}) {
      const std::size_t place = ordering.place_of(name);
      if (place == ordering.methods.size()) continue;
      const Value gain = difference_over_seeds(ordering.values[place], ordering.values[vanilla], seed);
      tally.add_below(gain, kGain);
      cases.push_back({fmt::format("{}, {}", ordering.setting.dataset, name), gain});
    }
  }
  return make_verdict(
      "R4", says, judge_all(tally),
      fmt::format("Number: share of {} cases (dataset and method, tables as in the paper) whose P@k {} is less than {} above "
                  "Vanilla's, from those where the whole paired interval is to those where it is not above; {}. Gains over "
                  "Vanilla: {}.",
                  tally.all, group.under, kGain, tally.words(), words(cases)),
      tally.share(), fewest_members(group.orderings));
}

}  // namespace holdfast::r2et
