#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "files.h"
#include "holdfast/core/clock.h"
#include "holdfast/core/error.h"
#include "holdfast/core/file_stream.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/compare_runs.h"
#include "holdfast/experiment/run_folder.h"

namespace holdfast::experiment {
namespace {

using Clock = std::chrono::steady_clock;

// Everything that an audit runs, checked, in the order of its tables.
std::pair<std::vector<Cell>, std::vector<MeasureCell>> cells_of(const AuditPlan& plan) {
  std::pair<std::vector<Cell>, std::vector<MeasureCell>> all;
  for (const AuditModel& model : plan.models) {
    const AuditData& data = plan.data.at(model.data);
    const Subject subject{data.name, model.name, model.model, data.samples};
    for (Cell& cell : make_cells(subject, data.trial, plan.seed)) all.first.push_back(std::move(cell));
    for (MeasureCell& cell : make_measure_cells(subject, data.trial, plan.seed)) all.second.push_back(std::move(cell));
  }
  return all;
}

// The part of a rank that does not lead: it computes tiles.
void help_with_audit(const AuditPlan& plan, const std::string& folder) {
  const auto [cells, measure_cells] = cells_of(plan);
  Grid grid({.tiles = plan.tiles, .folder = folder, .ranks = plan.ranks});
  for (const Cell& cell : cells) grid.run(cell);
  for (std::size_t index = 0; index < measure_cells.size(); ++index)
    run_measure(measure_cells[index], plan.tiles, tile_folder(folder, cells.size() + index), /*progress=*/nullptr, plan.ranks);
  wait_for_readers(plan.ranks, folder);
}

// Runs the cells of an audit one after the other and gathers what the run's files say of them.
class Audit {
 public:
  Audit(const AuditPlan& plan, std::string folder)
      : plan_(plan),
        folder_(std::move(folder)),
        grid_({.tiles = plan.tiles, .folder = folder_, .ranks = plan.ranks}),
        samples_(folder_ + "/samples.csv"),
        stages_(plan.stages) {
    samples_.write(samples_header());
    std::tie(cells_, measure_cells_) = cells_of(plan);
  }

  void run() {
    std::map<std::string, double> seconds;  // that a model takes for a sample
    for (const AuditModel& model : plan_.models) {
      const AuditData& data = plan_.data[model.data];
      const Clock::time_point start = Clock::now();
      const at::Tensor logits = predict(*model.model, data.samples.inputs, data.samples.layout(), plan_.tiles);
      if (model.model->output_kind() != OutputKind::kValue) check_labels(model, data, logits.size(1));
      const double pass = shortest_pass(model, data, seconds_since(start));
      seconds[model.name] = pass / static_cast<double>(std::max<std::int64_t>(1, data.samples.count()));
      models_.push_back(model_json(model, data, logits));
    }
    Progress progress("audit", pieces(seconds));
    for (std::size_t index = 0; index < cells_.size(); ++index) run_cell_at(index, progress);
    for (std::size_t index = 0; index < measure_cells_.size(); ++index) run_measure_at(index, progress);
  }

  Json results() const {
    Json rows = rows_;
    const std::vector<std::optional<std::string>> beaten = beaten_by(summaries_);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["beaten_by"] = beaten[i] ? Json(*beaten[i]) : Json();
    Json measures = Json::array();
    for (const MeasureRow& row : measured_) measures.push_back(measure_row_json(row));
    return {{"kind", "audit"},
            {"title", plan_.title},
            {"models", models_},
            {"rows", rows},
            {"measures", measures},
            {"comparisons", comparisons_json(summaries_, measured_, plan_.seed)},
            {"correlations", correlations_json(summaries_, measured_, plan_.seed)},
            {"gates", Json::array()}};
  }

  // Completes samples.csv, which is written row by row.
  void finish_samples() { samples_.finish(); }
  // measures.csv; empty when nothing was measured.
  std::string measures() const {
    std::string text = measured_.empty() ? "" : measures_header();
    for (const MeasureRow& row : measured_) text += measure_lines(row);
    return text;
  }
  // Seconds of everything that was done, before the grid and by it.
  const std::vector<std::pair<std::string, double>>& stages() const { return stages_; }
  // Seconds of the components of ensembles: [{"row", "name", "seconds"}].
  const Json& component_times() const { return times_; }

 private:
  // Seconds of the shortest of a few passes over the samples; `first` is what the first one took. It starts threads and fills
  // caches, and small networks take less time than what disturbs them: one pass would make a model seem many times slower than
  // another of its size. Large ones, and models that are not networks, are asked once.
  double shortest_pass(const AuditModel& model, const AuditData& data, double first) const {
    constexpr double kLarge = 0.5, kWorthIt = 0.03;  // seconds
    constexpr int kMost = 20;
    if (model.model->network() == nullptr || first > kLarge) return first;
    double shortest = first, all = 0;
    for (int pass = 0; pass < kMost && all < kWorthIt; ++pass) {
      const Clock::time_point start = Clock::now();
      (void)predict(*model.model, data.samples.inputs, data.samples.layout(), plan_.tiles);
      const double seconds = seconds_since(start);
      shortest = std::min(shortest, seconds);
      all += seconds;
    }
    return shortest;
  }

  // Rows, then measures: their evaluations, weighed by what the model takes for a sample.
  std::vector<WorkPiece> pieces(const std::map<std::string, double>& seconds) const {
    constexpr double kOfMeasure = 1000;  // evaluations, about
    std::vector<WorkPiece> pieces;
    const auto add = [&](const Subject& subject, const std::string& kind, double evaluations) {
      const double samples = static_cast<double>(subject.samples.count());
      pieces.push_back({subject.model_name + '\n' + kind, samples * evaluations * seconds.at(subject.model_name)});
    };
    for (const Cell& cell : cells_)
      add(cell.subject, cell.explainer->name() + '\n' + cell.attack->name(), expected_work(cell, /*random_points=*/true).total());
    for (const MeasureCell& cell : measure_cells_) add(cell.subject, cell.measure->name(), kOfMeasure);
    return pieces;
  }

  static void check_labels(const AuditModel& model, const AuditData& data, std::int64_t classes) {
    if (!data.samples.labels.defined()) return;
    const std::int64_t largest = data.samples.labels.max().item<std::int64_t>();
    if (largest >= classes)
      input_error("model {} has {} classes, but dataset {} has a label {}", model.name, classes, data.name, largest);
  }

  void run_cell_at(std::size_t index, Progress& progress) {
    const Cell& cell = cells_[index];
    const std::string what = fmt::format("{} {}", cell.explainer->name(), cell.attack->name());
    progress.note(fmt::format("{} {}", cell.subject.model_name, what));
    const Clock::time_point start = Clock::now();
    progress.begin(index);
    const Row row = grid_.run(cell, &progress);
    const std::string arrays = fmt::format("arrays/{:04}", index);
    rows_.push_back(row_json(row, arrays));
    summaries_.push_back(summarise(row));
    samples_.write(sample_lines(row));
    write_arrays(folder_ + "/" + arrays, row, plan_.keep_arrays ? cell.subject.samples.count() : plan_.worst);
    for (const ComponentCost& component : row.result.components)
      times_.push_back({{"row", index}, {"name", component.name}, {"seconds", component.seconds}});
    stages_.emplace_back(fmt::format("{}: {} {}, {} {:g}", cell.subject.model_name, what, cell.metric->name(),
                                     to_string(cell.threat.norm), cell.threat.epsilon),
                         seconds_since(start));
    progress.finish(index);
  }

  void run_measure_at(std::size_t index, Progress& progress) {
    const MeasureCell& cell = measure_cells_[index];
    progress.note(fmt::format("{} {}", cell.subject.model_name, cell.measure->name()));
    const Clock::time_point start = Clock::now();
    progress.begin(cells_.size() + index);
    progress.begin_part(1, cell.subject.samples.count());
    measured_.push_back(run_measure(cell, plan_.tiles, tile_folder(folder_, cells_.size() + index), &progress, plan_.ranks));
    progress.finish(cells_.size() + index);
    stages_.emplace_back(fmt::format("{}: {} {}", cell.subject.model_name, cell.explainer_name(), cell.measure->name()),
                         seconds_since(start));
  }

  const AuditPlan& plan_;
  const std::string folder_;
  Grid grid_;
  std::vector<Cell> cells_;
  std::vector<MeasureCell> measure_cells_;
  std::vector<RowSummary> summaries_;
  std::vector<MeasureRow> measured_;
  Json models_ = Json::array(), rows_ = Json::array(), times_ = Json::array();
  AtomicFile samples_;
  std::vector<std::pair<std::string, double>> stages_;
};

Json data_json(const AuditData& data) {
  Json excluded = Json::array();
  for (const auto& [reason, count] : data.excluded) excluded.push_back({{"reason", reason}, {"count", count}});
  return {{"name", data.name},
          {"samples", data.samples.count()},
          {"excluded", excluded},
          {"schema", to_json(*data.samples.schema)},
          {"notes", data.notes}};
}

Json manifest_json(const AuditPlan& plan, const Audit& audit, const std::string& folder, const std::string& started,
                   double seconds) {
  const std::string device = plan.models.empty() ? "cpu" : plan.models.front().model->device().str();
  Json json = machine_facts(plan.tiles.threads, device, plan.ranks == nullptr ? 1 : plan.ranks->size());
  json["kind"] = "audit";
  json["title"] = plan.title;
  json["command"] = plan.command;
  json["identity"] = plan.identity;
  json["seed"] = plan.seed;
  json["tile"] = Json::object();
  for (const AuditData& data : plan.data)
    json["tile"][data.name] = plan.tiles.size > 0 ? plan.tiles.size : default_tile(data.samples.layout(), at::Device(device));
  json["started"] = started;
  json["seconds"] = seconds;
  json["stages"] = Json::array();
  for (const auto& [name, duration] : audit.stages()) json["stages"].push_back({{"name", name}, {"seconds", duration}});
  json["datasets"] = Json::array();
  for (const AuditData& data : plan.data) json["datasets"].push_back(data_json(data));
  json["notes"] = Json::array();
  json["components"] = audit.component_times();
  std::vector<std::string> files{"results.json", "samples.csv", "measures.csv"};
  for (const std::string& array : array_files(folder)) files.push_back(array);
  json["digests"] = file_digests(folder, files);
  return json;
}

}  // namespace

Json run_audit(const AuditPlan& plan, const std::string& folder) {
  if (!leads(plan.ranks)) {
    help_with_audit(plan, folder);
    return {};
  }
  const std::string started = utc_now();
  const Clock::time_point start = Clock::now();
  Audit audit(plan, folder);
  audit.run();
  Json results = audit.results();
  audit.finish_samples();
  if (const std::string measures = audit.measures(); !measures.empty()) write_atomic(folder + "/measures.csv", measures);
  check_files_are_as_claimed(plan.identity, folder);
  write_json(folder + "/results.json", results);
  wait_for_readers(plan.ranks, folder);  // a rank that comes late must not take the run for one that was complete before
  write_json(folder + "/manifest.json", manifest_json(plan, audit, folder, started, seconds_since(start)));
  remove_tiles(folder);
  return results;
}

Json complete_audit(const AuditRequest& request, const std::string& folder) {
  if (run_is_complete(folder)) {
    check_digests_are_there(folder);
    log_info("{} holds this run already, complete", folder);
  } else {
    AuditPlan plan = request.prepare();
    check_gates_answered(request.gates, plan);
    plan.identity = request.identity;
    plan.command = request.command;
    plan.ranks = request.ranks;
    run_audit(plan, folder);
  }
  if (!leads(request.ranks)) return {};
  Json results = read_json(folder + "/results.json");
  const Json drops = request.compare.empty() ? Json::array() : drops_against(request.compare, folder);
  results["gates"] = check_gates(request.gates, results.at("rows"), results.value("measures", Json::array()), drops);
  write_results_with_gates(folder, results);
  return results;
}

}  // namespace holdfast::experiment
