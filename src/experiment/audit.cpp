#include "holdfast/experiment/audit.h"

#include <chrono>
#include <map>

#include "audit_grid.h"
#include "audit_manifest.h"
#include "audit_results.h"
#include "audit_samples.h"
#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/run_folder.h"
#include "samples.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs the rows of a grid one after the other and gathers what the run's files say of them.
class Audit {
 public:
  Audit(const AuditPlan& plan, std::string folder)
      : plan_(plan), folder_(std::move(folder)), grid_(make_grid(plan)), stages_(plan.stages) {}

  void run() {
    for (const AuditModel& subject : plan_.models) {
      const AuditData& data = plan_.data[subject.data];
      models_.push_back(model_json(subject, data, predict(*subject.model, data.inputs, data.schema.layout, plan_.tiles)));
    }
    std::int64_t total = 0;
    for (const GridRow& row : grid_) total += row.data.inputs.size(0);
    Progress progress("audit", total, "samples");
    for (std::size_t index = 0; index < grid_.size(); ++index) run_row(index, progress);
  }

  Json results() const {
    return {{"kind", "audit"},
            {"title", plan_.title},
            {"models", models_},
            {"rows", rows_},
            {"gates", check_gates(plan_.gates, rows_)}};
  }
  const std::string& samples() const { return samples_; }
  // Seconds of what was done, before this and by it.
  const std::vector<std::pair<std::string, double>>& stages() const { return stages_; }

 private:
  void run_row(std::size_t index, Progress& progress) {
    const GridRow& row = grid_[index];
    progress.note(fmt::format("{} {} {}", row.subject.name, row.explainer->name(), row.attack->name()));
    const Clock::time_point start = Clock::now();
    const TileStore store(tile_folder(folder_, index));  // run_cell verifies what it gives
    const CellResult result = run_cell(row.task(plan_.seed), plan_.tiles, &progress, &store);

    const MapBatch clean = fold_maps(result.original_maps, row.data.schema);
    const MapBatch moved = fold_maps(result.moved_maps, row.data.schema);
    const Baseline& level = level_of(row, clean, result.targets);
    const Assessment assessment = assess(*row.metric, clean, moved, level, plan_.seed);
    warn_of_ties(assessment);
    const std::string arrays = fmt::format("arrays/{:04}", index);
    rows_.push_back(row_json(row, assessment, result, arrays));
    samples_ += sample_lines(row, result, level);
    write_arrays(folder_ + "/" + arrays, {row, result, assessment, clean, moved},
                 plan_.keep_arrays ? row.data.inputs.size(0) : plan_.worst);
    stages_.emplace_back(
        fmt::format("{}: {} {} {}", row.subject.name, row.explainer->name(), row.attack->name(), row.metric->name()),
        seconds_since(start));
  }

  // Clean maps do not depend on the attack: neither do their levels.
  const Baseline& level_of(const GridRow& row, const MapBatch& clean, const at::Tensor& targets) {
    const std::string key = row.subject.name + '\n' + row.data.name + '\n' + row.explainer->name() + '\n' + row.metric->name();
    const auto known = levels_.find(key);
    if (known != levels_.end()) return known->second;
    return levels_.emplace(key, baseline(*row.metric, clean, to_vector(targets), {.seed = plan_.seed})).first->second;
  }

  const AuditPlan& plan_;
  const std::string folder_;
  const std::vector<GridRow> grid_;
  std::map<std::string, Baseline> levels_;
  Json models_ = Json::array(), rows_ = Json::array();
  std::string samples_ = samples_header();
  std::vector<std::pair<std::string, double>> stages_;
};

}  // namespace

Json run_audit(const AuditPlan& plan, const std::string& folder) {
  const std::string started = utc_now();
  const Clock::time_point start = Clock::now();
  Audit audit(plan, folder);
  audit.run();

  const Json results = audit.results();
  AuditPlan timed = plan;
  timed.stages = audit.stages();
  write_atomic(folder + "/samples.csv", audit.samples());
  write_json(folder + "/results.json", results);
  write_json(folder + "/manifest.json", manifest_json(timed, started, seconds_since(start)));
  remove_tiles(folder);
  return results;
}

}  // namespace holdfast
