// A setting: one dataset in one encoding, with the network, the training and the budgets that go with it at one scale. Settings
// are written in TOML (configs/r2et/paper.toml); a field has one value, or three: at quick, cpu and full scale.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "holdfast/core/config.h"
#include "holdfast/experiment/reproduce.h"

namespace holdfast::experiment::paper {

// Words by name, for the places that a text leaves open: "top_k(k={k})".
using Words = std::map<std::string, std::string>;
// Throws kUsage for a name that is not known.
std::string fill(const std::string& text, const Words& words);

struct Setting {
  std::string name;                    // as in tables: "Adult, one-hot"
  std::string dataset;                 // as the paper calls it: "Adult"
  std::string encoding = {};           // "one-hot", "projected", "one level dropped"; empty where there is but one way
  std::string kind = "table";          // or "image", "graph"
  std::string data = {};               // call of the dataset
  std::vector<std::string> tags = {};  // by which experiments choose settings, beside names, datasets and kinds

  // The network and its training. A setting trains for `epochs`, or for the whole epochs that come nearest to `training_steps`.
  std::string architecture = "mlp(hidden=32)", optimizer = "adam", schedule = "constant", preset = {};
  std::string augmentation = "none", precision = "float32";
  std::string model = {};     // published weights instead of a training
  std::string training = {};  // what their training is called
  double learning_rate = 1e-2, weight_decay = std::numeric_limits<double>::quiet_NaN();  // NaN: the recipe's
  std::int64_t batch_size = 256, epochs = 0, short_epochs = 0, training_steps = 0, natural_steps = 0, training_samples = 0;
  std::int64_t members = 1;           // networks of each method
  std::int64_t first_members = 0;     // of them, those of the file; the others were added by --seeds. 0: all
  std::string members_are = "seeds";  // or "folds"
  std::string weights = "chosen";     // from a method's grid; "first": the first of the grid
  std::string kept_epoch = "best";    // by AUC on validation samples, where weights are chosen; or "last"
  std::int64_t patience = 0;          // epochs without a better AUC after which a training ends; 0: never
  std::string inner = {}, path = {};  // options of the objectives that attack while they train
  std::int64_t long_steps = 0;        // of pgd_long
  double long_step_size = 0;

  // What is explained and attacked.
  std::string explainer = "saliency";
  std::string samples_are = "first";      // of the test part; "spread" over it; "right": the first that are classified rightly;
                                          // "classes": the first of each class, equally many
  std::string explained = "predictions";  // or "labels": misclassified samples are left out
  std::int64_t choice_seeds = 5;          // trainings of each weight that is tried
  std::int64_t samples = 0, choice_samples = 0;  // choice_samples: of the validation part, where weights are chosen
  std::string norm = "l2", box = {};             // box: "unit" for [0, 1]
  double epsilon = 1, step_size = 0;
  std::int64_t steps = 0;           // of attacks
  std::int64_t k = 8, other_k = 0;  // features compared; a second number that is reported beside it
  std::int64_t valid_k = 0;  // features compared where valid_effect explains: one for each feature of the table, not column
  std::int64_t pairs = 0;    // of R2ET-mm; 0: k
  std::int64_t t = 0, path_steps = 0, diversity = 1;
  // Words and numbers that single experiments put into their calls.
  std::string strong = {}, strong_choice = {}, thickness = {}, curvature = "curvature", project = {}, smoothing = {};
  std::int64_t thickness_samples = 0, curvature_samples = 0, strong_samples = 0;
  std::int64_t explainer_steps = 0, explainer_points = 0, explainer_samples = 0;

  bool is_table() const { return kind == "table"; }
  // Whether one of these is its name, dataset, encoding, kind or a tag.
  bool is_one_of(const std::vector<std::string>& selectors) const;
  Words words() const;  // every field
  std::string fill(const std::string& text) const { return paper::fill(text, words()); }
};

// `table` is read over `base`. Every field may be given.
Setting read_setting(const ConfigTable& table, Setting base, Scale scale);
// For results: what is attacked and how, and the training.
Json settings_json(const Setting& setting);

// A text or a list of three, by scale.
std::string text_by_scale(const ConfigTable& table, const std::string& key, Scale scale, const std::string& fallback);

}  // namespace holdfast::experiment::paper
