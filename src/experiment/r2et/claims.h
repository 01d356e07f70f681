// How the R2ET experiments come from numbers to verdicts, and what each experiment does beyond its declared tables.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "orderings.h"

namespace holdfast::experiment::paper::r2et {

// Orderings that one sentence is about: "under er".
struct Comparison {
  std::string under;
  std::vector<Ordering> orderings;
};
// R2 (R10): a variant of R2ET is the best of the paper's methods on most datasets. The claim is about the paper's encoding, as
// printed and as coded; it holds in part alone where another encoding, or the accurate methods alone, refute it.
Finding judge_best(const std::vector<Comparison>& groups, std::uint64_t seed);
// R4: the Hessian-only methods gain no more than `gain` over Vanilla.
Finding judge_hessian_only(const Comparison& group, double gain, std::uint64_t seed);

// Claims of table 1 that its orderings decide: P@k under er and under mse, datasets in the same order.
// R1: er moves rankings more than mse, and more than half of the models keep `limit` under mse. The paper's 69 models: its
// methods on its datasets, R2ET with ReLU.
Finding judge_mse(const std::vector<Ordering>& er, const std::vector<Ordering>& mse, double limit, std::uint64_t seed);
// R3: few features are those of tables, many those of images and graphs.
Finding judge_hessian_term(const std::vector<Ordering>& er);
// R7's first half, read twice: AT's P@k is below Vanilla's on some datasets (two: one of seven may be chance), and it differs
// from seed to seed more than R2ET\H's.
Finding judge_unstable(const std::vector<Ordering>& er, std::uint64_t seed);
// R13: the share of pairs of samples in which the map that moved less in l2 lost more of its top features, by dataset: it holds
// above the second limit, and in part above the first.
Finding judge_l2(const std::vector<Case>& datasets, double some, double much);
// R5: are the methods that may be the best (P@k not surely below the highest) among the thickest, within `alike`?
Finding judge_thickest(const std::vector<Ordering>& robust, const std::vector<Ordering>& thick, double alike, std::uint64_t seed);

// Tables as in the paper; removing by zero as in the paper, and by resampling.
struct FaithfulCounts {
  Tally zero, zero_softplus, resampled, resampled_softplus;  // against the mean of the other methods; with ReLU, with softplus
  Tally vanilla;                                             // by zero, with ReLU, against Vanilla

  Tally& of(bool by_zero, bool softplus);
  // The R2ET variants of a dataset by one column; as faithful is no more than `margin` worse.
  void add(const std::vector<const paper::MeasuredRow*>& rows, std::size_t column, bool higher_is_better, bool by_zero,
           double margin);
  std::vector<ClaimPart> parts() const;
};

struct RetrainingFindings {
  // One case for each dataset: P@8 of retrained R2ET\H minus the paper's; its share of the starting network's top 8.
  std::vector<Case> reached = {}, kept = {};
  std::vector<Case> hessian_on_bank = {};  // gain of Exact-H and SSR over the starting network
};
// Three parts: it reaches the paper's numbers within the first limit, it keeps the ranking above the second, and the Hessian-only
// methods gain less than the third on Bank.
Finding judge_retraining(const RetrainingFindings& found, const std::vector<double>& limits);

// Spearman's correlations of the first swap on one dataset.
struct SwapCorrelations {
  // The networks of one seed, one for each method, where both correlations are defined.
  struct Network {
    std::vector<double> thickness = {}, flatness = {}, difference = {};
    std::int64_t undefined = 0;

    void add(double with_thickness, double with_flatness);
  };
  Setting setting;
  std::vector<Network> networks;

  // Mean over methods, then over seeds.
  Value mean(std::vector<double> Network::*which) const;
};
// R6: the correlation with thickness is above `correlates`, and `clear` above that with flatness. Means over datasets with the
// tables as in the paper, where a dataset that is surely the other way leaves it in part.
Finding judge_swaps(const std::vector<SwapCorrelations>& datasets, double correlates, double clear);

struct StrokeShares {
  std::map<std::string, std::vector<double>> above_chance = {};  // by method and network
  double chance = 0;
};
// R12 in two parts: R2ET's top pixels are on the strokes more than Vanilla's, and Vanilla's hardly more than by chance.
Finding judge_strokes(const StrokeShares& shares, double visible);

// AT against one form of R2ET, by dataset and round: a step with one attack iteration, and what each iteration adds.
struct CostOfAt {
  std::string method = {};
  std::vector<Case> step = {}, iteration = {};  // in steps of R2ET
};
// R7's second half: with T iterations AT costs at least T steps of R2ET where each costs at least one. Cheaper at all: a step of
// AT with its one iteration costs more.
Finding judge_cost(const std::vector<CostOfAt>& compared, double limit);

// How many samples of one network lie outside the bounds, as shares and as numbers.
struct Violations {
  double below = kUndefined, above = kUndefined;  // NaN where the bound is not known for any sample
  double width = kUndefined;                      // upper minus lower, over the gap
  std::int64_t below_count = 0, above_count = 0, lower_known = 0, upper_known = 0;
};
// A violation is one beyond four standard errors of the measured thickness.
Violations violations_of(const MeasuredCell& thickness, const MeasuredCell& bounds);

// Networks by seed, of one method or of all.
struct NetworkViolations {
  std::vector<std::vector<Violations>> by_seed = {};

  void add(std::size_t seed, const Violations& network);
  // Mean over a seed's networks, then over seeds.
  Value mean(double Violations::*which) const;
  std::int64_t sum(std::int64_t Violations::*which) const;
};

struct AllViolations {
  NetworkViolations printed_relu, printed_smooth, sound;
};
// A proposition is about every sample: a share that is surely more than chance's refutes it. In parts: the lower bound with ReLU
// and with smooth networks, and the upper bound.
Finding judge_bounds(const AllViolations& all, double chance);

// One function an experiment: configs/r2et/NAME.toml names it.
void analyse_table1(PaperRun& run);
void analyse_table2(PaperRun& run);
void analyse_table3(PaperRun& run);
void analyse_table4(PaperRun& run);
void analyse_fig3(PaperRun& run);
void analyse_fig4(PaperRun& run);
void analyse_explainers(PaperRun& run);
void analyse_cost(PaperRun& run);
void analyse_bounds(PaperRun& run);
void analyse_gauge(PaperRun& run);
void analyse_beyond(PaperRun& run);
void analyse_specific(PaperRun& run);
void analyse_regime(PaperRun& run);
void analyse_valid_rows(PaperRun& run);

}  // namespace holdfast::experiment::paper::r2et
