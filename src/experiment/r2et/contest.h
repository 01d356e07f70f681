// The contest of r2et/tradeoff, from its intervals: specific P@8 of the pair hinge under gauntlet above that of every published
// recipe, linear and Vanilla, at an AUC within kGoalLoss of Vanilla's, on five datasets at two radii.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orderings.h"

namespace holdfast::experiment::paper::r2et {

inline constexpr double kGoalLoss = 0.003;
inline constexpr std::size_t kGoals = 10;  // datasets times radii

// Weights of a method on short trainings, as they are compared.
struct CandidateScore {
  std::string method;
  double area, specific, between;  // area: AUC; NaN, undefined, is worst
};
// Positions of the best weights of each method, whose weights stand together: the highest `specific` among those with an area of
// at least `least`. If two tie, the one with the lower between level is taken, whose explanations differ more between samples.
// The highest area where none reaches `least`.
std::vector<std::size_t> choose(const std::vector<CandidateScore>& candidates, double least);

// Ours against one other: specific P@8 of ours minus the other's, paired by seed. Where maps of all samples are nearly alike
// `specific` is a large negative number that differs wildly from seed to seed, and Student's interval says nothing. So ours is
// also held against the other's numbers raised to 0 where they are negative: what is above these is above the other, too.
struct Opponent {
  std::string name;
  Value difference = {}, from_zero = {};

  bool is_below_ours() const;
  bool is_above_ours() const;
  // The difference as it is, unless only the one to the raised numbers shows that ours is above.
  const Value& deciding_difference() const;
};
Opponent compare(const std::string& name, const std::vector<double>& ours, const std::vector<double>& theirs);

enum class Goal { kMet, kMissed, kOpen };
std::string to_string(Goal goal);  // "met", "missed", "open"

// Ours against all others on one dataset at one radius.
struct Contest {
  std::string dataset;
  double radius;
  Value loss = {};  // AUC of ours minus Vanilla's, paired by seed
  std::vector<Opponent> opponents = {};

  // Met: the whole interval is above 0 against each of the others, and the AUC surely within the loss. All must be above, so that
  // each at 95 % is enough. Missed: one of this is surely not so. Else open.
  Goal goal() const;
  // The opponent that decides: the one that is above ours most surely, or else the closest of those that are open, or else the
  // one against which the interval reaches lowest.
  Case deciding() const;
  // Whether all opponents are surely below and the AUC alone keeps the goal from being met.
  bool is_decided_by_auc() const;
  std::string name() const;
};

void add_goals(ResultTable& table, const std::vector<Contest>& contests);
// Holds where all goals are met, in part where some are, does not hold where none is and one is missed.
Finding judge_contests(const std::vector<Contest>& contests);

}  // namespace holdfast::experiment::paper::r2et
