// The LENS paper's datasets with their networks, trainings, attacks and measures, at each scale.
//
//     scale   networks                                   trainings                                              seeds
//     quick   a small cnn_chen, images of 32 pixels      30 to 100 steps                                        1
//     cpu     cnn_chen(width=16x32x256); 32 pixels       4,000 steps (Flower 600), 7 x 5 inner, 10 outer points 3
//     full    the paper's                                the paper's                                            3
// Every method is trained for the same number of steps on one dataset, but for natural training on digits at `full` (25,000).
// Shorter inner maximisations take longer steps: 2.5 epsilon over their number, and epsilon rises over the first 30 % of the
// training; `full` has neither. A step of IG-SUM-NORM is 135 gradient evaluations a sample at `cpu`, so that batches are small
// there: 10 digits, 12 flowers.
#pragma once

#include <string>
#include <vector>

#include "holdfast/experiment/reproduce.h"

namespace holdfast::lens {

struct Setting {
  std::string name;          // as in tables
  std::string dataset;       // call
  std::string architecture;  // call
  std::string preset;        // of the objectives
  double epsilon = 0;        // l_inf, inputs in [0, 1]
  double step_size = 0;      // of attacks
  std::int64_t iterations = 0;
  std::int64_t t = 0, k = 0;    // features that attacks aim at, and that metrics compare
  std::int64_t path_steps = 0;  // of integrated gradients
  std::int64_t images = 0;
  std::int64_t diversity = 1;  // radius of diverse sets
  // Of trainings; no steps where the weights are published. As many whole epochs are trained as come nearest to the steps.
  std::int64_t training_images = 0, batch_size = 50, steps = 0;
  std::int64_t natural_steps = 0;  // of natural training; 0: as many
  std::string optimizer = "adam", schedule = "constant";
  double learning_rate = 1e-3, weight_decay = 0;
};

// "mnist", "fashion_mnist", "gtsrb", "flower" or "imagenet" (SqueezeNet, published weights).
Setting setting(const ExperimentContext& context, const std::string& name);
Json to_json(const Setting& setting);
// For measures that are attacked each on its own, by gauntlet: fewer images, and below `full` fewer and longer steps, fewer path
// points.
void lighten(const ExperimentContext& context, Setting& setting);

// The dataset with as many training samples as the setting uses; null where its files are missing.
std::shared_ptr<const ExperimentData> data_of(ExperimentContext& context, const Setting& setting);
// `images` test samples, spread over all of them: some datasets lie in the order of their classes.
std::vector<std::int64_t> rows_of(const ExperimentData& data, const Setting& setting);

// A trained or published network, one for each seed.
struct Subject {
  std::string training;  // "natural", "pgd", "ig_sum_norm", "steady_map", "steady_map(weight=2)"
  std::vector<TrainedModel> seeds;
};
// Trains what is missing; one Subject for each of `trainings`.
std::vector<Subject> subjects(ExperimentContext& context, const Setting& setting, const ExperimentData& data,
                              const std::vector<std::string>& trainings);
// Published weights as a Subject of one seed: ARCHITECTURE:pretrained, or what load_model takes.
Subject published(const ExperimentContext& context, const std::string& training, const std::string& model);

// A dataset that is there, with its networks.
struct DatasetCase {
  Setting setting;
  std::shared_ptr<const ExperimentData> data;
  std::vector<Subject> subjects = {};    // one for each training, in their order
  std::vector<std::size_t> groups = {};  // of each subject in the experiment's plan, where it has but one
};
// Settings and recipes go to `record`, by the dataset's name; what is missing is left out.
std::vector<DatasetCase> trained_cases(ExperimentContext& context, const std::vector<Setting>& settings,
                                       const std::vector<std::string>& trainings, Json& record);

// The recipe that a method is trained with, and its gradient evaluations a sample and step: a pass to the inputs is one, a pass
// back through that pass two more. A training with options, as "steady_map(weight=2)", is the method's recipe with these changed;
// another number of inner steps goes as far as before, unless it has its own step size.
std::string recipe_of(const ExperimentContext& context, const Setting& setting, const std::string& training);
double evaluations_of(const std::string& recipe);

std::string integrated_gradients(const Setting& setting);
std::string saliency();

// Calls of the paper's attacks in this setting.
std::string top_t(const Setting& setting);
std::string mass_center(const Setting& setting);
std::string random_sign(const Setting& setting);
std::string lens_objective(const Setting& setting);

// Calls of measures.
std::string top_k(const Setting& setting);
std::string precision(const Setting& setting, std::int64_t w);
std::string recall(const Setting& setting, std::int64_t w);
std::string precision_div(const Setting& setting, std::int64_t w);
std::string recall_div(const Setting& setting, std::int64_t w);
std::string top_k_div(const Setting& setting);
// All of the above that any experiment shows, and the rank correlations: a cell is measured once, for all of them.
std::vector<std::string> measures(const Setting& setting);

}  // namespace holdfast::lens
