#include "holdfast/experiment/audit.h"

#include <chrono>
#include <map>

#include "audit_grid.h"
#include "audit_manifest.h"
#include "audit_measures.h"
#include "audit_results.h"
#include "audit_samples.h"
#include "audit_statistics.h"
#include "holdfast/core/clock.h"
#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/cell_facts.h"
#include "holdfast/experiment/random_baseline.h"
#include "holdfast/experiment/run_folder.h"
#include "samples.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

// Runs the rows of a grid one after the other and gathers what the run's files say of them.
class Audit {
 public:
  Audit(const AuditPlan& plan, std::string folder)
      : plan_(plan),
        folder_(std::move(folder)),
        grid_(make_grid(plan)),
        measured_(make_measure_rows(plan)),
        stages_(plan.stages) {}

  void run() {
    for (const AuditModel& subject : plan_.models) {
      const AuditData& data = plan_.data[subject.data];
      models_.push_back(model_json(subject, data, predict(*subject.model, data.inputs, data.schema.layout, plan_.tiles)));
    }
    std::int64_t total = 0;
    for (const GridRow& row : grid_) total += row.data.inputs.size(0);
    for (const MeasureRow& row : measured_) total += row.data.inputs.size(0);
    Progress progress("audit", total, "samples");
    for (std::size_t index = 0; index < grid_.size(); ++index) run_row(index, progress);
    for (std::size_t index = 0; index < measured_.size(); ++index) run_measure(index, progress);
  }

  Json results() const {
    return {{"kind", "audit"},
            {"title", plan_.title},
            {"models", models_},
            {"rows", flag_beaten(rows_)},
            {"measures", measures_},
            {"comparisons", comparisons_json(row_values_, measure_values_, plan_.seed)},
            {"correlations", correlations_json(row_values_, measure_values_, plan_.seed)},
            {"gates", check_gates(plan_.gates, rows_, measures_)}};
  }
  const std::string& samples() const { return samples_; }
  // measures.csv; empty when nothing was measured.
  const std::string& measure_samples() const { return measure_samples_; }
  // Seconds of what was done, before this and by it.
  const std::vector<std::pair<std::string, double>>& stages() const { return stages_; }
  // ... and of the components of ensembles: [{"row", "name", "seconds"}].
  const Json& component_times() const { return times_; }

 private:
  void run_row(std::size_t index, Progress& progress) {
    const GridRow& row = grid_[index];
    progress.note(fmt::format("{} {} {}", row.subject.name, row.explainer->name(), row.attack->name()));
    const Clock::time_point start = Clock::now();
    const TileStore store(tile_folder(folder_, index));  // run_cell verifies what it gives
    const CellTask task = row.task(plan_.seed, row.goes_on ? found_before_ : at::Tensor());
    const CellResult result = run_cell(task, plan_.tiles, &progress, &store);
    found_before_ = result.perturbed;
    warn_of_no_gradient(result, row.attack->name());
    const std::optional<RandomBaseline> random = random_beside(task, result, index);

    const MapBatch clean = fold_maps(result.original_maps, row.data.schema);
    const MapBatch moved = fold_maps(result.moved_maps, row.data.schema);
    const Levels& level = level_of(row, clean, result.targets);
    const Assessment assessment = assess(*row.metric, clean, moved, level, plan_.seed);
    warn_of_ties(assessment);
    const std::string arrays = fmt::format("arrays/{:04}", index);
    rows_.push_back(row_json(row, assessment, result, random, arrays, plan_.seed));
    note_times(index, result);
    row_values_.push_back({rows_.back(), assessment.values, first_swaps(result)});
    samples_ += sample_lines(row, result, level);
    write_arrays(folder_ + "/" + arrays, {row, result, assessment, clean, moved},
                 plan_.keep_arrays ? row.data.inputs.size(0) : plan_.worst);
    stages_.emplace_back(fmt::format("{}: {} {} {}, {} {:g}", row.subject.name, row.explainer->name(), row.attack->name(),
                                     row.metric->name(), to_string(row.threat.norm), row.threat.epsilon),
                         seconds_since(start));
  }

  // Attacks on one subject share it where it costs the same.
  std::optional<RandomBaseline> random_beside(const CellTask& task, const CellResult& result, std::size_t index) {
    const std::optional<std::string> call = random_baseline_call(task, result);
    if (!call) return std::nullopt;
    const GridRow& row = grid_[index];
    const std::string key = level_key(row) + '\n' + to_json(row.threat).dump() + '\n' + *call;
    const auto known = random_.find(key);
    if (known != random_.end()) return known->second;
    const TileStore store(tile_folder(folder_, index) + "/random");
    return random_.emplace(key, run_random_baseline(task, *call, plan_.tiles, &store)).first->second;
  }

  void note_times(std::size_t index, const CellResult& result) {
    for (const ComponentCost& component : result.components)
      times_.push_back({{"row", index}, {"name", component.name}, {"seconds", component.seconds}});
  }

  void run_measure(std::size_t index, Progress& progress) {
    const MeasureRow& row = measured_[index];
    progress.note(fmt::format("{} {}", row.subject.name, row.measure->name()));
    const Clock::time_point start = Clock::now();
    const Measurement measured = run_measure_row(row, plan_, tile_folder(folder_, grid_.size() + index), &progress);
    measures_.push_back(measure_row_json(row, measured, plan_.seed));
    measure_values_.push_back({measures_.back(), measured.values});
    if (measure_samples_.empty()) measure_samples_ = measures_header();
    measure_samples_ += measure_lines(row, measured);
    stages_.emplace_back(fmt::format("{}: {} {}", row.subject.name, row.explainer_name(), row.measure->name()),
                         seconds_since(start));
  }

  static std::vector<std::int64_t> first_swaps(const CellResult& result) {
    std::vector<std::int64_t> swaps;
    for (const SampleOutcome& sample : result.samples) swaps.push_back(sample.first_swap);
    return swaps;
  }

  static std::string level_key(const GridRow& row) {
    return row.subject.name + '\n' + row.data.name + '\n' + row.explainer->name() + '\n' + row.metric->name();
  }

  // Clean maps do not depend on the attack: neither do their levels.
  const Levels& level_of(const GridRow& row, const MapBatch& clean, const at::Tensor& targets) {
    const std::string key = level_key(row);
    const auto known = levels_.find(key);
    if (known != levels_.end()) return known->second;
    return levels_.emplace(key, compute_levels(*row.metric, clean, to_vector(targets), {.seed = plan_.seed})).first->second;
  }

  const AuditPlan& plan_;
  const std::string folder_;
  const std::vector<GridRow> grid_;
  const std::vector<MeasureRow> measured_;
  std::map<std::string, Levels> levels_;
  std::map<std::string, RandomBaseline> random_;
  at::Tensor found_before_;     // by the row before
  Json times_ = Json::array();  // of components
  Json models_ = Json::array(), rows_ = Json::array(), measures_ = Json::array();
  std::vector<RowValues> row_values_, measure_values_;
  std::string samples_ = samples_header(), measure_samples_;
  std::vector<std::pair<std::string, double>> stages_;
};

}  // namespace

Json run_audit(const AuditPlan& plan, const std::string& folder) {
  const std::string started = utc_now();
  const Clock::time_point start = Clock::now();
  Audit audit(plan, folder);
  audit.run();

  Json results = audit.results();
  AuditPlan timed = plan;
  timed.stages = audit.stages();
  write_atomic(folder + "/samples.csv", audit.samples());
  if (!audit.measure_samples().empty()) write_atomic(folder + "/measures.csv", audit.measure_samples());
  write_json(folder + "/results.json", results);
  Json manifest = manifest_json(timed, started, seconds_since(start));
  manifest["components"] = audit.component_times();
  write_json(folder + "/manifest.json", manifest);
  remove_tiles(folder);
  return results;
}

}  // namespace holdfast
