// r2et/fig3: the first swap against thickness and the Hessian's norm, sample by sample.
#include "claims.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace holdfast::experiment::paper::r2et {
namespace {

// Rows that the claim is about: the paper's methods, where the networks count.
bool is_judged(const MeasuredRow& row) {
  return is_of_paper(row.networks->method) && row.networks->counts();
}

struct Points {
  std::vector<double> swap, thickness, flatness;  // of one network; flatness is minus the Hessian's norm
};

// Network `i` of a row of the hidden table: the first swaps, thickness and curvature.
Points points_of(const MeasuredRow& row, std::size_t i) {
  Points points{{}, row.numbers[1].values[i], {}};
  std::vector<std::int64_t> first = row.numbers[0].cells[i].first_swap;
  const std::vector<double>& norms = row.numbers[2].values[i];
  const std::size_t count = std::min({first.size(), points.thickness.size(), norms.size()});
  first.resize(count);
  points.thickness.resize(count);
  points.swap = censored_times(first, row.setting->steps);
  for (std::size_t j = 0; j < count; ++j) points.flatness.push_back(-norms[j]);
  return points;
}

double spearman(const std::vector<double>& x, const std::vector<double>& y, std::uint64_t seed) {
  return correlate(CorrelationKind::kSpearman, x, y, seed).value;
}

// Vanilla and R2ET\H, the first 60 samples: enough to see, and small enough to keep.
void add_dots(Json& dots, const Setting& setting, const std::string& method, const Points& points) {
  if (method != "Vanilla" && method != "R2ET\\H") return;
  for (std::size_t i = 0; i < std::min<std::size_t>(points.swap.size(), 60); ++i) {
    dots.push_back({{"subject", setting.name + ": " + method},
                    {"swap", points.swap[i]},
                    {"thickness", points.thickness[i]},
                    {"norm", -points.flatness[i]}});
  }
}

SwapCorrelations correlate_dataset(PaperRun& run, const std::vector<const MeasuredRow*>& rows, Json& dots) {
  const Setting& setting = *rows.front()->setting;
  SwapCorrelations found{setting, std::vector<SwapCorrelations::Network>(static_cast<std::size_t>(setting.members))};
  for (const MeasuredRow* row : rows) {
    std::vector<double> by_thickness, by_flatness, gaps, swapped;
    for (std::size_t j = 0; j < row->networks->members.size(); ++j) {
      const Points points = points_of(*row, j);
      by_thickness.push_back(spearman(points.swap, points.thickness, run.seed));
      by_flatness.push_back(spearman(points.swap, points.flatness, run.seed));
      gaps.push_back(by_thickness.back() - by_flatness.back());
      const auto in_time =
          std::ranges::count_if(points.swap, [&](double time) { return time <= static_cast<double>(setting.steps); });
      swapped.push_back(static_cast<double>(in_time) / static_cast<double>(points.swap.size()));
      if (j == 0) add_dots(dots, setting, row->method(), points);
      if (is_judged(*row)) found.networks[j].add(by_thickness.back(), by_flatness.back());
    }
    run.table("correlations")
        .add({setting.name, row->method()},
             {over_seeds(by_thickness), over_seeds(by_flatness), over_seeds(gaps), over_seeds(swapped)});
  }
  return found;
}

}  // namespace

void SwapCorrelations::Network::add(double with_thickness, double with_flatness) {
  if (std::isnan(with_thickness) || std::isnan(with_flatness)) {
    ++undefined;
    return;
  }
  thickness.push_back(with_thickness);
  flatness.push_back(with_flatness);
  difference.push_back(with_thickness - with_flatness);
}

Value SwapCorrelations::mean(std::vector<double> Network::*which) const {
  std::vector<double> means;
  for (const Network& network : networks) means.push_back(defined_mean(network.*which));
  return over_seeds(means);
}

Finding judge_swaps(const std::vector<SwapCorrelations>& datasets, double correlates, double clear) {
  using Network = SwapCorrelations::Network;
  std::vector<Case> thickness, flatness, difference, projected;
  std::int64_t undefined = 0, all = 0;
  for (const SwapCorrelations& dataset : datasets) {
    const Case gap{dataset.setting.dataset, dataset.mean(&Network::difference)};
    if (!is_papers_encoding(dataset.setting)) {
      projected.push_back(gap);
      continue;
    }
    difference.push_back(gap);
    thickness.push_back({dataset.setting.dataset, dataset.mean(&Network::thickness)});
    flatness.push_back({dataset.setting.dataset, dataset.mean(&Network::flatness)});
    for (const Network& network : dataset.networks) {
      undefined += network.undefined;
      all += network.undefined + static_cast<std::int64_t>(network.difference.size());
    }
  }
  const Value gap = mean_over(difference);
  ClaimPart clearly = part_above("clearly more than the Hessian's norm", gap, clear);
  if (clearly.judgement == Judgement::kHolds && judge_mean_above(difference, 0) != Judgement::kHolds)
    clearly.judgement = Judgement::kHoldsInPart;
  return found_in({part_mean_above("thickness correlates with the first swap", thickness, correlates), clearly},
                  {{"clearly", fmt::format("{}", clear)},
                   {"differences", words(difference)},
                   {"correlates", fmt::format("{}", correlates)},
                   {"thickness", words(thickness)},
                   {"thickness_mean", words(mean_over(thickness))},
                   {"flatness", words(flatness)},
                   {"flatness_mean", words(mean_over(flatness))},
                   {"projected", words(projected)},
                   {"undefined", std::to_string(undefined)},
                   {"networks", std::to_string(all)}},
                  gap);
}

void analyse_fig3(PaperRun& run) {
  std::vector<SwapCorrelations> datasets;
  Json dots = Json::array();
  for (const auto& rows : run.measured("samples").by_setting()) {
    SwapCorrelations found = correlate_dataset(run, rows, dots);
    if (std::ranges::any_of(rows, [](const MeasuredRow* row) { return is_judged(*row); })) datasets.push_back(std::move(found));
  }
  run.draw("first swap", dots);
  if (datasets.empty()) {
    if (!run.measured("samples").rows.empty()) run.leave_open("R6", "No network counts.");
    return;
  }
  const std::vector<double>& limits = run.claim("R6").limits;
  const Finding found = judge_swaps(datasets, limits[0], limits[1]);
  run.judge("R6", found, run.fewest_members());
}

}  // namespace holdfast::experiment::paper::r2et
