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
// first - second.
Value difference_of(const Group& first, const std::string& first_measure, const Group& second, const std::string& second_measure,
                    std::uint64_t seed);
// What `local` says more than `plain` does of the same attacked samples: as they are, with the chance level of each taken out,
// and with its level between samples taken out.
Value gain_of(const Group& group, const std::string& local, const std::string& plain, std::uint64_t seed);
Value adjusted_gain_of(const Group& group, const std::string& local, const std::string& plain, std::uint64_t seed);
Value specific_gain_of(const Group& group, const std::string& local, const std::string& plain, std::uint64_t seed);
// The mean of `over` divided by that of `under`, with Student's interval over seeds; one seed has none.
Value ratio_of(const Group& group, const std::string& over, const std::string& under);
// Every value with the chance level taken out, by seed.
std::vector<std::vector<double>> above_chance(const Group& group, const std::string& measure);
// Values by cell, each of the same samples: averaged over the cells for each sample first, because a sample's cells are not
// independent, then the mean over samples with its bootstrap interval.
Value mean_of_samples(const std::vector<std::vector<double>>& by_cell, std::uint64_t seed);
// All values of all seeds, one after the other.
std::vector<double> pooled(const Group& group, const std::string& measure);
// Share of the values below a limit, with its exact 95 % interval; undefined ones are left out.
Value share_below(const std::vector<double>& values, double limit);
std::int64_t excluded_of(const Group& group);
// The last columns of a table of cells, and their values: samples behind the means and samples left out, over all seeds.
inline const std::vector<std::string> kCounts{"samples judged", "misclassified, left out"};
void add_counts(std::vector<Value>& values, const Group& group, std::int64_t passed_over = 0);

// Share of the first test samples (50, 500 or 2,000 by scale) that PGD (20 steps) on the cross-entropy leaves rightly classified;
// one a seed.
std::vector<double> robust_accuracies(ExperimentContext& context, const Subject& subject, const ExperimentData& data,
                                      const Setting& setting);
// Accuracy of the test samples: one a seed, and over seeds.
std::vector<double> accuracies(const Subject& subject);
Value accuracy_of(const Subject& subject);

// "holds" where the whole interval is on the right side of `limit`, "does not hold" where it is on the wrong side, else "holds in
// part".
std::string judged(const Value& value, double limit);
// Several together: "holds" where all do, "does not hold" where none does even in part; undefined ones are left out.
std::string judged_all(const std::vector<Value>& values, double limit);
// The same for a mean over cases that stands for all of them: it holds whole only where every one is on the right side.
std::string judged_everywhere(const Value& mean, double limit, std::size_t right, std::size_t all);
// "holds" where it was shown in all cases, "holds in part" in some, "does not hold" in none; "not decided" without cases.
std::string by_count(std::size_t shown, std::size_t all);
// Does the whole interval lie above `limit`, or below it? A number without an interval is taken as it is.
bool above(const Value& value, double limit);
bool below(const Value& value, double limit);
// For a claim that can be read in several ways: "holds" where all are wholly below `limit`, "does not hold" where all are wholly
// above, else "not decided".
std::string all_on_one_side(const std::vector<Value>& values, double limit);
// A value and what it is of.
struct Named {
  std::string name;
  Value value;
};
// The one whose interval reaches lowest; undefined ones are passed over. Null where there is none.
const Named* lowest_of(const std::vector<Named>& all);
std::string words(const std::vector<Named>& all);  // "NAME: 0.412 [0.38, 0.44]. NAME: ..."
// first - second of values that have nothing in common: the ends' distances add as squares.
Value independent_difference(const Value& first, const Value& second);
// The why's last blanks go: it is often put together of sentences.
Verdict verdict(const std::string& claim, const std::string& says, const std::string& verdict, const std::string& why,
                const Value& number, std::int64_t seeds);

// A claim that every one of the differences is above 0: judged by how many are with their whole interval. The number is the one
// whose interval reaches lowest; the why names it, says `what` was subtracted, has `also`, and all differences.
Verdict all_above_zero(const std::string& claim, const std::string& says, const std::string& what,
                       const std::vector<Named>& differences, const std::string& also, std::int64_t seeds);
// "Test accuracy on mnist: natural 0.984 [0.981, 0.987], pgd ...".
std::string accuracies_in_words(const Case& one);

// "0.412 [0.38, 0.44]".
std::string words(const Value& value);

}  // namespace holdfast::lens
