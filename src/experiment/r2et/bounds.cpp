// r2et/bounds: measured thickness against the printed and the sound bounds.
#include "claims.h"

#include <cmath>

#include <fmt/format.h>

namespace holdfast::experiment::paper::r2et {
namespace {

constexpr double kErrors = 4;

// A row of the hidden table: thickness, printed and, of smooth networks, sound bounds. Networks that do not count are shown
// alone.
void add_row(PaperRun& run, const MeasuredRow& row, AllViolations& all) {
  const bool is_smooth = row.networks->method.is_softplus();
  NetworkViolations printed, sound;
  for (std::size_t seed = 0; seed < row.networks->members.size(); ++seed) {
    const MeasuredCell& thickness = row.numbers[0].measured[seed];
    const Violations as_printed = violations_of(thickness, row.numbers[1].measured[seed]);
    printed.add(seed, as_printed);
    if (row.networks->counts()) (is_smooth ? all.printed_smooth : all.printed_relu).add(seed, as_printed);
    if (!is_smooth) continue;
    const Violations made_sound = violations_of(thickness, row.numbers[2].measured[seed]);
    sound.add(seed, made_sound);
    if (row.networks->counts()) all.sound.add(seed, made_sound);
  }
  run.table("violations")
      .add({row.setting->name, row.method(), row.words.at("radius")},
           {share(printed.mean(&Violations::below)), share(printed.mean(&Violations::above)),
            share(sound.mean(&Violations::below)), share(sound.mean(&Violations::above)), sound.mean(&Violations::width)});
}

}  // namespace

Violations violations_of(const MeasuredCell& thickness, const MeasuredCell& bounds) {
  Violations found;
  if (thickness.parts.empty() || bounds.parts.empty()) return found;  // a constant network
  const std::vector<double>&values = thickness.values, &errors = thickness.parts.at("error"), &lower = bounds.values,
        &upper = bounds.parts.at("upper"), &gaps = bounds.parts.at("gap");
  std::vector<double> widths;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double slack = kErrors * errors[i] + 1e-9;
    if (!std::isnan(lower[i])) {
      ++found.lower_known;
      found.below_count += values[i] + slack < lower[i] ? 1 : 0;
    }
    if (!std::isnan(upper[i])) {
      ++found.upper_known;
      found.above_count += values[i] - slack > upper[i] ? 1 : 0;
      widths.push_back((upper[i] - lower[i]) / gaps[i]);
    }
  }
  const auto share_of = [](std::int64_t count, std::int64_t known) {
    return known == 0 ? kUndefined : static_cast<double>(count) / static_cast<double>(known);
  };
  found.below = share_of(found.below_count, found.lower_known);
  found.above = share_of(found.above_count, found.upper_known);
  found.width = defined_mean(widths);
  return found;
}

void NetworkViolations::add(std::size_t seed, const Violations& network) {
  if (by_seed.size() <= seed) by_seed.resize(seed + 1);
  by_seed[seed].push_back(network);
}

Value NetworkViolations::mean(double Violations::*which) const {
  std::vector<double> means;
  for (const std::vector<Violations>& networks : by_seed) {
    std::vector<double> numbers;
    for (const Violations& network : networks) numbers.push_back(network.*which);
    means.push_back(defined_mean(numbers));
  }
  return over_seeds(means);
}

std::int64_t NetworkViolations::sum(std::int64_t Violations::*which) const {
  std::int64_t total = 0;
  for (const std::vector<Violations>& networks : by_seed) {
    for (const Violations& network : networks) total += network.*which;
  }
  return total;
}

Finding judge_bounds(const AllViolations& all, double chance) {
  const auto part = [&](const char* name, const Value& share) {
    return share.value == 0 ? ClaimPart{name, Judgement::kHolds} : part_below(name, share, chance);
  };
  const auto counts = [](const NetworkViolations& networks, std::int64_t Violations::*count, std::int64_t Violations::*known) {
    return fmt::format("{} of {}", networks.sum(count), networks.sum(known));
  };
  const Value relu = all.printed_relu.mean(&Violations::below), smooth = all.printed_smooth.mean(&Violations::below),
              above = all.printed_smooth.mean(&Violations::above);
  return found_in({part("the lower bound, ReLU", relu), part("the lower bound, smooth networks", smooth),
                   part("the upper bound, smooth networks", above)},
                  {{"relu_counts", counts(all.printed_relu, &Violations::below_count, &Violations::lower_known)},
                   {"smooth", words(share(smooth))},
                   {"smooth_counts", counts(all.printed_smooth, &Violations::below_count, &Violations::lower_known)},
                   {"above", words(share(above))},
                   {"above_counts", counts(all.printed_smooth, &Violations::above_count, &Violations::upper_known)},
                   {"sound_below", counts(all.sound, &Violations::below_count, &Violations::lower_known)},
                   {"sound_above", counts(all.sound, &Violations::above_count, &Violations::upper_known)},
                   {"chance", fmt::format("{}", chance)}},
                  share(relu));
}

void analyse_bounds(PaperRun& run) {
  AllViolations all;
  for (const auto& rows : run.measured("samples").by_setting()) {
    for (const NamedCall& radius : run.plan.radii) {
      for (const MeasuredRow* row : rows) {
        if (row->words.at("radius") == radius.name) add_row(run, *row, all);
      }
    }
  }
  if (all.printed_relu.by_seed.empty()) {
    if (!run.measured("samples").rows.empty()) run.leave_open("R11", "No network with ReLU counts.");
    return;
  }
  run.judge("R11", judge_bounds(all, run.claim("R11").limits[0]), static_cast<std::int64_t>(all.printed_relu.by_seed.size()));
}

}  // namespace holdfast::experiment::paper::r2et
