// The trained networks of an experiment: every method with its chosen weights, several networks of each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cells.h"
#include "plan.h"

namespace holdfast::experiment::paper {

// One trained network, by seed or fold.
struct Member {
  std::shared_ptr<const ExperimentData> data;
  TrainedModel trained;
};

// The networks of one method in one setting.
struct MethodNetworks {
  Method method;
  std::string weights = {};  // that were chosen; empty: the defaults
  std::vector<Member> members = {};
  // Why the networks decide nothing: "no admissible weight", "loses AUC", or "not counted" where the dataset is not. Empty: they
  // count.
  std::string standing = {};

  bool counts() const { return standing.empty(); }
};
const MethodNetworks* find(const std::vector<MethodNetworks>& networks, const std::string& method);

// A network counts only if it works. Where weights are chosen, every network keeps the epoch with the best AUC on the validation
// samples. A weight is admissible where its AUC there, mean over choice_seeds trainings with seeds that are not evaluated later,
// is within kAucLoss of Vanilla's; of these the one with the highest P@k under the choice's attack on validation samples is
// taken. A map that is zero everywhere counts as 0. Without an admissible weight the one with the highest AUC is trained, and the
// row says so. The choice is made with the paper's whole trainings, so that it is the same for all experiments.
inline constexpr double kAucLoss = 0.01;
// A dataset counts where the 95 % interval of every Vanilla network's AUC, over test samples, is above this.
inline constexpr double kLeastAuc = 0.6;
inline constexpr std::uint64_t kChoiceSeeds = 1000;  // seeds of the choice begin this far from those of the evaluation
inline const std::string kNoWeight = "no admissible weight", kLosesAuc = "loses AUC", kNotCounted = "not counted";

// What the AUCs of a dataset's networks say about them: sets every `standing` but that of methods without an admissible weight.
// `vanilla` is the AUC on validation samples that others are held against.
void judge_standing(std::vector<MethodNetworks>& networks, double vanilla);
// One candidate weight of a method: mean AUC and P@k over the choice's seeds.
struct WeightScore {
  std::size_t method;
  std::string weights;
  double area, kept;
};
struct ChosenWeight {
  std::string weights = {};
  bool is_admissible = true;
};
// By method; `least` is the lowest AUC that is admissible.
std::vector<ChosenWeight> best_weights(const std::vector<WeightScore>& scores, std::size_t methods, double least);

// Those of the methods that the setting's kind of data allows.
std::vector<Method> methods_for(const Setting& setting, const std::vector<Method>& methods);
// The recipe's call: top k, projection and pairs of the setting where the recipe takes them, and these weights.
std::string recipe_call(const Method& method, const Setting& setting, const std::string& weights = "");
TrainOptions training(const Setting& setting, const Method& method, const std::string& weights, std::int64_t epochs,
                      std::uint64_t seed);
// `entries` times the setting's members, by entry and member. Members that --seeds adds are trained apart from those that were
// there before: what is trained together is named together, and they are to be found again.
std::vector<std::vector<TrainedModel>> train_members(
    ExperimentContext& context, const ExperimentData& data, const Setting& setting, std::size_t entries,
    const std::function<TrainOptions(std::size_t entry, std::uint64_t member)>& options, const std::string& label);
// The dataset with as many training samples as the setting uses; null where its files are missing.
std::shared_ptr<const ExperimentData> data_of(ExperimentContext& context, const Setting& setting);
// Trains what is missing; empty where the dataset is. `choice` is a name of the paper's choices; empty: nothing is chosen.
std::vector<MethodNetworks> train_networks(ExperimentContext& context, const Paper& paper, const Setting& setting,
                                           const std::vector<Method>& methods, const std::string& choice);

// right_rows of the member; of a network that a plan puts there, the first samples.
SampleRows right_rows_of(const Member& member, std::int64_t count);
// The network on the setting's samples. `samples` is how many, 0: as many as the setting says.
StudiedNetwork subject_of(const Setting& setting, const Member& member, std::int64_t samples = 0);
// How the setting attacks a subject; `select` is "worst" or "last".
PaperAttack attack_of(const Setting& setting, const std::string& attack, const std::vector<std::string>& metrics,
                      const std::string& select);

std::vector<double> test_aucs(const MethodNetworks& networks);
std::vector<double> test_accuracies(const MethodNetworks& networks);
// Share of the first test samples (50, 500 or 2,000 by scale) that PGD (20 steps) on the cross-entropy leaves rightly classified.
std::vector<double> robust_accuracies(ExperimentContext& context, const MethodNetworks& networks, double epsilon);
// Gradient evaluations a sample and training step: a pass to the inputs is one, a pass back through that pass two more. NaN for
// recipes that are not counted.
double gradient_evaluations(const std::string& recipe);

}  // namespace holdfast::experiment::paper
