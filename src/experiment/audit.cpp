#include "holdfast/experiment/audit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/measure/prediction.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Everything one row of results.json is made of.
struct Row {
  const AuditModel& subject;
  const AuditData& data;
  std::unique_ptr<Explainer> explainer;
  std::unique_ptr<Attack> attack;
  std::unique_ptr<Metric> metric;
  ThreatModel threat;

  CellTask task(std::uint64_t seed) const {
    return {.model = *subject.model,
            .explainer = *explainer,
            .attack = *attack,
            .metric = *metric,
            .threat = threat,
            .schema = data.schema,
            .inputs = data.inputs,
            .targets = data.targets,
            .sample_ids = data.ids,
            .seed = seed,
            .select = data.trial.select};
  }
};

// The grid in the order of the tables. Everything is made and checked before the first attack runs.
std::vector<Row> make_rows(const AuditPlan& plan) {
  std::vector<Row> rows;
  for (const AuditModel& subject : plan.models) {
    const AuditData& data = plan.data.at(subject.data);
    for (const std::string& explainer : data.trial.explainers) {
      for (const std::string& metric : data.trial.metrics) {
        for (const std::string& attack : data.trial.attacks) {
          rows.push_back({subject, data, explainers().make(explainer), attacks().make(attack), metrics().make(metric),
                          ThreatModel::make(data.trial.norm, data.trial.epsilon, data.trial.box, data.schema)});
          check_cell(rows.back().task(plan.seed));
        }
      }
    }
  }
  return rows;
}

Json to_json(const Interval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}, {"count", interval.count}};
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

std::vector<std::int64_t> to_vector(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor values = tensor.to(at::kCPU, at::kLong).contiguous();
  return {values.const_data_ptr<std::int64_t>(), values.const_data_ptr<std::int64_t>() + values.numel()};
}

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Probability of the explained class, [B] double.
at::Tensor confidence(const at::Tensor& logits, const at::Tensor& classes) {
  return at::softmax(logits.to(at::kDouble), 1).gather(1, classes.unsqueeze(1)).squeeze(1).contiguous();
}

// What attacks met on the way, in a few numbers.
Json attack_facts(const CellResult& result, const AuditData& data) {
  std::int64_t flipped = 0, swapped = 0, evaluations = 0;
  std::vector<double> first_swaps;
  for (const SampleOutcome& sample : result.samples) {
    flipped += sample.label_flips > 0 ? 1 : 0;
    evaluations += sample.evaluations;
    if (sample.first_swap >= 0) {
      ++swapped;
      first_swaps.push_back(static_cast<double>(sample.first_swap));
    }
  }
  const double count = static_cast<double>(result.samples.size());
  const at::Tensor before = confidence(result.logits, result.targets);
  const at::Tensor after = confidence(result.moved_logits, result.targets);
  return {{"flips", {{"samples", flipped}, {"share", static_cast<double>(flipped) / count}}},
          {"swapped_share", static_cast<double>(swapped) / count},
          {"median_first_swap", median(first_swaps)},
          {"evaluations", static_cast<double>(evaluations) / count},
          {"sensitivity", (before - after).abs().mean().item<double>()},
          {"auc", data.labels.defined() ? to_json(auc(result.moved_logits, data.labels)) : Json()},
          {"verified", true}};
}

Json row_json(const Row& row, const Assessment& assessment, const CellResult& result, const std::string& arrays) {
  const std::int64_t samples = static_cast<std::int64_t>(assessment.values.size());
  Json json{{"dataset", row.data.name},
            {"model", row.subject.name},
            {"explainer", row.explainer->name()},
            {"attack", row.attack->name()},
            {"threat", to_json(row.threat)},
            {"select", row.data.trial.select == Select::kWorst ? "worst" : "last"},
            {"metric", row.metric->name()},
            {"direction", row.metric->direction() == Direction::kHigherIsMoreAlike ? "higher" : "lower"},
            {"mean", assessment.value.mean},
            {"low", assessment.value.low},
            {"high", assessment.value.high},
            {"count", assessment.value.count},
            {"undefined", samples - assessment.value.count},
            {"median", median(assessment.values)},
            {"chance", optional_json(assessment.chance)},
            {"adjusted", optional_json(assessment.adjusted)},
            {"between", optional_json(assessment.between)},
            {"between_same_class", optional_json(assessment.between_same_class)},
            {"specific", optional_json(assessment.specific)},
            {"distinct_top_sets", assessment.distinct_top_sets},
            {"tied_share", assessment.tied_share}};
  json.update(attack_facts(result, row.data));
  json["arrays"] = arrays;
  return json;
}

const std::vector<std::string> kColumns{"dataset", "model",      "explainer",   "attack",           "metric",   "sample",
                                        "label",   "prediction", "confidence",  "confidence_after", "norm",     "value",
                                        "chance",  "first_swap", "label_flips", "evaluations",      "iteration"};

std::string number_text(double value) {
  return std::isnan(value) ? "" : fmt::format("{}", value);
}

std::string sample_lines(const Row& row, const CellResult& result, const Baseline& baseline) {
  const std::vector<std::int64_t> ids = to_vector(row.data.ids);
  const std::vector<std::int64_t> labels = to_vector(row.data.labels);
  const std::vector<std::int64_t> predictions = to_vector(predicted_class(result.logits));
  const at::Tensor before = confidence(result.logits, result.targets);
  const at::Tensor after = confidence(result.moved_logits, result.targets);
  const at::Tensor norms = row.threat.distance(result.perturbed, row.data.inputs).contiguous();
  std::string lines;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const SampleOutcome& sample = result.samples[i];
    lines +=
        format_csv_row({row.data.name, row.subject.name, row.explainer->name(), row.attack->name(), row.metric->name(),
                        fmt::format("{}", ids[i]), labels.empty() ? "" : fmt::format("{}", labels[i]),
                        fmt::format("{}", predictions[i]), number_text(before.const_data_ptr<double>()[i]),
                        number_text(after.const_data_ptr<double>()[i]), number_text(norms.const_data_ptr<double>()[i]),
                        number_text(sample.value), baseline.chance.empty() ? "" : number_text(baseline.chance[i]),
                        sample.first_swap < 0 ? "" : fmt::format("{}", sample.first_swap), fmt::format("{}", sample.label_flips),
                        fmt::format("{}", sample.evaluations), fmt::format("{}", sample.iteration)});
  }
  return lines;
}

// Positions of the samples to keep, the worst for the defender first; undefined values last.
std::vector<std::int64_t> worst_first(const Assessment& assessment, Direction direction, std::int64_t count) {
  std::vector<std::int64_t> order(assessment.values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto badness = [&](std::int64_t i) {
    const double value = assessment.values[static_cast<std::size_t>(i)];
    if (std::isnan(value)) return std::numeric_limits<double>::infinity();
    return direction == Direction::kHigherIsMoreAlike ? value : -value;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return badness(a) < badness(b); });
  order.resize(std::min<std::size_t>(order.size(), static_cast<std::size_t>(count)));
  return order;
}

void write_arrays(const std::string& folder, const Row& row, const CellResult& result, const Assessment& assessment,
                  const MapBatch& clean, const MapBatch& moved, std::int64_t count) {
  make_folders(folder);
  const std::vector<std::int64_t> worst = worst_first(assessment, row.metric->direction(), count);
  const at::Tensor chosen = at::tensor(worst, at::kLong);
  write_tensor(folder + "/inputs.npy", row.data.inputs.index_select(0, chosen));
  write_tensor(folder + "/perturbed.npy", result.perturbed.index_select(0, chosen));
  write_tensor(folder + "/original_maps.npy", result.original_maps.index_select(0, chosen));
  write_tensor(folder + "/perturbed_maps.npy", result.moved_maps.index_select(0, chosen));

  const std::vector<std::int64_t> ids = to_vector(row.data.ids);
  const std::vector<std::int64_t> labels = to_vector(row.data.labels);
  const std::vector<std::int64_t> predictions = to_vector(predicted_class(result.logits));
  Json samples = Json::array();
  for (const std::int64_t i : worst) {
    const std::size_t at = static_cast<std::size_t>(i);
    samples.push_back({{"sample", ids[at]},
                       {"label", labels.empty() ? Json() : Json(labels[at])},
                       {"prediction", predictions[at]},
                       {"value", assessment.values[at]},
                       {"top_original", row.metric->top_set(clean[i])},
                       {"top_perturbed", row.metric->top_set(moved[i])}});
  }
  write_json(folder + "/samples.json", samples);
}

Json model_json(const AuditModel& subject, const AuditData& data, const at::Tensor& logits) {
  Json json{{"name", subject.name}, {"dataset", data.name}};
  json.update(subject.facts);
  json["accuracy"] = data.labels.defined() ? to_json(accuracy(logits, data.labels)) : Json();
  json["auc"] = data.labels.defined() ? to_json(auc(logits, data.labels)) : Json();
  return json;
}

Json data_json(const AuditData& data) {
  Json excluded = Json::array();
  for (const auto& [reason, count] : data.excluded) excluded.push_back({{"reason", reason}, {"count", count}});
  return {{"name", data.name},
          {"samples", data.inputs.size(0)},
          {"excluded", excluded},
          {"schema", to_json(data.schema)},
          {"notes", data.notes}};
}

Json manifest_json(const AuditPlan& plan, const std::string& started, double seconds) {
  const std::string device = plan.models.empty() ? "cpu" : plan.models.front().model->device().str();
  Json json = machine_facts(plan.tiles.threads, device);
  json["kind"] = "audit";
  json["title"] = plan.title;
  json["command"] = plan.command;
  json["identity"] = plan.identity;
  json["seed"] = plan.seed;
  json["tile"] = Json::object();
  for (const AuditData& data : plan.data)
    json["tile"][data.name] = plan.tiles.size > 0 ? plan.tiles.size : default_tile(data.schema.layout);
  json["started"] = started;
  json["seconds"] = seconds;
  json["stages"] = Json::array();
  for (const auto& [name, duration] : plan.stages) json["stages"].push_back({{"name", name}, {"seconds", duration}});
  json["datasets"] = Json::array();
  for (const AuditData& data : plan.data) json["datasets"].push_back(data_json(data));
  json["notes"] = Json::array();
  return json;
}

}  // namespace

void exclude_non_finite(AuditData& data) {
  const at::Tensor finite = at::isfinite(data.inputs).flatten(1).all(1);
  const std::int64_t bad = data.inputs.size(0) - finite.sum().item<std::int64_t>();
  data.excluded.emplace_back("not finite", bad);
  if (bad == 0) return;
  const at::Tensor kept = finite.nonzero().squeeze(1);
  for (at::Tensor* tensor : {&data.inputs, &data.targets, &data.labels, &data.ids}) {
    if (tensor->defined()) *tensor = tensor->index_select(0, kept);
  }
  log_warning("{}: {} samples with a value that is not finite are left out", data.name, bad);
  if (data.inputs.size(0) == 0) input_error("{}: no sample is finite", data.name);
}

void check_data(const AuditData& data) {
  for (const std::string& metric : data.trial.metrics) metrics().make(metric)->check(data.schema);
  const auto& box = data.trial.box;
  if (!box) return;
  const at::Tensor outside = ((data.inputs < box->first) | (data.inputs > box->second)).flatten(1).any(1);
  if (!outside.any().item<bool>()) return;
  const std::int64_t first = outside.to(at::kInt).argmax().item<std::int64_t>();
  const at::Tensor sample = data.inputs[first];
  const double low = sample.min().item<double>();
  input_error("{}: sample {} has value {:g}, outside the box {:g},{:g}", data.name, first,
              low < box->first ? low : sample.max().item<double>(), box->first, box->second);
}

void check_gates_answered(const std::vector<Gate>& gates, const std::vector<Trial>& trials) {
  for (const Gate& gate : gates) {
    const bool answered = std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) {
      return std::any_of(trial.metrics.begin(), trial.metrics.end(),
                         [&](const std::string& metric) { return metrics().make(metric)->name() == gate.metric; });
    });
    if (!answered) usage_error("gate '{}': no row of this run has metric {}", gate.text, gate.metric);
  }
}

Json run_audit(const AuditPlan& plan, const std::string& folder) {
  const std::string started = utc_now();
  const Clock::time_point start = Clock::now();
  const std::vector<Row> rows = make_rows(plan);

  AuditPlan timed = plan;  // gains the time of each stage for the manifest
  Json results{{"kind", "audit"}, {"title", plan.title}, {"models", Json::array()}, {"rows", Json::array()}};
  for (const AuditModel& subject : plan.models) {
    const AuditData& data = plan.data[subject.data];
    results["models"].push_back(model_json(subject, data, predict(*subject.model, data.inputs, data.schema.layout, plan.tiles)));
  }

  std::int64_t total = 0;
  for (const Row& row : rows) total += row.data.inputs.size(0);
  std::string lines = format_csv_row(kColumns);
  {
    Progress progress("audit", total, "samples");
    // Clean maps do not depend on the attack: neither do their levels.
    std::map<std::string, Baseline> baselines;
    for (std::size_t index = 0; index < rows.size(); ++index) {
      const Row& row = rows[index];
      progress.note(fmt::format("{} {} {}", row.subject.name, row.explainer->name(), row.attack->name()));
      const Clock::time_point cell_start = Clock::now();
      const TileStore store(tile_folder(folder, index));  // run_cell verifies what it gives
      const CellResult result = run_cell(row.task(plan.seed), plan.tiles, &progress, &store);

      const MapBatch clean = fold_maps(result.original_maps, row.data.schema);
      const MapBatch moved = fold_maps(result.moved_maps, row.data.schema);
      const std::string key = row.subject.name + '\n' + row.data.name + '\n' + row.explainer->name() + '\n' + row.metric->name();
      auto level = baselines.find(key);
      if (level == baselines.end()) {
        const std::vector<std::int64_t> classes = to_vector(result.targets);
        level = baselines.emplace(key, baseline(*row.metric, clean, classes, {.seed = plan.seed})).first;
      }
      const Assessment assessment = assess(*row.metric, clean, moved, level->second, plan.seed);
      warn_of_ties(assessment);
      const std::string arrays = fmt::format("arrays/{:04}", index);
      results["rows"].push_back(row_json(row, assessment, result, arrays));
      lines += sample_lines(row, result, level->second);
      write_arrays(folder + "/" + arrays, row, result, assessment, clean, moved,
                   plan.keep_arrays ? row.data.inputs.size(0) : plan.worst);
      timed.stages.emplace_back(
          fmt::format("{}: {} {} {}", row.subject.name, row.explainer->name(), row.attack->name(), row.metric->name()),
          seconds_since(cell_start));
    }
  }
  results["gates"] = check_gates(plan.gates, results["rows"]);
  write_atomic(folder + "/samples.csv", lines);
  write_json(folder + "/results.json", results);
  write_json(folder + "/manifest.json", manifest_json(timed, started, seconds_since(start)));
  remove_tiles(folder);
  return results;
}

}  // namespace holdfast
