#include "orderings.h"

#include <algorithm>
#include <cmath>

#include "holdfast/core/rng.h"
#include "holdfast/experiment/reproduce_statistics.h"
#include "holdfast/measure/statistics.h"

namespace holdfast::experiment::paper::r2et {
namespace {

constexpr int kResamples = 2000;

// Means over samples, by method and network.
using MemberMeans = std::vector<std::vector<double>>;

double kendall(const std::vector<double>& x, const std::vector<double>& y) {
  return correlation(CorrelationKind::kKendall, x, y);
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
  const auto outside = static_cast<std::size_t>(static_cast<double>(found.size()) * (1 - interval_level()) / 2);
  tau.low = found[outside];
  tau.high = found[found.size() - 1 - outside];
  return tau;
}

bool is_accurate(const Ordering& ordering, std::size_t method) {
  const std::size_t vanilla = ordering.place_of("Vanilla");
  return vanilla == ordering.methods.size() || ordering.areas[method] >= ordering.areas[vanilla] - kAucLoss;
}

}  // namespace

void Ordering::add(const MethodNetworks& networks, BySeed by_seed, std::optional<double> printed) {
  methods.push_back(networks.method);
  values.push_back(std::move(by_seed));
  means.push_back(defined_mean(member_means(values.size() - 1)));
  published.push_back(printed.value_or(std::nan("")));
  areas.push_back(defined_mean(test_aucs(networks)));
  left_out.push_back(!networks.counts());
  is_counted = is_counted && networks.standing != kNotCounted;
}

std::size_t Ordering::place_of(const std::string& name) const {
  return static_cast<std::size_t>(std::ranges::find(methods, name, &Method::name) - methods.begin());
}

std::vector<double> Ordering::member_means(std::size_t method) const {
  std::vector<double> all;
  for (const std::vector<double>& samples : values[method]) all.push_back(defined_mean(samples));
  return all;
}

std::vector<Ordering> orderings_of(PaperRun& run, const std::string& table, const std::string& column,
                                   const std::string& published, Numbers (*changed)(const Numbers&), bool strong_choice) {
  std::vector<Ordering> orderings;
  const MeasuredTable& measured = run.measured(table);
  for (const auto& rows : measured.by_setting()) {
    const Setting& setting = *rows.front()->setting;
    Ordering ordering{.setting = setting};
    for (const MeasuredRow* row : rows) {
      const Numbers& numbers = measured.numbers(*row, column);
      if (numbers.is_empty()) continue;
      const MethodNetworks& networks =
          strong_choice ? *find(run.networks(setting, setting.strong_choice), row->method()) : *row->networks;
      ordering.add(networks, changed == nullptr ? numbers.values : changed(numbers).values,
                   run.paper.published(published, networks.method.paper, setting.dataset));
    }
    orderings.push_back(std::move(ordering));
  }
  return orderings;
}

std::vector<Ordering> counted(const std::vector<Ordering>& orderings) {
  std::vector<Ordering> found;
  std::ranges::copy_if(orderings, std::back_inserter(found), &Ordering::is_counted);
  return found;
}

bool is_as_printed(const Method& method) {
  return is_of_paper(method) && !(method.is_r2et() && method.is_softplus());
}

bool is_as_coded(const Method& method) {
  return is_of_paper(method) && !(method.is_r2et() && !method.is_softplus());
}

bool is_of_paper(const Method& method) {
  return !method.paper.empty();
}

bool is_papers_encoding(const Setting& setting) {
  return setting.encoding.empty() || setting.encoding == "one-hot";
}

std::int64_t fewest_members(const std::vector<Ordering>& orderings) {
  std::int64_t fewest = orderings.empty() ? 0 : orderings.front().setting.members;
  for (const Ordering& ordering : orderings) fewest = std::min(fewest, ordering.setting.members);
  return fewest;
}

Value agreement(const Ordering& ordering, bool (*counts)(const Method&), std::uint64_t seed) {
  MemberMeans ours, theirs;
  for (std::size_t i = 0; i < ordering.methods.size(); ++i) {
    if (!counts(ordering.methods[i]) || !ordering.counts(i)) continue;
    ours.push_back(ordering.member_means(i));
    theirs.push_back({ordering.published[i]});
  }
  return tau_of(ours, theirs, seed);
}

Value agreement(const Ordering& first, const Ordering& second, std::uint64_t seed) {
  MemberMeans one, other;
  for (std::size_t i = 0; i < first.methods.size(); ++i) {
    if (!is_of_paper(first.methods[i]) || !first.counts(i) || !second.counts(i)) continue;
    one.push_back(first.member_means(i));
    other.push_back(second.member_means(i));
  }
  return tau_of(one, other, seed);
}

std::size_t highest(const Ordering& ordering, const std::function<bool(std::size_t)>& counts) {
  std::size_t best = ordering.methods.size();
  for (std::size_t i = 0; i < ordering.methods.size(); ++i) {
    if (!is_of_paper(ordering.methods[i]) || std::isnan(ordering.means[i]) || !ordering.counts(i) || !counts(i)) continue;
    if (best == ordering.methods.size() || ordering.means[i] > ordering.means[best]) best = i;
  }
  return best;
}

std::string best(const Ordering& ordering) {
  const std::size_t place = highest(ordering, [](std::size_t) { return true; });
  return place == ordering.methods.size() ? "-" : ordering.methods[place].name;
}

Lead lead(const Ordering& ordering, bool softplus, bool accurate, std::uint64_t seed) {
  const auto counts = [&](std::size_t i) { return !accurate || is_accurate(ordering, i); };
  const auto& methods = ordering.methods;
  const std::size_t ours = highest(
                        ordering,
                        [&](std::size_t i) { return methods[i].is_r2et() && methods[i].is_softplus() == softplus && counts(i); }),
                    other = highest(ordering, [&](std::size_t i) { return !methods[i].is_r2et() && counts(i); });
  Lead result;
  if (ours < methods.size()) result.variant = methods[ours].name;
  if (other < methods.size()) result.other = methods[other].name;
  if (!result.variant.empty() && !result.other.empty())
    result.value = difference_over_seeds(ordering.values[ours], ordering.values[other], seed);
  return result;
}

}  // namespace holdfast::experiment::paper::r2et
