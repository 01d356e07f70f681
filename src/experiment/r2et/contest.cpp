#include "contest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holdfast::experiment::paper::r2et {
namespace {

double end_of(const Value& value, const std::optional<double>& end) {
  return std::isnan(value.value) ? std::numeric_limits<double>::infinity() : end.value_or(value.value);
}

// "COMPAS at 0.1: AUC minus Vanilla's 0.001 [-0.001, 0.003]; 15 of 16 others are surely below; open: SP 0.020 [-0.010, 0.050]."
std::string in_words(const Contest& contest) {
  std::vector<Case> above, open;
  std::size_t raised = 0;
  for (const Opponent& other : contest.opponents) {
    raised += other.is_below_ours() && !surely_above(other.difference, 0) ? 1 : 0;
    if (other.is_above_ours()) {
      above.push_back({other.name, other.difference});
    } else if (!other.is_below_ours()) {
      open.push_back({other.name, other.deciding_difference()});
    }
  }
  const std::size_t all = contest.opponents.size(), below = all - above.size() - open.size();
  // The loss is compared with .003: three digits would hide which side it is on.
  std::string text = fmt::format("{}: AUC minus Vanilla's {}; {} of {} others are surely below", contest.name(),
                                 words(contest.loss, 4), below, all);
  if (raised > 0) text += fmt::format(", {} of them only with their negative numbers raised to 0", raised);
  if (!above.empty()) text += fmt::format("; surely above: {}", words(above));
  if (!open.empty()) text += fmt::format("; open: {}", words(open));
  return text + ".";
}

}  // namespace

std::vector<std::size_t> choose(const std::vector<CandidateScore>& candidates, double least) {
  const auto score = [&](const CandidateScore& one) {
    const bool within = one.area >= least;
    const double specific = std::isnan(one.specific) ? -std::numeric_limits<double>::infinity() : one.specific;
    return std::tuple(within, within ? specific : one.area, std::isnan(one.between) ? -1 : -one.between);
  };
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (chosen.empty() || candidates[chosen.back()].method != candidates[i].method) {
      chosen.push_back(i);
    } else if (score(candidates[i]) > score(candidates[chosen.back()])) {
      chosen.back() = i;
    }
  }
  return chosen;
}

bool Opponent::is_below_ours() const {
  return surely_above(difference, 0) || surely_above(from_zero, 0);
}

bool Opponent::is_above_ours() const {
  return surely_below(difference, 0);
}

const Value& Opponent::deciding_difference() const {
  return is_below_ours() && !surely_above(difference, 0) ? from_zero : difference;
}

Opponent compare(const std::string& name, const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> raised = theirs;
  for (double& value : raised) value = value < 0 ? 0 : value;
  return {.name = name, .difference = difference_over_seeds(ours, theirs), .from_zero = difference_over_seeds(ours, raised)};
}

std::string to_string(Goal goal) {
  return goal == Goal::kMet ? "met" : goal == Goal::kMissed ? "missed" : "open";
}

Goal Contest::goal() const {
  if (std::ranges::any_of(opponents, &Opponent::is_above_ours) || surely_below(loss, -kGoalLoss)) return Goal::kMissed;
  const bool is_met = std::ranges::all_of(opponents, &Opponent::is_below_ours) && surely_above(loss, -kGoalLoss);
  return is_met ? Goal::kMet : Goal::kOpen;
}

Case Contest::deciding() const {
  // First those that are surely above ours, by the surest; then those that are open, by their means; then the others.
  const auto order = [](const Opponent& other) {
    const Value& value = other.deciding_difference();
    if (other.is_above_ours()) return std::pair(0, end_of(value, value.high));
    return other.is_below_ours() ? std::pair(2, end_of(value, value.low)) : std::pair(1, end_of(value, value.value));
  };
  const auto first = std::ranges::min_element(opponents, {}, order);
  return {first->name, first->deciding_difference()};
}

bool Contest::is_decided_by_auc() const {
  return goal() != Goal::kMet && std::ranges::all_of(opponents, &Opponent::is_below_ours);
}

std::string Contest::name() const {
  return fmt::format("{} at {}", dataset, radius);
}

void add_goals(ResultTable& table, const std::vector<Contest>& contests) {
  for (const Contest& one : contests) {
    const auto count = [&](bool (Opponent::*which)() const) {
      return Value{.value = static_cast<double>(std::ranges::count_if(one.opponents, which))};
    };
    const Case deciding = one.deciding();
    table.add({one.dataset, fmt::format("{}", one.radius), to_string(one.goal()),
               one.is_decided_by_auc() ? "none: the AUC" : deciding.name},
              {deciding.value,
               one.loss,
               count(&Opponent::is_below_ours),
               count(&Opponent::is_above_ours),
               {.value = static_cast<double>(one.opponents.size())}});
  }
}

Finding judge_contests(const std::vector<Contest>& contests) {
  const Contest& furthest = *std::ranges::min_element(contests, {}, [](const Contest& one) {
    const Value value = one.deciding().value;
    return std::pair(one.goal() == Goal::kMissed ? 0 : one.goal() == Goal::kOpen ? 1 : 2, end_of(value, value.low));
  });
  std::vector<std::string> met, missed, open, all;
  for (const Contest& one : contests) {
    (one.goal() == Goal::kMet ? met : one.goal() == Goal::kMissed ? missed : open).push_back(one.name());
    all.push_back(in_words(one));
  }
  const auto named = [](const std::vector<std::string>& names) {
    return names.empty() ? std::string("nowhere") : fmt::format("on {}", fmt::join(names, ", "));
  };
  const bool by_auc = furthest.is_decided_by_auc();
  const Case deciding = by_auc ? Case{"Vanilla", furthest.loss} : furthest.deciding();
  return {met.size() >= kGoals ? Judgement::kHolds
          : missed.empty()     ? Judgement::kNotDecided
          : met.empty()        ? Judgement::kDoesNotHold
                               : Judgement::kHoldsInPart,
          {{"number", by_auc ? "AUC" : "specific P@8"},
           {"deciding", deciding.name},
           {"furthest", furthest.name()},
           {"met", named(met)},
           {"missed", named(missed)},
           {"open", named(open)},
           {"all", fmt::format("{}", fmt::join(all, " "))}},
          deciding.value,
          {},
          met.size() < kGoals && missed.empty() && furthest.goal() == Goal::kOpen
              ? what_decides(deciding.value, by_auc ? -kGoalLoss : 0)
              : ""};
}

}  // namespace holdfast::experiment::paper::r2et
