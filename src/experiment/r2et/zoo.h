// What all R2ET experiments share: datasets and encodings, methods with their grids of weights, the choice of weights, the
// trained networks, and the paper's numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../reproduce_cells.h"
#include "holdfast/experiment/reproduce.h"
#include "holdfast/experiment/reproduce_statistics.h"

namespace holdfast::r2et {

inline const char* const kPaper =
    "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024 (Robust Ranking Explanations)";

// One dataset in one encoding, with the network and the budgets that go with it.
struct Setting {
  std::string dataset;   // as the paper calls it: "Adult"
  std::string encoding;  // "one-hot", "projected", "one level dropped"; empty where there is but one way
  std::string call;      // of the dataset
  std::string architecture = "mlp(hidden=32)";
  std::string optimizer = "adam";
  double learning_rate = 1e-2;
  std::int64_t batch_size = 256, epochs = 300, short_epochs = 40;
  std::int64_t k = 8, other_k = 0;                   // top_k; a second one that is reported beside it, 0: none
  std::int64_t mm_pairs = 0;                         // pairs of R2ET-mm; 0: k
  double epsilon = 1;                                // l2, in the units of the inputs
  std::int64_t steps = 1000;                         // of er and mse, each of length epsilon / steps
  std::int64_t samples = 300, choice_samples = 150;  // of the test part; of the validation part where weights are chosen
  std::int64_t members = 5;                          // seeds, or folds
  bool tabular = true, folds = false;
  bool choose = true;  // weights are chosen; false: the recipes' defaults

  std::string name() const { return encoding.empty() ? dataset : dataset + ", " + encoding; }
  std::string saliency() const { return encoding == "one-hot" ? "saliency(project=none)" : "saliency"; }
  std::string top_k() const;
  std::string er() const;
  std::string mse() const;
};

enum class Which { kTabularOneHot, kTabular, kTabularFree, kOthers, kAll };
// Those that the scale has; kTabularOneHot is the paper's encoding alone, kTabularFree the two without the one-hot gauge.
std::vector<Setting> settings(const ExperimentContext& context, Which which);
// For the trade-off, without the gauge: the paper's tables, breast_cancer, and German Credit, on which nothing was tried while
// the methods were made.
std::vector<Setting> tradeoff_settings(const ExperimentContext& context);

struct Method {
  std::string name;                          // "R2ET\\H, softplus"
  std::string paper;                         // the row of the paper's tables it is held against; empty: ours
  std::string recipe;                        // name
  std::string options = {};                  // of the recipe, always given: "activation=softplus"
  std::vector<std::string> grid = {};        // weights to choose from, on tables; empty: nothing to choose
  std::vector<std::string> other_grid = {};  // ... on images and graphs
  std::string architecture = {};             // instead of the setting's
  bool tabular_only = false;

  bool is_r2et() const { return paper.rfind("R2ET", 0) == 0; }
  bool is_softplus() const { return options.find("softplus") != std::string::npos || recipe == "sp"; }
};
// The paper's rows, R2ET with softplus as well, and `linear`.
const std::vector<Method>& paper_methods();
// Those and ours.
const std::vector<Method>& all_methods();
const Method& method(const std::string& name);
std::vector<const Method*> methods_for(const Setting& setting, const std::vector<Method>& methods);

// The recipe's call: top k, projection and pairs of the setting where the recipe takes them, and these weights.
std::string recipe_call(const Method& method, const Setting& setting, const std::string& weights);
TrainOptions training(const Setting& setting, const Method& method, const std::string& weights, std::int64_t epochs,
                      std::uint64_t seed);

// One trained network of a method, by seed or fold.
struct Member {
  std::shared_ptr<const ExperimentData> data;
  TrainedModel trained;
};
struct Entry {
  const Method* method = nullptr;
  std::string weights;  // that were chosen; empty: the defaults
  std::vector<Member> members;
};
CellSubject subject_of(const Setting& setting, const Member& member);

// gauntlet, with a third of its effort below full scale.
std::string strong_attack(const ExperimentContext& context);

// With which attack weights are chosen: the highest P@k on the validation samples among those whose AUC there is within kAucLoss
// of Vanilla's, all trained for short_epochs with the first seed; the highest AUC where none is. A map that is zero everywhere
// counts as 0.
enum class Chooser { kEr, kGauntlet };
inline constexpr double kAucLoss = 0.01;
inline const char* const kChoiceRule =
    "weights: highest P@k on validation samples among those with an AUC within 0.01 of Vanilla's, short trainings, first seed";

// The chosen weights of each method, trained with every seed or fold; empty where the dataset is missing.
std::vector<Entry> zoo(ExperimentContext& context, const Setting& setting, const std::vector<Method>& methods, Chooser chooser);
const Entry* find(const std::vector<Entry>& entries, const std::string& name);
Json chosen_weights(const std::vector<Entry>& entries);

// One job for each member, and their results, by entry and member.
using Cells = std::vector<std::vector<Json>>;
Cells compute(ExperimentContext& context, const std::string& label, const std::vector<Entry>& entries,
              const std::function<Job(const Member&)>& job);
// er or mse with the paper's selection (the last iterate that keeps the class), or any attack with the worst.
Job attack_cell(const Setting& setting, const Member& member, const std::string& attack, Select select, std::uint64_t seed);

// A column of a table from the cells of one entry: the values of metric `index`, with chance, between and specific, which is
// (value - between) / (1 - between) of these means: the mean over networks would be that of the one whose between is nearest 1.
Value attacked_value(const std::vector<Json>& cells, std::uint64_t seed, std::size_t index = 0);
// A number in [0, 1], or one a sample, at `key` of each cell.
Value plain_value(const std::vector<Json>& cells, const std::string& key, std::uint64_t seed);
// The last columns of a table of attacked networks: samples behind the means, and those without a ranking (a map that is zero),
// over all networks.
inline const std::vector<std::string> kCounts{"samples", "undefined, left out"};
void add_counts(std::vector<Value>& values, const std::vector<Json>& cells);
// Of the whole test part.
Value test_auc(const Entry& entry);
std::vector<std::vector<double>> metric_values(const std::vector<Json>& cells, const char* field = "values",
                                               std::size_t index = 0);

std::optional<double> published(const std::string& column, const std::string& method, const std::string& dataset);

}  // namespace holdfast::r2et
