// Cells of experiments: one trained network whose explanations are attacked, or around whose samples something is measured. All
// calls of the grid, explain_all and measure_all of the papers' experiments are in cells.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/experiment/grid.h"
#include "holdfast/experiment/reproduce.h"

namespace holdfast::experiment::paper {

inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// Samples of a dataset.
struct SampleRows {
  std::vector<std::int64_t> positions = {};
  std::string words = {};        // "first 100 of test": part of a cell's key
  std::int64_t passed_over = 0;  // samples that were left out because the network misclassifies them
};
SampleRows first_rows(const Dataset& dataset, const std::string& part, std::int64_t count);
// Takes test samples (samples of all, where there is no split) that are spread evenly: some datasets lie in the order of their
// classes.
SampleRows spread_rows(const Dataset& dataset, std::int64_t count);
// The first test samples of each class, equally many, in the order of the dataset.
SampleRows class_rows(const Dataset& dataset, std::int64_t count);
// The first of these samples that the network classifies rightly: nothing is learnt from attacking the others.
SampleRows right_rows(const Model& model, const Dataset& dataset, std::int64_t count);

// Which network is explained, and on what.
struct StudiedNetwork {
  LateModel model;
  std::string key;  // of the model: all that decides its weights
  std::shared_ptr<const ExperimentData> data;
  std::string explainer;
  SampleRows rows;
  // The label's class is explained, and misclassified samples are left out; else the predicted class of every sample is.
  bool explains_labels = false;
  std::string structure = {};  // TrainedModel's
};

struct PaperAttack {
  std::string attack;
  std::string aim;                   // the metric that the attack lowers; empty: the first of `metrics`
  std::vector<std::string> metrics;  // all are measured where the attack ended
  Norm norm = Norm::kL2;
  double epsilon = 1;
  std::optional<std::pair<double, double>> box = {};
  Select select = Select::kWorst;
  bool random_points = false;                 // beside the attack
  bool valid = false;                         // perturbed rows are valid rows
  std::optional<std::int64_t> switches = {};  // categories that may take another level

  Threat threat() const;
};

// What one metric says of the attacked samples of one network.
struct MetricNumbers {
  std::string metric;                  // canonical call
  std::vector<double> values, chance;  // one a sample; NaN where undefined or left out
  double between = kUndefined;
  std::int64_t distinct_top_sets = 0;
  double tied = kUndefined;  // share of the samples whose top set equal values decide, before or after the attack
  // NaN but for the top sets of vectors and tables whose predictions are explained.
  double effective_sets = kUndefined, own_advantage = kUndefined;
};

struct AttackedCell {
  std::vector<MetricNumbers> metrics;
  std::vector<std::int64_t> first_swap = {};  // one a sample
  std::vector<double> sensitivity = {};       // one a sample
  std::vector<double> random = {};            // what random points leave of the aim, one a sample; empty: not asked for
  double flipped = 0;                         // share of the samples whose class flipped on the way
  double auc = kUndefined, attacked_auc = kUndefined;
  std::int64_t left_out = 0;  // misclassified samples

  const MetricNumbers& of(const std::string& metric) const;  // by any call that means the metric
};
void to_json(Json& json, const AttackedCell& cell);
void from_json(const Json& json, AttackedCell& cell);

struct MeasuredCell {
  std::vector<double> values;                        // one a sample
  std::map<std::string, std::vector<double>> parts;  // "error" and the like
};
void to_json(Json& json, const MeasuredCell& cell);
void from_json(const Json& json, MeasuredCell& cell);

// Cells are added first and computed together, side by side; finished ones are kept. A cell whose labels are explained is cut
// into pieces of a few samples, because its networks are large.
class CellBatch {
 public:
  explicit CellBatch(std::uint64_t seed) : seed_(seed) {}

  std::size_t attack(const StudiedNetwork& subject, const PaperAttack& choice);
  // `epsilon` is the radius of measures that name none.
  std::size_t measure(const StudiedNetwork& subject, const std::string& measure, double epsilon);
  void run(ExperimentContext& context, const std::string& label);

  // The results after `run`, by the number that `attack` or `measure` returned.
  const AttackedCell& attacked(std::size_t cell) const { return attacked_.at(cell); }
  const MeasuredCell& measured(std::size_t cell) const { return measured_.at(cell); }

 private:
  struct Attack {
    StudiedNetwork subject;
    PaperAttack choice;
  };
  std::uint64_t seed_;
  std::vector<Attack> attacks_;
  std::vector<Job<MeasuredCell>> measures_;
  std::vector<AttackedCell> attacked_;
  std::vector<MeasuredCell> measured_;
};

// The attack itself with its maps, for pictures: one sample a tile.
CellResult attack_maps(const StudiedNetwork& subject, const PaperAttack& choice, std::uint64_t seed, int threads);
// Maps of the clean samples; their schema is the dataset's.
MapBatch clean_maps(const StudiedNetwork& subject, std::uint64_t seed, int threads);
at::Tensor inputs_of(const StudiedNetwork& subject);

}  // namespace holdfast::experiment::paper
