// The trained networks of an experiment: every method with its chosen weights, several networks of each.
#pragma once

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
};
const MethodNetworks* find(const std::vector<MethodNetworks>& networks, const std::string& method);

// Weights are chosen by the highest P@k under the choice's attack on validation samples, among those whose AUC there is within
// kAucLoss of Vanilla's, all trained for short_epochs with the first seed; the highest AUC where none is. A map that is zero
// everywhere counts as 0.
inline constexpr double kAucLoss = 0.01;

// Those of the methods that the setting's kind of data allows.
std::vector<Method> methods_for(const Setting& setting, const std::vector<Method>& methods);
// The recipe's call: top k, projection and pairs of the setting where the recipe takes them, and these weights.
std::string recipe_call(const Method& method, const Setting& setting, const std::string& weights = "");
TrainOptions training(const Setting& setting, const Method& method, const std::string& weights, std::int64_t epochs,
                      std::uint64_t seed);
// The dataset with as many training samples as the setting uses; null where its files are missing.
std::shared_ptr<const ExperimentData> data_of(ExperimentContext& context, const Setting& setting);
// Trains what is missing; empty where the dataset is. `choice` is a name of the paper's choices; empty: nothing is chosen.
std::vector<MethodNetworks> train_networks(ExperimentContext& context, const Paper& paper, const Setting& setting,
                                           const std::vector<Method>& methods, const std::string& choice);

// The network on the setting's samples. `samples` is how many, 0: as many as the setting says.
StudiedNetwork subject_of(const Setting& setting, const Member& member, std::int64_t samples = 0);
// How the setting attacks a subject; `select` is "worst" or "last".
AttackChoice attack_of(const Setting& setting, const std::string& attack, const std::vector<std::string>& metrics,
                       const std::string& select);

std::vector<double> test_aucs(const MethodNetworks& networks);
std::vector<double> test_accuracies(const MethodNetworks& networks);
// Share of the first test samples (50, 500 or 2,000 by scale) that PGD (20 steps) on the cross-entropy leaves rightly classified.
std::vector<double> robust_accuracies(ExperimentContext& context, const MethodNetworks& networks, double epsilon);
// Gradient evaluations a sample and training step: a pass to the inputs is one, a pass back through that pass two more. NaN for
// recipes that are not counted.
double gradient_evaluations(const std::string& recipe);

}  // namespace holdfast::experiment::paper
