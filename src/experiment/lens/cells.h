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
// All values of all seeds, one after the other.
std::vector<double> pooled(const Group& group, const std::string& measure);
std::int64_t excluded_of(const Group& group);

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
Verdict verdict(const std::string& claim, const std::string& says, const std::string& verdict, const std::string& why,
                const Value& number, std::int64_t seeds);

// "0.412 [0.38, 0.44]".
std::string words(const Value& value);

}  // namespace holdfast::lens
