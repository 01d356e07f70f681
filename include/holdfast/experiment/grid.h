// A grid: models x explainers x metrics x attacks x epsilons over samples, and measures beside them. `attack` runs a grid of one
// cell, `audit` one of many, `reproduce` several, Python the same.
//
//     for (const Cell& cell : make_cells(subject, trial, seed)) rows.push_back(grid.run(cell, &progress));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/experiment/cell.h"
#include "holdfast/experiment/own_advantage.h"
#include "holdfast/experiment/subject.h"
#include "holdfast/measure/measure.h"

namespace holdfast::experiment {

// What is done to the samples of one dataset.
struct Trial {
  std::vector<std::string> explainers{"saliency"};
  std::vector<std::string> attacks{"gauntlet(effort=light)"};
  std::vector<std::string> metrics{"top_k"};  // k, where it is not said, is the explainer's usual_top
  std::vector<std::string> measures = {};     // of the model around each sample, with the largest epsilon where they name none
  Threat threat = {};
  Select select = Select::kWorst;
  Precision precision = Precision::kFloat32;  // of directions, on a GPU
};

// Throws kUsage for a method that is not known or whose options are wrong: before any work.
void check_calls(const Trial& trial);
Json to_json(const Trial& trial);

// Throws, before a model is needed, when the samples do not fit their trial: a threat that makes no sense for them, an input
// outside the box, a metric that does not fit the maps. `name` begins the message.
void check_samples(const std::string& name, const Samples& samples, const Trial& trial);

// The metric of a call for the maps of an explainer: where the call names no k, the explainer's usual one.
std::unique_ptr<Metric> metric_for(const std::string& call, const Explainer& explainer, const Schema& schema);

// One row of a grid before it is run. Copies share everything.
struct Cell {
  Subject subject;
  std::shared_ptr<const Explainer> explainer;
  std::shared_ptr<const Attack> attack;
  std::shared_ptr<const Metric> metric;
  ThreatModel threat;
  std::uint64_t seed = 0;
  Select select = Select::kWorst;
  Precision precision = Precision::kFloat32;
  bool trace = false;
  bool starts_from_previous = false;  // at what the cell before it found, at the next smaller epsilon

  AttackTask task(const at::Tensor& start = {}) const;
};

// In the order of tables; a method that is named twice makes one cell. Every cell is checked before the first one runs.
std::vector<Cell> make_cells(const Subject& subject, const Trial& trial, std::uint64_t seed, bool trace = false);

// The worst of random points on the surface of a cell's ball, judged as the attack's points are. An attack that finds less than
// they do says nothing about robustness.
struct RandomPoints {
  std::string attack;          // the call
  std::int64_t samples = 0;    // points for each sample
  std::vector<double> values;  // one a sample: the worst of its points
  Interval value;

  // Whether they harmed more than an attack with this mean.
  bool beat(double mean, Direction direction) const;
};
Json to_json(const RandomPoints& random);  // {"attack", "samples", "mean", "low", "high"}
// The call that is run beside a cell's attack; nothing beside `random` itself. 300 points, as many as cost what 100 steps of er
// do; where a sample is large or an explanation takes many passes, as many as cost a tenth of what the attack did, 10 at least.
std::optional<std::string> random_points_call(const Cell& cell, const CellResult& found);

// Evaluations that a sample of a cell takes, about: for progress.
struct CellWork {
  double attack = 0, random_points = 0;
  double total() const { return attack + random_points; }
};
CellWork expected_work(const Cell& cell, bool random_points);

// A lower bound of a cell's metric at every allowed point, one value a sample; how it is found: certify.h.
struct Certificate {
  std::string name;  // the call of the measure or attack that proved it
  std::vector<double> values;
  std::vector<std::pair<std::string, std::vector<double>>> parts = {};  // columns beside it
};

// What one metric says of the maps of a cell.
struct MapComparison {
  Levels levels;
  Assessment assessment;
  OwnEffects effects = {};  // empty for metrics of whole maps
};

// One row of a grid after it was run; it is compared by the cell's own metric.
struct Row : MapComparison {
  Cell cell;
  CellResult result;
  MapBatch clean, perturbed;                  // folded; they refer to the cell's schema
  std::optional<RandomPoints> random;         // none where they were not asked for, and beside `random` itself
  std::optional<Certificate> certified = {};  // the best that costs little beside the attack; none where nothing applies

  bool is_beaten() const { return random && random->beat(assessment.value.mean, cell.metric->direction()); }
};
// Where random points harmed more than the row's attack did.
void warn_if_beaten(const Row& row);

// The best certificate that costs little beside the row's attack: margins of few features, what an exact search has proven, and
// smoothing where the explanation is smooth_top.
std::optional<Certificate> certify_in_passing(const Row& row, const TileOptions& tiles);

// Runs cells one after the other and keeps what they share: levels of clean maps, random points, the points of the cell before.
class Grid {
 public:
  struct Options {
    TileOptions tiles = {};
    bool random_points = true;
    bool levels = true;             // between and own advantage; else chance alone
    bool warnings = true;           // in the log, of what must not be read as robustness
    std::string folder = {};        // finished tiles are kept below it; empty: nowhere
    Communicator* ranks = nullptr;  // others that run the same cells; needs a folder. All but rank 0 get rows without judgement
  };
  explicit Grid(Options options) : options_(std::move(options)) {}

  // `progress` counts in pieces, of which the cell is the one begun last.
  Row run(const Cell& cell, Progress* progress = nullptr);
  Row run_alone(const Cell& cell);  // with a line of progress of its own
  // What another metric than the attacked one says of a row.
  MapComparison compare(const Row& row, const Metric& metric);

 private:
  CellResult run_attack(const Attack& attack, const AttackTask& task, Progress* progress, const std::string& store_folder) const;
  std::optional<RandomPoints> random_points(const Cell& cell, const CellResult& result, Progress* progress,
                                            const std::string& store_folder);
  bool judges() const { return leads(options_.ranks); }

  Options options_;
  std::size_t done_ = 0;
  at::Tensor found_before_;
  std::map<std::string, Levels> levels_;
  std::map<std::string, RandomPoints> random_;
  std::set<std::string> ties_said_;  // each once: rows of one explanation have the same ties
};

// A measure around the samples of a subject.
struct MeasureCell {
  Subject subject;
  std::shared_ptr<const Explainer> explainer;
  std::shared_ptr<const Measure> measure;
  std::uint64_t seed = 0;
  double epsilon = 0;

  MeasureTask task() const;
  // "-" for measures that do not read the explainer.
  std::string explainer_name() const { return measure->uses_explainer() ? explainer->name() : "-"; }
};

// Explainers x measures, in the order of tables, checked; a measure that does not read the explainer makes one cell.
std::vector<MeasureCell> make_measure_cells(const Subject& subject, const Trial& trial, std::uint64_t seed);

}  // namespace holdfast::experiment
