// The goal of the trade-off's contest, from its intervals: specific P@8 of the pair hinge under gauntlet above that of every
// published recipe, linear and Vanilla, at an AUC within kGoalLoss of Vanilla's, on five datasets at two radii.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../judging.h"

namespace holdfast::r2et {

inline constexpr double kGoalLoss = 0.003;
inline constexpr std::size_t kGoals = 10;  // datasets times radii

// Weights of a method on short trainings, as they are compared.
struct Tried {
  std::string method;
  double area, specific, between;  // area: AUC; NaN, undefined, is worst
};
// Positions of the best weights of each method, whose weights stand together: the highest `specific` among those with an area of
// at least `least`, of equals the one with the lower between level, which is further from one ranking for all inputs; the highest
// area where none reaches `least`.
std::vector<std::size_t> choose(const std::vector<Tried>& tried, double least);

// Ours against one other: specific P@8 of ours minus the other's, paired by seed. Where maps of all samples are nearly alike
// `specific` is a large negative number that differs wildly from seed to seed, and Student's interval says nothing. So ours is
// also held against the other's numbers raised to 0 where they are negative: what is above these is above the other, too.
struct Other {
  std::string name;
  Value difference = {}, from_zero = {};
};
Other against(const std::string& name, const std::vector<double>& ours, const std::vector<double>& theirs);

// Ours against all others on one dataset at one radius.
struct Standoff {
  std::string dataset;
  double radius;
  Value loss = {};  // AUC of ours minus Vanilla's, paired by seed
  std::vector<Other> others = {};

  // "met": the whole interval is above 0 against each of the others, and the AUC surely within the loss. All must be above, so
  // that each at 95 % is enough. "missed": one of this is surely not so. Else "open".
  std::string outcome() const;
  // The other that decides: the one that is above ours most surely, or else the closest of those that are open, or else the one
  // against which the interval reaches lowest.
  Case deciding() const;
  // Whether all others are surely below and the AUC alone keeps the goal from being met.
  bool hangs_on_auc() const;
  std::string name() const;
};

ResultTable goal_table(const std::vector<Standoff>& standoffs);
// "holds" where all goals are met, "holds in part" where some are, "does not hold" where none is and one is missed.
Verdict judge_ours(const std::vector<Standoff>& standoffs, std::int64_t seeds);

}  // namespace holdfast::r2et
