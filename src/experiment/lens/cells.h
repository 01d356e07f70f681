// Attacked samples and their measures: what the tables and figures of the LENS experiments are made of.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "holdfast/experiment/reproduce.h"
#include "setting.h"

namespace holdfast::lens {

// One network, explainer and attack over some samples.
struct Attacked {
  const TrainedModel* model = nullptr;
  const ExperimentData* data = nullptr;
  std::vector<std::int64_t> rows;
  std::string explainer, attack;   // calls
  double epsilon = 0;              // l_inf; the box is [0, 1]
  std::string select = "kendall";  // the metric whose worst iterate is kept: the authors' code takes the lowest Kendall
  std::vector<std::string> measures;
};

// What a clean map alone says about a measure.
struct Levels {
  double chance = 0, between = 0;  // NaN where there is none
};

struct Measured {
  std::map<std::string, std::vector<double>> values;  // by measure, one a row; NaN: misclassified, left out
  std::map<std::string, Levels> levels;
  std::int64_t excluded = 0;  // misclassified
  double evaluations = 0;     // gradient evaluations a sample
};

// The seeds of one subject.
using Group = std::vector<Measured>;

// Samples to attack, and how many were passed over for them because the network misclassifies them.
struct Chosen {
  std::vector<std::int64_t> rows;
  std::int64_t passed_over = 0;
};
// The first `wanted` test samples (all, where there is no split) that a published network classifies rightly, or as many as there
// are: nothing is learnt from attacking the others.
Chosen right_rows(const Subject& subject, const ExperimentData& data, std::int64_t wanted);

// Cells are added first and measured together: they are cut into pieces of a few samples, which run side by side and are kept.
class Plan {
 public:
  // `like` for every seed of the subject; returns the position of its group. Subject and data must outlive the plan.
  std::size_t add(const Subject& subject, const ExperimentData& data, const Attacked& like);
  std::vector<Group> run(ExperimentContext& context, const std::string& label) const;

 private:
  std::vector<std::vector<Attacked>> groups_;
};

// The mean with its interval over seeds (samples for one seed), and its levels.
Value value_of(const Group& group, const std::string& measure, std::uint64_t seed);
// (v - chance) / (1 - chance), mean over the samples.
Value adjusted_of(const Group& group, const std::string& measure, std::uint64_t seed);
// first - second. Intervals are kept inside what is possible: differences of shares in [-1, 1].
Value difference_of(const Group& first, const std::string& first_measure, const Group& second, const std::string& second_measure,
                    std::uint64_t seed);
// What `local` says more than `plain` does of the same attacked samples: as they are, with the chance level of each taken out,
// and with its level between samples taken out.
Value gain_of(const Group& group, const std::string& local, const std::string& plain, std::uint64_t seed);
Value adjusted_gain_of(const Group& group, const std::string& local, const std::string& plain, std::uint64_t seed);
Value specific_gain_of(const Group& group, const std::string& local, const std::string& plain, std::uint64_t seed);
// How much more `local` adds to `plain` in the first than in the second, which have the same samples.
Value gain_lead_of(const Group& first, const Group& second, const std::string& local, const std::string& plain,
                   std::uint64_t seed);
// The mean of `over` divided by that of `under`, with Student's interval over seeds; one seed has none.
Value ratio_of(const Group& group, const std::string& over, const std::string& under);
// Every value with the chance level taken out, by seed.
std::vector<std::vector<double>> above_chance(const Group& group, const std::string& measure);
// Values by cell, each of the same samples: averaged over the cells for each sample first, because a sample's cells are not
// independent, then the mean over samples with its bootstrap interval.
Value mean_of_samples(const std::vector<std::vector<double>>& by_cell, std::uint64_t seed);
// Share of the samples whose value is below a limit, over seeds; one seed: with its exact interval over samples.
Value share_below(const Group& group, const std::string& measure, double limit);
std::int64_t excluded_of(const Group& group);
// The last columns of a table of cells, and their values: samples behind the means and samples left out, over all seeds.
inline const std::vector<std::string> kCounts{"samples judged", "misclassified, left out"};
void add_counts(std::vector<Value>& values, const Group& group, std::int64_t passed_over = 0);

// Share of the first test samples (50, 500 or 2,000 by scale) that PGD (20 steps) on the cross-entropy leaves rightly classified;
// one a seed.
std::vector<double> robust_accuracies(ExperimentContext& context, const Subject& subject, const ExperimentData& data,
                                      const Setting& setting);
// The measure's level between samples, one a seed.
std::vector<double> between_of(const Group& group, const std::string& measure);
// first - second of shares, one a seed, paired.
Value share_difference(const std::vector<double>& first, const std::vector<double>& second);
// Accuracy of the test samples: one a seed, and over seeds.
std::vector<double> accuracies(const Subject& subject);
Value accuracy_of(const Subject& subject);

}  // namespace holdfast::lens
